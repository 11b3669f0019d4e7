// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/ema_hook.hpp"

#include "stepwell/base/detail/unset.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/kernel/detail/statistics.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/state_names.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

namespace stepwell {
namespace {

constexpr std::string_view average_prefix = "average/";

bool is_wanted(const variable_ref& variable, const ema_options& options) {
  const bool can_be = variable.dtype() == dtype::float32 || variable.dtype() == dtype::float64;
  return can_be && !variable.has_accessors() && (!options.only || options.only(variable.name()));
}

/// Returns the elements of `variable`. The elements of a variable on a device are copied to `copy` first.
template<class T>
std::span<const T> elements(const variable_ref& variable, std::vector<std::byte>& copy) {
  auto bytes = variable.bytes();
  if (!variable.is_addressable()) {
    copy.resize(variable.size_bytes());
    variable.copy_to(copy);
    bytes = copy;
  }
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

std::string describe(dtype type, const tensor_shape& shape) { return fmt::format("{} {}", to_string(type), to_string(shape)); }

}  // namespace

ema_hook::ema_hook(ema_options options, std::function<variable_list()> model) : model_(std::move(model)), options_(std::move(options)) {
  if (!(options_.decay >= 0 && options_.decay < 1)) {
    throw invalid_argument_error(fmt::format("ema_hook: invalid decay={}; it must be at least 0 and below 1", options_.decay));
  }
  if (options_.name.empty()) {
    throw invalid_argument_error("ema_hook: the name is empty; the state of the hook is saved under this name");
  }
  for (const auto& variable : model_()) {
    if (!is_wanted(variable, options_)) { continue; }
    auto& average = averages_.emplace_back(averaged{variable.name(), variable.dtype(), variable.shape(), {}, variable.make_average()});
    if (!average.device) { average.value = tensor(average.dtype, average.shape); }
  }
  if (averages_.empty()) { throw invalid_argument_error("ema_hook: the model has no variable of floats or doubles to average"); }
}

void ema_hook::begin() {
  if (is_swapped_in_) { refuse("a new session"); }
  updates_ = 0;
  decays_multiplied_ = 1;
  make_device_averages([](const averaged&) { return true; });  // a copy of this hook has the same ones
  std::vector<std::byte> unset;
  for (auto& average : averages_) {
    if (average.device) {
      unset.resize(static_cast<std::size_t>(element_count(average.shape)) * size_of(average.dtype));
      detail::mark_unset(unset);
      average.device->copy_from(unset);
    } else {
      detail::mark_unset(average.value.bytes());
    }
  }
}

/// Sets the averages that were not restored to the model's current values.
void ema_hook::after_create_session(const session_requests& /*session*/, coordinator& /*threads*/) {
  has_values_ = true;
  std::vector<std::byte> copy;
  const auto is_restored = [&](const averaged& average) { return updates_ > 0 && !detail::is_unset(bytes_of(average, copy)); };
  if (std::ranges::all_of(averages_, is_restored)) { return; }
  const auto is_missing = std::not_fn(is_restored);
  make_device_averages(is_missing);
  const auto variables = live();
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    if (!averages_[i].device && is_missing(averages_[i])) { variables[i].copy_to(averages_[i].value.bytes()); }
  }
}

/// Replaces averages on a device by the current values of the model, in memory of their own.
void ema_hook::make_device_averages(const std::function<bool(const averaged&)>& which) {
  if (std::ranges::none_of(averages_, [](const averaged& one) { return one.device != nullptr; })) { return; }
  const auto variables = live();
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    auto& average = averages_[i];
    if (!average.device || !which(average)) { continue; }
    average.device = variables[i].make_average();
    if (!average.device) {
      throw failed_precondition_error(fmt::format(
          "ema_hook: variable \"{}\" is no longer on the device of its average; move the model before the hook is made", average.name));
    }
  }
}

void ema_hook::update() {
  const auto n = static_cast<double>(updates_);
  const double decay = options_.num_updates ? std::min(options_.decay, (1 + n) / (10 + n)) : options_.decay;
  decays_multiplied_ *= decay;
  // The start value zero has a share in the average, which is the product of all decays. Dividing by the remaining share at every update
  // results in this weight.
  const double weight = options_.zero_debias ? (1 - decay) / (1 - decays_multiplied_) : 1 - decay;
  const auto variables = live();
  std::vector<std::byte> copy;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    if (averages_[i].device) {
      variables[i].add_to_average(*averages_[i].device, weight);
      continue;
    }
    auto& average = averages_[i].value;
    if (average.dtype() == dtype::float32) {
      kernel::move_towards(average.as<float>(), elements<float>(variables[i], copy), static_cast<float>(weight));
    } else {
      kernel::move_towards(average.as<double>(), elements<double>(variables[i], copy), weight);
    }
  }
  ++updates_;
}

