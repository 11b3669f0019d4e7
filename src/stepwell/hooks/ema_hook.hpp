// SPDX-License-Identifier: Apache-2.0
//
// Keeps an exponential moving average of the model's variables (TensorFlow's ExponentialMovingAverage).
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hook/hook.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// Everything has a default.
struct ema_options {
  /// Of the average's past in each update; from 0 up to but without 1.
  double decay = 0.999;
  /// Forgets faster at first: the decay of update n, counted from 0, is at most (1 + n) / (10 + n).
  bool num_updates = false;
  /// Starts from nothing instead of from the initial values, and corrects for it: the first update is the average then.
  bool zero_debias = false;
  /// Which variables, by name; null: all of floats or doubles, and no other can be.
  std::function<bool(std::string_view)> only = nullptr;
  /// What its state is called in checkpoints; two in one session must be named apart.
  std::string name = "ema";
};

/// After each run moves the averages towards the model's variables; they are part of the checkpoint, as
/// `stepwell/hook/NAME/average/VARIABLE`. `ema_hook{model, {.decay = 0.9999}}`.
///
/// For evaluation `swap_in()` puts the averages into the model and `swap_out()` takes them out again. In between no run is
/// made and nothing is saved or restored: these fail. A session that is closed swaps out first.
/// @lifetime The model must outlive it.
/// @threads  That of the session.
/// @cost     Memory for the averages; in each run one pass over them and the variables, and the model's `variables()`.
class ema_hook {
public:
  static constexpr auto phase = hook_phase::average;

  /// @errors `invalid_argument_error` for a decay out of range, or where there is nothing to average.
  template<class Model>
    requires requires(Model& model) {
      { model.variables() } -> std::same_as<variable_list>;
    }
  explicit ema_hook(Model& model, ema_options options = {})
      : ema_hook(std::function<variable_list()>([&model] { return model.variables(); }), std::move(options)) {}

  void begin();
  void after_create_session(auto& /*session*/, auto& /*threads*/) { start(); }
  void before_run(auto& /*context*/) const {
    if (is_swapped_in_) [[unlikely]] { refuse("a run"); }
  }
  void after_run(auto& /*context*/, const auto&) { update(); }
  void end(auto& /*session*/) { leave(); }

  /// Exchanges the model's values and the averages. @errors `failed_precondition_error` when that is done already, or a
  /// variable was resized.
  void swap_in();
  /// The model's own values again. @errors As `swap_in`.
  void swap_out();
  [[nodiscard]] bool is_swapped_in() const noexcept { return is_swapped_in_; }

  /// Copies the averages into another model's variables of these names, all of which it must have; others stay.
  /// @errors `invalid_argument_error` naming a variable that is missing, or of another type or shape; nothing is copied
  ///         then. `failed_precondition_error` while swapped in.
  template<class Model>
  void copy_to(Model& other) const {
    copy_into(other.variables());
  }

  /// Updates made so far, those of earlier runs included.
  [[nodiscard]] std::int64_t updates() const noexcept { return updates_; }

  /// @errors `failed_precondition_error` while swapped in: then neither the model nor this is what belongs into a checkpoint.
  [[nodiscard]] variable_list variables();
  [[nodiscard]] const std::string& state_name() const noexcept { return options_.name; }

private:
  struct averaged {
    std::string name;
    tensor value;
  };

  ema_hook(std::function<variable_list()> model, ema_options options);

  void start();
  void update();
  void leave();
  void exchange();
  void copy_into(const variable_list& other) const;
  variable_list live() const;
  [[noreturn]] void refuse(std::string_view what) const;

  std::function<variable_list()> model_;
  ema_options options_;
  std::vector<averaged> averages_;  // in the order of the model's list
  std::int64_t updates_ = 0;
  double decays_multiplied_ = 1;  // all decays so far
  bool is_swapped_in_ = false;
};

/// Where an `ema_hook` with these options keeps the averages of `variables`: for `restore_options::names`, to restore or
/// evaluate a model with averages in the place of its values.
[[nodiscard]] std::map<std::string, std::string, std::less<>> ema_names(const variable_list& variables, const ema_options& options = {});

}  // namespace stepwell
