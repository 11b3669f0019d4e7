// SPDX-License-Identifier: Apache-2.0
//
// The state of LibTorch's optimisers as variables.
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/torch/detail/copied_tensor.hpp"
#include "stepwell/torch/schedule.hpp"
#include "stepwell/torch/torch.hpp"

#include <c10/util/StringUtil.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
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

/// The names of the parameters, by their address.
using parameter_names = std::map<const void*, std::string>;

/// Lists the options of one parameter group that are numbers. They are looked up at each access, because a program may replace the options.
template<class Options>
class option_list {
public:
  /// `changes`: a text to which each restore adds the options whose values it changes.
  option_list(optim::Optimizer& optimizer, std::size_t group, std::shared_ptr<std::string> changes)
      : optimizer_(&optimizer), group_(group), changes_(std::move(changes)) {}

  template<class Value>
  option_list& add(const std::string& name, Value& (Options::*option)() noexcept) {
    return add(
        name, [option](Options& all) { return (all.*option)(); },
        [option](Options& all, const Value& restored) { (all.*option)() = restored; });
  }
  /// Adds an option that decides which state there is for a parameter. A restore cannot change this decision.
  template<class Value>
  option_list& add_decisive(const std::string& name, Value& (Options::*option)() noexcept) {
    return add(
        name, [option](Options& all) { return (all.*option)(); },
        [option, name](Options& all, const Value& restored) {
          auto& now = (all.*option)();
          if ((now != Value()) != (restored != Value())) {
            throw invalid_argument_error(
                c10::str("the optimiser of the checkpoint has ", name, " = ", restored, ", and this one has ", now,
                         ", so it has other state for each parameter; construct it with the value of the checkpoint"));
          }
          now = restored;
        });
  }
  template<class Get, class Set>
  option_list& add(const std::string& name, Get get, Set set) {
    const auto find = [optimizer = optimizer_, group = group_]() -> Options& {
      return static_cast<Options&>(optimizer->param_groups().at(group).options());
    };
    using value = std::remove_cvref_t<decltype(get(find()))>;
    const auto label = c10::str(name, " of parameter group ", group_);
    auto variable = variable_ref(
        c10::str("param_groups/", group_, "/", name), [find, get] { return get(find()); },
        [find, get, set, label, changes = changes_](value restored) {
          const auto before = get(find());
          set(find(), restored);
          if (before == restored) { return; }
          if (!changes->empty()) { *changes += ", "; }
          *changes += label + " from " + text_of(before) + " to " + text_of(restored);
        });
    list_.push_back(variable.optional());
    return *this;
  }
  [[nodiscard]] variable_list take() { return std::move(list_); }

private:
  static std::string text_of(const auto& value) { return c10::str(value); }
  static std::string text_of(const std::array<double, 2>& pair) { return c10::str("(", pair[0], ", ", pair[1], ")"); }

  optim::Optimizer* optimizer_;
  std::size_t group_;
  std::shared_ptr<std::string> changes_;
  variable_list list_;
};

template<class Options>
variable_list adam_options(option_list<Options> list) {
  return list.add("lr", &Options::lr)
      .add(
          "betas", [](Options& all) { return std::array{std::get<0>(all.betas()), std::get<1>(all.betas())}; },
          [](Options& all, const std::array<double, 2>& betas) { all.betas(std::make_tuple(betas[0], betas[1])); })
      .add("eps", &Options::eps)
      .add("weight_decay", &Options::weight_decay)
      .add_decisive("amsgrad", &Options::amsgrad)
      .take();
}

variable_list options_of(optim::Optimizer& optimizer, std::size_t group, const std::shared_ptr<std::string>& changes) {
  const auto list = [&]<class Options>(std::type_identity<Options>) { return option_list<Options>(optimizer, group, changes); };
  if (dynamic_cast<optim::Adam*>(&optimizer)) { return adam_options(list(std::type_identity<optim::AdamOptions>())); }
  if (dynamic_cast<optim::AdamW*>(&optimizer)) { return adam_options(list(std::type_identity<optim::AdamWOptions>())); }
  if (dynamic_cast<optim::Adagrad*>(&optimizer)) {
    using options = optim::AdagradOptions;
    return list(std::type_identity<options>())
        .add("lr", &options::lr)
        .add("lr_decay", &options::lr_decay)
        .add("weight_decay", &options::weight_decay)
        .add("initial_accumulator_value", &options::initial_accumulator_value)
        .add("eps", &options::eps)
        .take();
  }
  if (dynamic_cast<optim::RMSprop*>(&optimizer)) {
    using options = optim::RMSpropOptions;
    return list(std::type_identity<options>())
        .add("lr", &options::lr)
        .add("alpha", &options::alpha)
        .add("eps", &options::eps)
        .add("weight_decay", &options::weight_decay)
        .add_decisive("momentum", &options::momentum)
        .add_decisive("centered", &options::centered)
        .take();
  }
  if (dynamic_cast<optim::SGD*>(&optimizer)) {
    using options = optim::SGDOptions;
    return list(std::type_identity<options>())
        .add("lr", &options::lr)
        .add_decisive("momentum", &options::momentum)
        .add_decisive("dampening", &options::dampening)
        .add("weight_decay", &options::weight_decay)
        .add("nesterov", &options::nesterov)
        .take();
  }
  using options = optim::LBFGSOptions;  // without history_size, the size of a tensor of its state, which must be the same in any case
  return list(std::type_identity<options>())
      .add("lr", &options::lr)
      .add("max_iter", &options::max_iter)
      .add(
          "max_eval", [](options& all) { return all.max_eval().value_or(-1); },
          [](options& all, std::int64_t most) { all.max_eval(most < 0 ? c10::nullopt : c10::optional<std::int64_t>(most)); })
      .add("tolerance_grad", &options::tolerance_grad)
      .add("tolerance_change", &options::tolerance_change)
      .take();
}