/// Swaps out, so that the last checkpoint contains the trained values.
void ema_hook::end(const session_requests& /*session*/) {
  if (!is_swapped_in_) { return; }
  log_warning("ema_hook: the averages were still swapped in when the session closed; the model's own values are restored");
  swap_out();
}

void ema_hook::swap_in() {
  check_values();
  if (is_swapped_in_) { refuse("swapping in again"); }
  exchange();
  is_swapped_in_ = true;
}

void ema_hook::swap_out() {
  if (!is_swapped_in_) { throw failed_precondition_error("ema_hook: the averages are not swapped in; call swap_in first"); }
  exchange();
  is_swapped_in_ = false;
}

void ema_hook::exchange() {
  const auto variables = live();
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const auto average = averages_[i].value.bytes();
    if (averages_[i].device) {
      variables[i].exchange_with_average(*averages_[i].device);
    } else if (variables[i].is_addressable()) {
      std::ranges::swap_ranges(variables[i].writable_bytes(), average);
    } else {
      std::vector<std::byte> copy(variables[i].size_bytes());
      variables[i].copy_to(copy);
      variables[i].copy_from(average);
      std::ranges::copy(copy, average.begin());
    }
  }
}

void ema_hook::copy_into(const variable_list& other) const {
  check_values();
  if (is_swapped_in_) { refuse("copying the averages"); }
  std::vector<const variable_ref*> targets;
  for (const auto& [name, type, shape, value, device] : averages_) {
    const auto target = std::ranges::find(other, name, &variable_ref::name);
    if (target == other.end()) { throw invalid_argument_error(fmt::format("ema_hook: the other model has no variable \"{}\"", name)); }
    if (target->dtype() != type || target->shape() != shape) {
      throw invalid_argument_error(fmt::format("ema_hook: variable \"{}\" of the other model is {}, its average is {}", name,
                                               describe(target->dtype(), target->shape()), describe(type, shape)));
    }
    targets.push_back(&*target);
  }
  std::vector<std::byte> copy;
  for (std::size_t i = 0; i < averages_.size(); ++i) { targets[i]->copy_from(bytes_of(averages_[i], copy)); }
}

/// Returns the elements of an average. Those on a device are copied to `copy` first.
std::span<const std::byte> ema_hook::bytes_of(const averaged& average, std::vector<std::byte>& copy) {
  if (!average.device) { return average.value.bytes(); }
  copy.resize(static_cast<std::size_t>(element_count(average.shape)) * size_of(average.dtype));
  average.device->copy_to(copy);
  return copy;
}

/// Returns the current variables of the model that are averaged, in the order of the averages.
variable_list ema_hook::live() const {
  auto variables = model_();
  std::erase_if(variables, [&](const auto& variable) { return !is_wanted(variable, options_); });
  const auto is_same = [](const averaged& ours, const variable_ref& theirs) {
    return ours.name == theirs.name() && ours.dtype == theirs.dtype() && ours.shape == theirs.shape();
  };
  if (std::ranges::equal(averages_, variables, is_same)) { return variables; }
  throw failed_precondition_error(
      "ema_hook: the model's variables have changed in name, number, type or shape since the hook was made; they must stay as they are");
}

void ema_hook::check_values() const {
  if (has_values_) { return; }
  throw failed_precondition_error("ema_hook: there are no averages before the first session; give the hook to a session first");
}

void ema_hook::refuse(std::string_view what) const {
  throw failed_precondition_error(fmt::format("ema_hook: {} while the averages are swapped in; call swap_out first", what));
}

variable_list ema_hook::variables() {
  if (is_swapped_in_) { refuse("saving or restoring"); }
  variable_list all{{"num_updates", updates_}, {"decays_multiplied", decays_multiplied_}};
  for (auto& average : averages_) {
    const auto name = std::string(average_prefix) + average.name;
    all.push_back(average.device ? variable_ref(name, average.device) : variable_ref(name, average.value));
  }
  return all;
}

std::map<std::string, std::string, std::less<>> ema_names(const variable_list& variables, const ema_options& options) {
  std::map<std::string, std::string, std::less<>> names;
  for (const auto& variable : variables) {
    if (is_wanted(variable, options)) {
      names[variable.name()] = fmt::format("{}{}/{}{}", hook_state_prefix, options.name, average_prefix, variable.name());
    }
  }
  return names;
}

}  // namespace stepwell
