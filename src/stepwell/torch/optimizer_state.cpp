// SPDX-License-Identifier: Apache-2.0
//
// The state of LibTorch's optimisers as variables.
#include "stepwell/base/error.hpp"
#include "stepwell/torch/detail/copied_tensor.hpp"
#include "stepwell/torch/schedule.hpp"
#include "stepwell/torch/torch.hpp"

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::libtorch {
namespace {

namespace optim = ::torch::optim;
using state_map = std::remove_cvref_t<decltype(std::declval<optim::Optimizer&>().state())>;

/// Returns the key of a parameter's state: its address since LibTorch 2, the address as text in earlier versions.
template<class Key = state_map::key_type>
Key key_of(const at::Tensor& parameter) {
  if constexpr (std::convertible_to<void*, Key>) {
    return parameter.unsafeGetTensorImpl();
  } else {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  }
}

/// Returns the state of one parameter. If there is none yet, creates it like LibTorch's first step.
template<class State, class Make>
State& state_of(optim::Optimizer& optimizer, const at::Tensor& parameter, Make make) {
  auto& state = optimizer.state()[key_of(parameter)];
  if (!state) { state = std::make_unique<State>(make()); }
  return static_cast<State&>(*state);
}

at::Tensor zeros_for(const at::Tensor& parameter) { return at::zeros_like(parameter.detach(), {}, at::MemoryFormat::Preserve); }

/// Returns a copied variable with the type of `like`.
variable_ref copied(std::string name, const at::Tensor& like, tensor_shape shape, detail::copied_tensor::get_function get,
                    detail::copied_tensor::set_function set) {
  const auto type = stepwell::variable_ref("", like).dtype();
  return {std::move(name), std::make_shared<detail::copied_tensor>(tensor_view{type, std::move(shape), {}}, like.scalar_type(),
                                                                   std::move(get), std::move(set))};
}
tensor_shape shape_of(const at::Tensor& value) { return {value.sizes().begin(), value.sizes().end()}; }

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

variable_list adagrad_variables(optim::Optimizer& optimizer, const optim::AdagradOptions& options, const at::Tensor& parameter) {
  auto& state = state_of<optim::AdagradParamState>(optimizer, parameter, [&] {
    optim::AdagradParamState made;
    made.step(0);
    made.sum(at::full_like(parameter.detach(), options.initial_accumulator_value(), {}, at::MemoryFormat::Preserve));
    return made;
  });
  return stepwell::variables({{"step", state.step()}, {"sum", state.sum()}});
}

variable_list rmsprop_variables(optim::Optimizer& optimizer, const optim::RMSpropOptions& options, const at::Tensor& parameter) {
  auto& state = state_of<optim::RMSpropParamState>(optimizer, parameter, [&] {
    optim::RMSpropParamState made;
    made.step(0);
    made.square_avg(zeros_for(parameter));
    if (options.momentum() > 0) { made.momentum_buffer(zeros_for(parameter)); }
    if (options.centered()) { made.grad_avg(zeros_for(parameter)); }
    return made;
  });
  auto list = stepwell::variables({{"step", state.step()}, {"square_avg", state.square_avg()}});
  if (options.momentum() > 0) { list.emplace_back("momentum_buffer", state.momentum_buffer()); }
  if (options.centered()) { list.emplace_back("grad_avg", state.grad_avg()); }
  return list;
}

/// The momentum of a parameter with dampening. LibTorch applies dampening only from the second step on, so the first step must find
/// no momentum. A checkpoint records whether there is a momentum.
class dampened_momentum {
public:
  dampened_momentum(optim::Optimizer& optimizer, at::Tensor parameter) : optimizer_(&optimizer), parameter_(std::move(parameter)) {}

  [[nodiscard]] bool is_there() const { return optimizer_->state().count(key_of(parameter_)) != 0; }
  [[nodiscard]] at::Tensor get() const {
    return is_there() ? state_of<optim::SGDParamState>(*optimizer_, parameter_, [] { return optim::SGDParamState(); }).momentum_buffer()
                      : zeros_for(parameter_);
  }
  void set(const at::Tensor& value) {
    restored_ = value.clone().to(parameter_.device());
    put();
  }
  void set_whether_there(bool is_there) {
    is_wanted_ = is_there;
    put();
  }

private:
  /// Applies the restored values. The two values may be restored in either order.
  void put() {
    if (is_wanted_ == false) {
      optimizer_->state().erase(key_of(parameter_));
    } else if (restored_) {
      state_of<optim::SGDParamState>(*optimizer_, parameter_, [] { return optim::SGDParamState(); }).momentum_buffer(*restored_);
    }
  }

  optim::Optimizer* optimizer_;
  at::Tensor parameter_;
  std::optional<at::Tensor> restored_;
  std::optional<bool> is_wanted_;
};

variable_list sgd_variables(optim::Optimizer& optimizer, const optim::SGDOptions& options, const at::Tensor& parameter) {
  if (options.momentum() == 0) { return {}; }
  if (options.dampening() == 0) {
    auto& state = state_of<optim::SGDParamState>(optimizer, parameter, [&] {
      optim::SGDParamState made;
      made.momentum_buffer(zeros_for(parameter));
      return made;
    });
    return stepwell::variables({{"momentum_buffer", state.momentum_buffer()}});
  }
  const auto momentum = std::make_shared<dampened_momentum>(optimizer, parameter);
  variable_list list;
  list.push_back(copied(
      "momentum_buffer", parameter, shape_of(parameter), [momentum] { return momentum->get(); },
      [momentum](const at::Tensor& value) { momentum->set(value); }));
  list.push_back(copied(
      "has_momentum", at::empty({}, at::kBool), {}, [momentum] { return at::full({}, momentum->is_there(), at::kBool); },
      [momentum](const at::Tensor& value) { momentum->set_whether_there(value.item<bool>()); }));
  return list;
}

/// The history of LBFGS. It grows up to `history_size` rows and is saved at full size, padded with zeros.
class lbfgs_history {
public:
  lbfgs_history(optim::LBFGSParamState& state, std::int64_t most) : state_(&state), most_(most) {}

  [[nodiscard]] std::int64_t most() const noexcept { return most_; }
  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(state_->old_dirs().size()); }
  [[nodiscard]] at::Tensor get(const std::deque<at::Tensor>& rows, const at::Tensor& like, tensor_shape shape) const {
    auto all = at::zeros(shape, like.options());
    for (std::size_t i = 0; i < rows.size(); ++i) { all[static_cast<std::int64_t>(i)].copy_(rows[i]); }
    return all;
  }
  void set(std::deque<at::Tensor>& rows, const at::Tensor& all, const at::Tensor& like) {
    rows.clear();
    for (std::int64_t i = 0; i < restored_length_.value_or(most_); ++i) { rows.push_back(all[i].clone().to(like.device())); }
  }
  /// Sets the number of rows, and removes further rows that were restored before.
  void set_length(std::int64_t length) {
    restored_length_ = std::clamp<std::int64_t>(length, 0, most_);
    for (auto* rows : {&state_->old_dirs(), &state_->old_stps(), &state_->ro()}) {
      while (static_cast<std::int64_t>(rows->size()) > *restored_length_) { rows->pop_back(); }
    }
  }

private:
  optim::LBFGSParamState* state_;
  std::int64_t most_;
  std::optional<std::int64_t> restored_length_;
};

variable_ref lbfgs_rows(std::string name, std::deque<at::Tensor>& rows, const std::shared_ptr<lbfgs_history>& history,
                        const at::Tensor& like, tensor_shape shape) {
  return copied(
      std::move(name), like, shape, [&rows, history, like, shape] { return history->get(rows, like, shape); },
      [&rows, history, like](const at::Tensor& all) { history->set(rows, all, like); });
}
/// Returns a variable for a tensor that is undefined before the first step.
variable_ref lbfgs_tensor(std::string name, at::Tensor& value, const at::Tensor& like, tensor_shape shape) {
  return copied(
      std::move(name), like, shape, [&value, like, shape] { return value.defined() ? value : at::zeros(shape, like.options()); },
      [&value, like](const at::Tensor& copy) { value = copy.clone().to(like.device()); });
}

variable_list lbfgs_variables(optim::Optimizer& optimizer, optim::OptimizerParamGroup& group) {
  const auto like = group.params().at(0).detach();
  auto& state = state_of<optim::LBFGSParamState>(optimizer, group.params().at(0), [] { return optim::LBFGSParamState(); });
  std::int64_t size = 0;
  for (const auto& parameter : group.params()) { size += parameter.numel(); }
  const auto history = std::make_shared<lbfgs_history>(state, static_cast<const optim::LBFGSOptions&>(group.options()).history_size());
  auto list = stepwell::variables(
      {{"func_evals", state.func_evals()}, {"n_iter", state.n_iter()}, {"t", state.t()}, {"prev_loss", state.prev_loss()}});
  list.push_back(lbfgs_tensor("d", state.d(), like, {size}));
  list.push_back(lbfgs_tensor("H_diag", state.H_diag(), like, {}));
  list.push_back(lbfgs_tensor("prev_flat_grad", state.prev_flat_grad(), like, {size}));
  list.push_back(lbfgs_rows("old_dirs", state.old_dirs(), history, like, {history->most(), size}));
  list.push_back(lbfgs_rows("old_stps", state.old_stps(), history, like, {history->most(), size}));
  list.push_back(lbfgs_rows("ro", state.ro(), history, like, {history->most()}));
  list.push_back(copied(
      "history", at::empty({}, at::kLong), {}, [history] { return at::full({}, history->length(), at::kLong); },
      [history](const at::Tensor& length) { history->set_length(length.item<std::int64_t>()); }));
  return list;
}

variable_list variables_of(optim::Optimizer& optimizer, const optim::OptimizerOptions& options, const at::Tensor& parameter) {
  if (dynamic_cast<optim::Adam*>(&optimizer)) {
    return adam_variables<optim::AdamParamState>(optimizer, static_cast<const optim::AdamOptions&>(options), parameter);
  }
  if (dynamic_cast<optim::AdamW*>(&optimizer)) {
    return adam_variables<optim::AdamWParamState>(optimizer, static_cast<const optim::AdamWOptions&>(options), parameter);
  }
  if (dynamic_cast<optim::Adagrad*>(&optimizer)) {
    return adagrad_variables(optimizer, static_cast<const optim::AdagradOptions&>(options), parameter);
  }
  if (dynamic_cast<optim::RMSprop*>(&optimizer)) {
    return rmsprop_variables(optimizer, static_cast<const optim::RMSpropOptions&>(options), parameter);
  }
  if (dynamic_cast<optim::SGD*>(&optimizer)) { return sgd_variables(optimizer, static_cast<const optim::SGDOptions&>(options), parameter); }
  throw invalid_argument_error(
      "libtorch::variables: this optimiser is not supported, only Adam, AdamW, Adagrad, RMSprop, SGD and LBFGS are; list its "
      "state yourself");
}

/// Returns the state of all parameters. `names` has the name of each parameter.
variable_list variables_with(optim::Optimizer& optimizer, const std::map<const void*, std::string>& names) {
  const bool is_lbfgs = dynamic_cast<optim::LBFGS*>(&optimizer) != nullptr;
  variable_list list;
  for (std::size_t number = 0; number < optimizer.param_groups().size(); ++number) {
    auto& group = optimizer.param_groups()[number];
    for (std::size_t i = 0; i < group.params().size(); ++i) {
      const auto& parameter = group.params()[i];
      const auto named = names.find(parameter.unsafeGetTensorImpl());
      if (named == names.end()) {
        throw invalid_argument_error("libtorch::variables: parameter " + std::to_string(i) + " of group " + std::to_string(number) +
                                     " of the optimiser, of shape " + to_string(shape_of(parameter)) +
                                     ", has no name: it belongs to none of the given modules and tensors");
      }
      if (is_lbfgs) { continue; }
      for (const auto& variable : variables_of(optimizer, group.options(), parameter)) {
        list.push_back(variable.renamed(named->second + "/" + variable.name()));
      }
    }
    if (is_lbfgs) { list = lbfgs_variables(optimizer, group); }
  }
  return list;
}

}  // namespace