/// Returns the names of the parameters, one a line, with an empty line between two groups.
std::string text_of_groups(const optim::Optimizer& optimizer, const parameter_names& names) {
  std::string text;
  for (const auto& group : optimizer.param_groups()) {
    if (!text.empty()) { text += '\n'; }
    for (const auto& parameter : group.params()) { text += names.at(parameter.unsafeGetTensorImpl()) + '\n'; }
  }
  return text;
}

/// Logs the options that a restore has changed, and a warning if the parameters of the restored groups are not those of the optimiser.
void log_restored(const std::string& restored, const std::string& own, const std::string& changes) {
  if (!changes.empty()) {
    log_info("the options of the optimiser are those of the checkpoint: " + changes +
             ". To train with other ones, set them after the session is constructed");
  }
  if (restored == own) { return; }
  const auto lines_of = [](const std::string& text) {
    std::set<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) { lines.insert(line); }
    return lines;
  };
  const auto known = lines_of(own);
  std::string lost;
  for (const auto& name : lines_of(restored)) {
    if (!known.contains(name)) { lost += (lost.empty() ? "" : ", ") + name; }
  }
  if (lost.empty()) {
    return log_warning(
        "libtorch::variables: the parameters of the optimiser are in other groups than in the checkpoint; the options of each "
        "group are those of the group with the same number there");
  }
  log_warning(
      "libtorch::variables: the optimiser does not have these parameters of the optimiser of the checkpoint, so their state, such as "
      "moments, and the options of their group are not restored: " +
      lost +
      ". If add_param_group adds a group during the training, call it before the session is constructed instead, and begin to train "
      "the group by its learning rate or by requires_grad");
}

/// Returns the state of all parameters, and the options of all groups.
variable_list variables_with(optim::Optimizer& optimizer, parameter_names names) {
  const bool is_lbfgs = dynamic_cast<optim::LBFGS*>(&optimizer) != nullptr;
  const auto changes = std::make_shared<std::string>();
  variable_list list;
  variable_list options;
  std::set<const void*> known;  // a module that is registered twice has its parameters twice, with one state
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
      if (is_lbfgs || !known.insert(named->first).second) { continue; }
      for (const auto& variable : variables_of(optimizer, group.options(), parameter)) {
        list.push_back(variable.renamed(named->second + "/" + variable.name()));
      }
    }
    if (is_lbfgs) { list = lbfgs_variables(optimizer, group); }
    for (auto& option : options_of(optimizer, number, changes)) { options.push_back(std::move(option)); }
  }
  list.insert(list.end(), options.begin(), options.end());
  // Restored last, because functions are called in the order of the list.
  const auto own = [&optimizer, names = std::move(names)] { return text_of_groups(optimizer, names); };
  list.push_back(variable_ref("param_groups/parameters", own, [own, changes](const std::string& restored) {
                   log_restored(restored, own(), std::exchange(*changes, {}));
                 }).optional());
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
  parameter_names names;
  for (const auto& parameter : module.named_parameters()) {
    names[parameter.value().unsafeGetTensorImpl()] = detail::path_of(parameter.key());
  }
  return variables_with(optimizer, std::move(names));
}

variable_list variables(optim::Optimizer& optimizer, std::initializer_list<named_parameters> parameters) {
  parameter_names names;
  for (const auto& given : parameters) {
    for (const auto& [name, tensor] : given.tensors()) { names[tensor.unsafeGetTensorImpl()] = name; }
  }
  return variables_with(optimizer, std::move(names));
}

variable_list variables(optim::LRScheduler& scheduler) {
  struct access : optim::LRScheduler {
    static unsigned& steps_of(optim::LRScheduler& of) { return of.*(&access::step_count_); }
  };
  return stepwell::variables({{"step_count", access::steps_of(scheduler)}});
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
