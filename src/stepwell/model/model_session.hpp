// SPDX-License-Identifier: Apache-2.0
//
// A raw session over the user's own type: anything with `step(args...)` and `variables()`.
#pragma once

#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/coro/detail/awaited.hpp"
#include "stepwell/creation/local_master.hpp"
#include "stepwell/creation/session_config.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/hook/stateful_hook.hpp"
#include "stepwell/model/detail/model_feeds.hpp"
#include "stepwell/model/model_traits.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/singular_monitored_session.hpp"

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell {

/// Runs a model's steps and counts them: plus one for each `step` that returns, hooked or raw; a `step` that throws adds
/// nothing. A model that has `std::int64_t& global_step()` owns the count itself.
///
/// Sessions that name the same master step one model together, see `master_seat`: then the count is everybody's, `run` takes
/// its turn, and whoever looks at the model in between holds `exclusive()`.
/// @lifetime The model must outlive it.
template<trainable_model Model>
class model_session {
public:
  using model_type = Model;
  using result_type = model_result<Model>;
  using outcome_type = run_outcome<result_type>;
  static_assert(!(has_concurrent_steps<Model> && owns_global_step<Model>),
                "stepwell: a model with concurrent steps cannot own the global step: it would be read while others write it");

  /// @errors `invalid_argument_error` if a variable has no name, the name of another, or one reserved for us.
  explicit(false) model_session(Model& model) : model_session(model, session_target{}) {}
  /// The same as a chief or worker at a master. @errors Those of `master_seat`, too.
  model_session(Model& model, const session_target& target) : model_(&model), config_(target.config), seat_(seat_at(target, model)) {
    const auto alone = seat_ ? seat_->enter_alone() : master_scope();
    look_at_step();
    check_variable_names(model.variables());
  }
  model_session(model_session&& other) noexcept
      : model_(other.model_), steps_(other.steps_), config_(std::move(other.config_)), seat_(std::move(other.seat_)) {
    look_at_step();
    other.look_at_step();
  }
  model_session& operator=(model_session&&) = delete;

  /// Whether `step` takes these arguments.
  template<class... Args>
  static constexpr bool takes = requires(Model& model, Args&&... args) { model.step(std::forward<Args>(args)...); };

  /// Whether a step with these arguments is to be awaited: an `asio::awaitable` of its result.
  template<class... Args>
  static constexpr bool awaits = requires(Model& model, Args&&... args) {
    { model.step(std::forward<Args>(args)...) } -> coro::awaited;
  };

  /// What a run and the look at its values need: the turn at the master, until it goes. Free without a master.
  /// @errors `aborted_error` where the chief has made the model ready anew since this session joined.
  template<class Order>
  [[nodiscard]] master_scope enter(const Order& /*computed anyway*/) {
    return take_turn();
  }

  /// One step. A batch that is fed is copied and fed; the model is fed by `feed`. @pre Inside `enter`.
  /// @errors What `step` throws.
  template<detail::order_like Order, class... Args>
  outcome_type run(const Order& order, Args&&... args) {
    check_step<Order, Args...>();
    static_assert(!awaits<Args...>, "stepwell: the model's step is awaited; such a model is for awaited sessions, see defer_start");
    const auto before = global_step();
    if constexpr (std::is_void_v<decltype(model_->step(std::forward<Args>(args)...))>) {
      model_->step(detail::with_feeds(order, std::forward<Args>(args))...);
      return {result_type{}, before, count_step()};
    } else {
      auto result = model_->step(detail::with_feeds(order, std::forward<Args>(args))...);
      return {std::move(result), before, count_step()};
    }
  }

  /// The same in three pieces, where the step is awaited: the arguments as fed, which live until it has ended; the step, not
  /// begun before it is awaited; what came of it, counted.
  template<detail::order_like Order, class... Args>
  static auto fed(const Order& order, Args&&... args) {
    check_step<Order, Args...>();
    return std::tuple<decltype(detail::with_feeds(order, std::forward<Args>(args)))...>(
        detail::with_feeds(order, std::forward<Args>(args))...);
  }
  template<class... Args>
  auto step(std::tuple<Args...>& fed) {
    return std::apply([this](auto&&... one) { return model_->step(std::forward<decltype(one)>(one)...); }, std::move(fed));
  }
  outcome_type count(std::int64_t before, result_type result) { return {std::move(result), before, count_step()}; }

  /// One step, and nothing but the step: no hook sees it. What the model's `step` returned.
  template<class... Args>
    requires takes<Args...>
  result_type run(Args&&... args) {
    const auto turn = take_turn();
    return run(std::tuple<>{}, std::forward<Args>(args)...).result;
  }

  /// Gives the model what is fed to its members, until the value returned is gone: it puts back what was there.
  template<class Order>
  [[nodiscard]] auto feed(const Order& order) const {
    return std::apply([this](const auto*... one) { return std::tuple(detail::fed_member(*model_, one)...); }, order.feeds());
  }

  /// The value of a fetch: of the step's result, else of the model, else of both.
  template<class Projection>
    requires fetchable_from<Projection, result_type, Model>
  [[nodiscard]] decltype(auto) read(const outcome_type& outcome, const Projection& projection) const {
    if constexpr (std::invocable<const Projection&, const result_type&>) {
      return std::invoke(projection, outcome.result);
    } else if constexpr (std::invocable<const Projection&, const Model&>) {
      return std::invoke(projection, std::as_const(*model_));
    } else {
      return std::invoke(projection, outcome.result, std::as_const(*model_));
    }
  }
  template<class Projection>
  [[nodiscard]] decltype(auto) read(const outcome_type& outcome, const tagged<Projection>& wanted) const {
    return read(outcome, wanted.projection);
  }

  /// Steps done so far: at a master, by anybody.
  [[nodiscard]] std::int64_t global_step() const noexcept {
    if constexpr (owns_global_step<Model>) {
      return seat_ ? seat_->global_step() : model_->global_step();
    } else {
      return std::atomic_ref(*live_step_).load(std::memory_order_relaxed);
    }
  }

  /// The model's variables, asked for anew, and `global_step`. At a master, what they refer to is looked at inside
  /// `exclusive` only.
  [[nodiscard]] variable_list variables() {
    const auto alone = is_seated() && !seat_->is_inside() ? exclusive() : master_scope();
    if (is_seated() && seat_->is_chief_ready()) { steps_ = seat_->global_step(); }  // else it is being restored
    auto all = model_->variables();
    if constexpr (owns_global_step<Model>) {
      all.emplace_back(std::string(global_step_name), model_->global_step());
    } else {
      all.emplace_back(std::string(global_step_name), steps_);
    }
    return all;
  }

  [[nodiscard]] Model& model() const noexcept { return *model_; }
  /// What operations of a scaffold are called with.
  [[nodiscard]] Model& subject() const noexcept { return *model_; }
  [[nodiscard]] const session_config& config() const noexcept { return config_; }

  /// Nobody steps, restores or copies the model while this is held. Free without a master.
  [[nodiscard]] master_scope exclusive() { return seat_ ? seat_->enter_alone() : master_scope(); }

  /// Calls `make_ready()`; at a master alone, and workers waiting for it go on once it has returned, true if it says. The
  /// step the model stands at then.
  /// @errors Those of `make_ready`, and of `master_seat::begin_preparing`.
  template<class MakeReady>
  std::int64_t prepare_as_chief(MakeReady&& make_ready) {
    const auto alone = seat_ ? seat_->begin_preparing() : master_scope();
    look_at_step();
    if (seat_) { seat_->set_global_step(own_step()); }
    if (succeeds(make_ready) && seat_) { seat_->end_preparing(own_step()); }
    return own_step();
  }
  /// Whether others may step the model, too.
  [[nodiscard]] bool is_seated() const noexcept { return seat_ && !seat_->is_closed(); }
  /// Whether a worker finds the model made ready; always without a master.
  [[nodiscard]] bool is_chief_ready() const { return !seat_ || seat_->is_chief_ready(); }
  /// See `master_seat::wait_for_chief`.
  bool wait_for_chief(session_signals& signals, clock& time, clock::time_point until) {
    return !seat_ || seat_->wait_for_chief(signals, time, until);
  }
  /// The model is ready as it is now: from here on this session steps it. @pre Inside `exclusive`.
  void join() noexcept {
    if (seat_) { seat_->join(); }
  }
  /// Leaves the master, if there is one; then there is no further step.
  void close() noexcept {
    if (!seat_) { return; }
    seat_->close();
    steps_ = seat_->global_step();
    look_at_step();
  }

private:
  template<class Order, class... Args>
  static consteval void check_step() {
    static_assert(takes<Args...>, "stepwell: the model has no step that takes these arguments");
    static_assert(detail::all_feeds_fit<Order, Model, std::remove_cvref_t<Args>...>(),
                  "stepwell: a feed is to a member that can be assigned to, of the model or of an argument of its step");
  }
  static std::unique_ptr<master_seat> seat_at(const session_target& target, Model& model) {
    if (target.master.empty()) { return nullptr; }
    return std::make_unique<master_seat>(target, master_subject{std::addressof(model), type_key::of<Model>(), has_concurrent_steps<Model>});
  }
  [[nodiscard]] master_scope take_turn() {
    if (seat_) [[unlikely]] { return seat_->enter(); }
    return {};
  }
  template<class MakeReady>
  static bool succeeds(MakeReady& make_ready) {
    if constexpr (std::is_void_v<decltype(make_ready())>) {
      make_ready();
      return true;
    } else {
      return make_ready();
    }
  }

  [[nodiscard]] std::int64_t own_step() const noexcept {
    if constexpr (owns_global_step<Model>) {
      return model_->global_step();
    } else {
      return steps_;
    }
  }
  std::int64_t count_step() noexcept {
    if constexpr (owns_global_step<Model>) {
      if (seat_) { seat_->set_global_step(model_->global_step()); }
      return model_->global_step();
    } else if constexpr (has_concurrent_steps<Model>) {
      return std::atomic_ref(*live_step_).fetch_add(1, std::memory_order_relaxed) + 1;
    } else {
      const auto next = *live_step_ + 1;  // nobody else writes now, but others may read
      std::atomic_ref(*live_step_).store(next, std::memory_order_relaxed);
      return next;
    }
  }
  /// Where the step is counted: here, or at the master. One load, and no question on the way of a step.
  void look_at_step() noexcept { live_step_ = is_seated() ? &seat_->shared_step() : &steps_; }

  Model* model_;
  std::int64_t steps_ = 0;  // at a master: what `variables` refers to
  std::int64_t* live_step_ = nullptr;
  session_config config_;
  std::unique_ptr<master_seat> seat_;
};

template<trainable_model Model>
struct raw_session_over<Model> {
  using type = model_session<Model>;
};

/// The summary of a model has its result and the model at hand.
template<trainable_model Model>
struct scaffold_traits<Model> {
  using summary_op = std::function<void(summary::writer&, const model_result<Model>&, const Model&, std::int64_t)>;
};

namespace detail {
/// Stands for a model that would die before its session. Some compilers look at it before they look at the guide's condition.
template<class Model>
struct rvalue_model {
  static_assert(!trainable_model<Model>, "stepwell: the session refers to the model; an rvalue model would die before it");
};
}  // namespace detail

template<trainable_model Model, class... Hooks>
  requires(!raw_session<Model>)
monitored_session(Model&, Hooks...) -> monitored_session<model_session<Model>, Hooks...>;
template<trainable_model Model, class... Hooks>
  requires(!raw_session<Model>)
monitored_session(session_settings, Model&, Hooks...) -> monitored_session<model_session<Model>, Hooks...>;

template<trainable_model Model, class... Hooks>
  requires(!raw_session<Model>)
singular_monitored_session(Model&, Hooks...) -> singular_monitored_session<model_session<Model>, Hooks...>;
template<trainable_model Model, class... Hooks>
  requires(!raw_session<Model>)
singular_monitored_session(session_settings, Model&, Hooks...) -> singular_monitored_session<model_session<Model>, Hooks...>;

template<class Model, class... Hooks>
  requires(trainable_model<Model> && !raw_session<Model> && !session_creator<Model>)
monitored_session(Model&&, Hooks...) -> monitored_session<detail::rvalue_model<Model>, Hooks...>;

}  // namespace stepwell
