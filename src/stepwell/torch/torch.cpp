// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/torch.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/torch/detail/copied_tensor.hpp"

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace stepwell {
namespace {

dtype dtype_of_elements(const at::Tensor& value) {
  switch (value.scalar_type()) {
    case at::kFloat: return dtype::float32;
    case at::kDouble: return dtype::float64;
    case at::kInt: return dtype::int32;
    case at::kLong: return dtype::int64;
    case at::kByte: return dtype::uint8;
    case at::kChar: return dtype::int8;
    case at::kShort: return dtype::int16;
    case at::kBool: return dtype::boolean;
    case at::kHalf: return dtype::half;
    case at::kBFloat16: return dtype::bfloat16;
    case at::kComplexFloat: return dtype::complex64;
    case at::kComplexDouble: return dtype::complex128;
    default: return dtype::invalid;
  }
}

[[noreturn]] void refuse(const std::string& why) { throw invalid_argument_error("a LibTorch tensor " + why); }

/// Returns true if the host can address the elements and they are in row-major order.
bool is_addressable(const at::Tensor& value) {
  return value.device().is_cpu() && value.is_contiguous() && !value.is_conj() && !value.is_neg();
}

tensor_view described(const at::Tensor& value) {
  const auto sizes = value.sizes();
  return {dtype_of_elements(value), tensor_shape(sizes.begin(), sizes.end()), {}};
}

}  // namespace

tensor_view tensor_adapter<at::Tensor>::view(const at::Tensor& value) {
  if (!value.defined()) { refuse("is undefined; create it before the session"); }
  if (value.layout() != at::kStrided) { refuse("is sparse; a checkpoint holds dense tensors only"); }
  auto made = described(value);
  if (made.dtype == dtype::invalid) {
    refuse(std::string("has elements of type ") + at::toString(value.scalar_type()) + ", which a checkpoint cannot hold");
  }
  if (!value.device().is_cpu()) { refuse("is on " + value.device().str() + "; copy it to the CPU"); }
  if (!is_addressable(value)) { refuse("is not contiguous in row-major order; use contiguous()"); }
  made.bytes = {static_cast<const std::byte*>(value.data_ptr()), static_cast<std::size_t>(value.nbytes())};
  return made;
}

std::shared_ptr<device_elements> tensor_adapter<at::Tensor>::on_device(const at::Tensor& value) {
  const bool can_be_copied = value.defined() && value.layout() == at::kStrided && dtype_of_elements(value) != dtype::invalid;
  if (!can_be_copied || is_addressable(value)) { return nullptr; }
  return std::make_shared<libtorch::detail::copied_tensor>(
      described(value), value.scalar_type(), [value] { return value; }, [value](const at::Tensor& copy) { value.copy_(copy); });
}

namespace libtorch {

std::string detail::path_of(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

variable_list variables(const ::torch::nn::Module& module) {
  variable_list list;
  for (const auto& parameter : module.named_parameters()) { list.emplace_back(detail::path_of(parameter.key()), parameter.value()); }
  for (const auto& buffer : module.named_buffers()) { list.push_back(variable_ref(detail::path_of(buffer.key()), buffer.value()).early()); }
  return list;
}

void step(::torch::optim::Optimizer& optimizer, update_fence& fence) {
  fence.wait();
  optimizer.step();
}

}  // namespace libtorch
}  // namespace stepwell