named_parameters::named_parameters(const std::string& name, const ::torch::nn::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    tensors_.emplace_back(name + "/" + detail::path_of(parameter.key()), parameter.value());
  }
}

named_parameters::named_parameters(const std::string& name, const ::torch::jit::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    tensors_.emplace_back(name + "/" + detail::path_of(parameter.name), parameter.value);
  }
}

variable_list variables(optim::Optimizer& optimizer, const ::torch::nn::Module& module) {
  std::map<const void*, std::string> names;
  for (const auto& parameter : module.named_parameters()) {
    names[parameter.value().unsafeGetTensorImpl()] = detail::path_of(parameter.key());
  }
  return variables_with(optimizer, names);
}

variable_list variables(optim::Optimizer& optimizer, std::initializer_list<named_parameters> parameters) {
  std::map<const void*, std::string> names;
  for (const auto& given : parameters) {
    for (const auto& [name, tensor] : given.tensors()) { names[tensor.unsafeGetTensorImpl()] = name; }
  }
  return variables_with(optimizer, names);
}

learning_rate::learning_rate(optim::Optimizer& optimizer, std::vector<std::size_t> groups)
    : optimizer_(&optimizer), groups_(std::move(groups)) {
  const auto count = optimizer.param_groups().size();
  for (const auto group : groups_) {
    if (group >= count) {
      throw invalid_argument_error("libtorch::scheduled: the optimiser has " + std::to_string(count) +
                                   " parameter groups, so none has the number " + std::to_string(group));
    }
  }
}

void learning_rate::operator()(double rate) const {
  auto& all = optimizer_->param_groups();
  for (const auto group : groups_) { all[group].options().set_lr(rate); }
  if (!groups_.empty()) { return; }
  for (auto& group : all) { group.options().set_lr(rate); }
}

}  // namespace stepwell::libtorch
