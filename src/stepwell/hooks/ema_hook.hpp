// SPDX-License-Identifier: Apache-2.0
//
// A hook that keeps an exponential moving average of the model's variables (TensorFlow's ExponentialMovingAverage).
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/protocol/hook.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

class coordinator;
class session_requests;

/// Options of `ema_hook`. Every option has a default.
struct ema_options {
  /// The weight of the previous average in each update, at least 0 and below 1.
  double decay = 0.999;
  /// If true, the previous average has less weight in early updates: the decay of update number n, counted from 0, is the smaller one of
  /// `decay` and (1 + n) / (10 + n).
  bool num_updates = false;
  /// If true, the averages do not depend on the initial values of the variables. They are weighted means of the values after each run.
  /// After the first update, the averages equal the variables.
  bool zero_debias = false;
  /// Selects variables by name. If null, all variables are selected. Variables of other types than float and double, and
  /// variables that functions read and write, are never averaged.
  std::function<bool(std::string_view)> only = nullptr;
  /// The name of the hook's state in checkpoints. Two hooks of one session need different names.
  std::string name = "ema";
};

namespace detail {
template<class Model>
concept lists_variables = requires(Model& model) {
  { model.variables() } -> std::same_as<variable_list>;
};
}  // namespace detail

/// Keeps one average for each selected variable of the model, and moves the averages towards the variables after each run. The averages are
/// part of the checkpoint, as `stepwell/hook/NAME/average/VARIABLE`. Example: `ema_hook{{.decay = 0.9999}, model}`.
///
/// For evaluation, `swap_in()` exchanges the values of the variables with the averages, and `swap_out()` exchanges them back. While the
/// averages are swapped in, runs, saves, restores and new sessions fail. If the averages are still swapped in when `end` of the hook is
/// called at the close, the hook calls `swap_out()` and logs a warning.
/// @lifetime The model must outlive the hook.
/// @threads  The session's thread.
/// @cost     Memory for the averages. In each run, one pass over the averages and the variables, and one call of the model's `variables()`.
///           If the device supports it (`device_elements::make_average`), the average of a variable on a device is stored and computed on
///           that device.
class ema_hook {
public:
  static constexpr auto phase = hook_phase::average;

  /// @errors `invalid_argument_error` if the decay is out of range, the name is empty, or there is no variable to average.
  template<class Model>
    requires detail::lists_variables<Model>
  ema_hook(ema_options options, Model& model)
      : ema_hook(std::move(options), std::function<variable_list()>([&model] { return model.variables(); })) {}
  /// Uses the default options.
  template<class Model>
    requires(detail::lists_variables<Model> && !std::same_as<Model, ema_hook>)
  explicit ema_hook(Model& model) : ema_hook(ema_options{}, model) {}

  void begin();
  void after_create_session(const session_requests& session, coordinator& threads);
  void before_run(const session_requests& /*session*/) const {
    if (is_swapped_in_) [[unlikely]] { refuse("a run"); }
  }
  void after_run(const session_requests& /*session*/, const auto&) { update(); }
  void end(const session_requests& session);

  /// Exchanges the values of the model's variables with the averages.
  /// @errors `failed_precondition_error` before the first session, if the averages are swapped in already, or if the model's variables have
  ///   changed in name, number, type or shape.
  void swap_in();
  /// Exchanges the values back, after `swap_in`.
  /// @errors `failed_precondition_error` if the averages are not swapped in, or if the model's variables have changed.
  void swap_out();

  /// Copies the averages into the variables of the model `other`. `other` must have a variable with the name of each average. The variables
  /// of `other` that have no average keep their values.
  /// @errors `invalid_argument_error` if `other` lacks a variable, or if a variable has another type or shape than its average; the message
  ///   names the variable, and nothing is copied. `failed_precondition_error` before the first session, and while the averages are swapped
  ///   in.
  template<class Model>
  void copy_to(Model& other) const {
    copy_into(other.variables());
  }

  /// Returns the number of updates, including those of earlier runs.
  [[nodiscard]] std::int64_t updates() const noexcept { return updates_; }

  /// Returns the state of the hook.
  /// @errors `failed_precondition_error` while the averages are swapped in, because a checkpoint would then contain wrong values of the
  ///         model and of the averages.
  [[nodiscard]] variable_list variables();
  [[nodiscard]] const std::string& state_name() const noexcept { return options_.name; }

private:
  struct averaged {
    std::string name;
    stepwell::dtype dtype;
    tensor_shape shape;
    tensor value;                             // empty if the average is on a device
    std::shared_ptr<device_elements> device;  // null if the average is in host memory
  };

  ema_hook(ema_options options, std::function<variable_list()> model);

  void update();
  void make_device_averages(const std::function<bool(const averaged&)>& which);
  static std::span<const std::byte> bytes_of(const averaged& average, std::vector<std::byte>& copy);
  void exchange();
  void copy_into(const variable_list& other) const;
  variable_list live() const;
  void check_values() const;
  [[noreturn]] void refuse(std::string_view what) const;

  std::function<variable_list()> model_;
  ema_options options_;
  std::vector<averaged> averages_;  // in the order of the model's list
  std::int64_t updates_ = 0;
  double decays_multiplied_ = 1;  // product of all decays so far
  bool has_values_ = false;       // a session has begun
  bool is_swapped_in_ = false;
};

/// Returns a map for the variables that an `ema_hook` with these options averages: from the name of the variable to the name under which
/// the hook saves the average. Pass the map as `restore_options::names`, to restore or evaluate a model with the averages instead of the
/// model's own values.
[[nodiscard]] std::map<std::string, std::string, std::less<>> ema_names(const variable_list& variables, const ema_options& options = {});

}  // namespace stepwell
