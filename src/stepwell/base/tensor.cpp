// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/tensor.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor_adapter.hpp"

namespace stepwell {

std::string to_string(const tensor_shape& shape) {
  std::string text = "[";
  for (const auto size : shape) { text.append(text.size() > 1 ? "," : "").append(std::to_string(size)); }
  return text.append("]");
}

tensor::tensor() noexcept = default;
tensor::tensor(stepwell::dtype type, tensor_shape shape) : dtype_(type), shape_(std::move(shape)) {
  const auto count = static_cast<std::size_t>(element_count(shape_));
  if (type == dtype::string) {
    strings_.resize(count);
  } else {
    bytes_.resize(count * size_of(type));
  }
}
tensor::tensor(const tensor&) = default;
tensor::tensor(tensor&&) noexcept = default;
tensor& tensor::operator=(const tensor&) = default;
tensor& tensor::operator=(tensor&&) noexcept = default;
tensor::~tensor() = default;

device_elements::~device_elements() = default;

tensor_view tensor_adapter<tensor>::view(const tensor& value) {
  if (size_of(value.dtype()) == 0) {
    throw invalid_argument_error("a tensor of " + std::string(to_string(value.dtype())) +
                                 " cannot be viewed: its elements have no fixed size");
  }
  return value.view();
}

}  // namespace stepwell
