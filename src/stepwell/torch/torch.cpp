// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/torch.hpp"

#include "stepwell/base/error.hpp"

#include <c10/util/string_utils.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstddef>
#include <map>
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

}  // namespace

tensor_view tensor_adapter<at::Tensor>::view(const at::Tensor& value) {
  if (!value.defined()) { refuse("is undefined; make it before the session"); }
  if (!value.device().is_cpu()) { refuse("is on " + value.device().str() + "; copy it to the CPU"); }
  if (value.layout() != at::kStrided) { refuse("is sparse; a checkpoint holds dense ones"); }
  if (!value.is_contiguous() || value.is_conj() || value.is_neg()) { refuse("is not contiguous in row-major order; use contiguous()"); }
  const auto type = dtype_of_elements(value);
  if (type == dtype::invalid) {
    refuse(std::string("has elements of type ") + at::toString(value.scalar_type()) + ", which a checkpoint cannot hold");
  }
  const auto sizes = value.sizes();
  return {type, tensor_shape(sizes.begin(), sizes.end()),
          std::span(static_cast<const std::byte*>(value.data_ptr()), static_cast<std::size_t>(value.nbytes()))};
}

namespace libtorch {
namespace {

namespace optim = ::torch::optim;

std::string path_of(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

/// The state of one parameter, made as LibTorch's first step makes it where there is none yet.
template<class State, class Make>
State& state_of(optim::Optimizer& optimizer, const at::Tensor& parameter, Make make) {
  auto& state = optimizer.state()[c10::guts::to_string(parameter.unsafeGetTensorImpl())];
  if (!state) { state = std::make_unique<State>(make()); }
  return static_cast<State&>(*state);
}

at::Tensor zeros_for(const at::Tensor& parameter) { return at::zeros_like(parameter.detach(), {}, at::MemoryFormat::Preserve); }

template<class State, class Options>
variable_list adam_variables(optim::Optimizer& optimizer, const Options& options, const at::Tensor& parameter) {
  auto& state = state_of<State>(optimizer, parameter, [&] {
    State made;
    made.step(0);
    made.exp_avg(zeros_for(parameter));
    made.exp_avg_sq(zeros_for(parameter));
    if (options.amsgrad()) { made.max_exp_avg_sq(zeros_for(parameter)); }
    return made;
  });
  auto list = stepwell::variables({{"step", state.step()}, {"exp_avg", state.exp_avg()}, {"exp_avg_sq", state.exp_avg_sq()}});
  if (options.amsgrad()) { list.emplace_back("max_exp_avg_sq", state.max_exp_avg_sq()); }
  return list;
}

variable_list sgd_variables(optim::Optimizer& optimizer, const optim::SGDOptions& options, const at::Tensor& parameter) {
  if (options.momentum() == 0) { return {}; }
  if (options.dampening() != 0) {
    throw invalid_argument_error(
        "libtorch::variables: SGD with dampening begins otherwise than it goes on, which cannot be restored; "
        "leave the dampening out");
  }
  auto& state = state_of<optim::SGDParamState>(optimizer, parameter, [&] {
    optim::SGDParamState made;
    made.momentum_buffer(zeros_for(parameter));
    return made;
  });
  return stepwell::variables({{"momentum_buffer", state.momentum_buffer()}});
}

variable_list variables_of(optim::Optimizer& optimizer, const optim::OptimizerOptions& options, const at::Tensor& parameter) {
  if (dynamic_cast<optim::Adam*>(&optimizer)) {
    return adam_variables<optim::AdamParamState>(optimizer, static_cast<const optim::AdamOptions&>(options), parameter);
  }
  if (dynamic_cast<optim::AdamW*>(&optimizer)) {
    return adam_variables<optim::AdamWParamState>(optimizer, static_cast<const optim::AdamWOptions&>(options), parameter);
  }
  if (dynamic_cast<optim::SGD*>(&optimizer)) { return sgd_variables(optimizer, static_cast<const optim::SGDOptions&>(options), parameter); }
  throw invalid_argument_error("libtorch::variables: the state of Adam, AdamW and SGD is known, and this optimiser is another");
}

}  // namespace

variable_list variables(const ::torch::nn::Module& module) {
  variable_list list;
  for (const auto& parameter : module.named_parameters()) { list.emplace_back(path_of(parameter.key()), parameter.value()); }
  for (const auto& buffer : module.named_buffers()) { list.emplace_back(path_of(buffer.key()), buffer.value()); }
  return list;
}

variable_list variables(optim::Optimizer& optimizer, const ::torch::nn::Module& module) {
  std::map<const void*, std::string> names;
  for (const auto& parameter : module.named_parameters()) { names[parameter.value().unsafeGetTensorImpl()] = path_of(parameter.key()); }
  variable_list list;
  for (auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto named = names.find(parameter.unsafeGetTensorImpl());
      if (named == names.end()) {
        throw invalid_argument_error("libtorch::variables: the optimiser has a parameter that is none of the module's");
      }
      for (const auto& variable : variables_of(optimizer, group.options(), parameter)) {
        list.push_back(variable.renamed(named->second + "/" + variable.name()));
      }
    }
  }
  return list;
}

}  // namespace libtorch
}  // namespace stepwell
