// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/torch.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/torch/detail/copied_tensor.hpp"
#include "stepwell/torch/detail/device_tensor.hpp"
#include "stepwell/torch/detail/random_layers.hpp"

#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {
namespace {

/// Returns the dtype of an element type that only later versions of LibTorch have.
dtype newer_dtype(std::string_view name) {
  constexpr std::pair<std::string_view, dtype> known[] = {
      {"UInt16", dtype::uint16},
      {"UInt32", dtype::uint32},
      {"UInt64", dtype::uint64},
      {"Float8_e5m2", dtype::float8_e5m2},
      {"Float8_e4m3fn", dtype::float8_e4m3fn},
      {"Float8_e5m2fnuz", dtype::float8_e5m2fnuz},
      {"Float8_e4m3fnuz", dtype::float8_e4m3fnuz},
  };
  const auto* const found = std::ranges::find(known, name, [](const auto& one) { return one.first; });
  return found == std::end(known) ? dtype::invalid : found->second;
}

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
    default: return newer_dtype(at::toString(value.scalar_type()));
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
  if (!value.device().is_cpu()) { return std::make_shared<libtorch::detail::device_tensor>(described(value), value); }
  return std::make_shared<libtorch::detail::copied_tensor>(
      described(value), value.scalar_type(), [value] { return value; }, [value](const at::Tensor& copy) { value.copy_(copy); });
}

std::shared_ptr<const void> tensor_adapter<at::Tensor>::owner(const at::Tensor& value) {
  return std::make_shared<const c10::Storage>(value.storage());  // not the tensor: its storage can be replaced, too
}

double tensor_adapter<at::Tensor>::number(const at::Tensor& value) {
  if (!value.defined()) { refuse("is undefined, but a hook reads it as a number"); }
  if (value.numel() != 1 || at::isComplexType(value.scalar_type())) {
    refuse("of shape " + to_string(described(value).shape) + " and type " + at::toString(value.scalar_type()) +
           " cannot be read as one number; give a function that returns its mean, or another number of it");
  }
  try {
    return value.item().toDouble();
  } catch (const c10::Error& failure) {
    throw internal_error(std::string("could not read a number from a LibTorch tensor: ") + failure.what_without_backtrace());
  }
}

std::optional<bool> tensor_adapter<at::Tensor>::any_bad_on_device(const at::Tensor& value, bool nan_only) {
  if (!value.defined() || value.layout() != at::kStrided || is_addressable(value)) { return std::nullopt; }
  bool found = false;
  libtorch::detail::copied_tensor::attempt("look for NaN in a LibTorch tensor", [&] {
    if (!at::isFloatingType(value.scalar_type()) && !at::isComplexType(value.scalar_type())) { return; }
    const auto numbers = detail::is_narrow_number(dtype_of_elements(value)) ? value.to(at::kFloat) : value;
    found = nan_only ? numbers.isnan().any().item<bool>() : !numbers.isfinite().all().item<bool>();
  });
  return found;
}

namespace libtorch {

std::string detail::path_of(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

variable_list variables(const ::torch::nn::Module& module) {
  variable_list list;
  bool is_on_cpu = true;
  for (const auto& parameter : module.named_parameters()) {
    list.emplace_back(detail::path_of(parameter.key()), parameter.value());
    is_on_cpu = is_on_cpu && parameter.value().device().is_cpu();
  }
  for (const auto& buffer : module.named_buffers()) { list.push_back(variable_ref(detail::path_of(buffer.key()), buffer.value()).early()); }
  detail::warn_without_generator(&module, is_on_cpu, [&module] { return detail::random_layer(module); });
  return list;
}

variable_list variables(const ::torch::jit::Module& module) {
  variable_list list;
  bool is_on_cpu = true;
  for (const auto& parameter : module.named_parameters()) {
    const at::Tensor value = parameter.value;
    list.push_back(variable_ref(detail::path_of(parameter.name), value));
    is_on_cpu = is_on_cpu && value.device().is_cpu();
  }
  for (const auto& buffer : module.named_buffers()) {
    list.push_back(variable_ref(detail::path_of(buffer.name), at::Tensor(buffer.value)).early());
  }
  detail::warn_without_generator(module._ivalue().get(), is_on_cpu, [] { return std::string(); });
  return list;
}

void step(::torch::optim::Optimizer& optimizer, update_fence& fence) {
  fence.wait();
  optimizer.step();
}

}  // namespace libtorch
}  // namespace stepwell
