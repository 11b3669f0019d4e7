// SPDX-License-Identifier: Apache-2.0
//
// Raw sessions over a model. A raw session is the part of a session that executes the steps. A model is any type with `step(args...)` and
// `variables()`. `model_session` trains the model, `evaluation_session` evaluates it.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/update_fence.hpp"
#include "stepwell/coro/detail/awaited.hpp"
#include "stepwell/creation/detail/local_master.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/protocol/feed.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/state_names.hpp"
#include "stepwell/session/monitored_session.hpp"

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {
namespace detail {

// ---- feeds: a fed member of the model is replaced during a run, a fed member of a batch is replaced in a copy of the batch

template<class Key>
struct member_of;
template<class T, class C>
struct member_of<T C::*> {
  using value_type = T;
  using class_type = C;
};

/// True if `Key` points to a member of `Holder` that can be assigned to.
template<class Key, class Holder>
concept key_into = requires { typename member_of<Key>::class_type; } && std::derived_from<Holder, typename member_of<Key>::class_type> &&
                   !std::is_const_v<typename member_of<Key>::value_type>;

/// Replaces a member of a model, and restores its value at destruction.
template<class Model, class T, class C>
class put_back {
public:
  template<class Value>
  put_back(Model& model, T C::* member, const Value& value) : model_(&model), member_(member), old_(static_cast<T>(value)) {
    std::swap(model.*member, old_);
  }
  put_back(put_back&& other) noexcept : model_(std::exchange(other.model_, nullptr)), member_(other.member_), old_(std::move(other.old_)) {}
  put_back& operator=(put_back&&) = delete;
  ~put_back() {
    if (model_ != nullptr) { std::swap(model_->*member_, old_); }
  }

private:
  Model* model_;
  T C::* member_;
  T old_;
};

/// Checks the key of a feed.
/// @errors `invalid_argument_error` if the key is a null pointer.
template<class Key, class Value>
void check_key(const fed<Key, Value>* one) {
  if (one != nullptr && one->key == nullptr) {
    throw invalid_argument_error("a feed names no member: its key is a null pointer to a member of type " +
                                 std::string(type_name<typename member_of<Key>::value_type>()) + "; give the address of the member");
  }
}

template<class Model, class Key, class Value>
auto fed_member(Model& model, const fed<Key, Value>* one) {
  if constexpr (key_into<Key, Model>) {
    check_key(one);
    using holder = put_back<Model, typename member_of<Key>::value_type, typename member_of<Key>::class_type>;
    return one != nullptr ? std::optional<holder>(std::in_place, model, one->key, one->value) : std::optional<holder>();
  } else {
    return std::nullopt;  // a feed to a batch
  }
}

/// The request of a run; `std::tuple<>` is an empty request.
template<class Order>
concept order_like = requires {
  { Order::has_feeds } -> std::convertible_to<bool>;
} || std::same_as<Order, std::tuple<>>;

/// The keys of the feeds of a run.
template<class... Key>
struct key_list {
  template<class Batch>
  static constexpr bool any_into = (key_into<Key, Batch> || ...);
  template<class One, class... Holder>
  static constexpr bool fits = (key_into<One, Holder> || ...);
  /// True if every key points to a member of at least one of the types `Holder`.
  template<class... Holder>
  static constexpr bool all_fit = (fits<Key, Holder...> && ...);
};
template<class... Key, class... Value>
key_list<Key...> keys_in(const std::tuple<const fed<Key, Value>*...>&);
template<class Order>
constexpr auto keys_of() {
  if constexpr (requires { requires Order::has_feeds; }) {
    return decltype(detail::keys_in(std::declval<const Order&>().feeds())){};
  } else {
    return key_list<>{};
  }
}

template<class Batch, class Key, class Value>
void feed_one(Batch& batch, const fed<Key, Value>* one) {
  if constexpr (key_into<Key, Batch>) {
    check_key(one);
    if (one != nullptr) { batch.*(one->key) = static_cast<typename member_of<Key>::value_type>(one->value); }
  }
}

/// Returns a copy of `arg` with the feeds applied, if a key of `order` points to a member of the type of `arg`. Otherwise returns `arg`
/// itself.
template<class Order, class Arg>
decltype(auto) with_feeds(const Order& order, Arg&& arg) {
  using batch_type = std::remove_cvref_t<Arg>;
  if constexpr (decltype(detail::keys_of<Order>())::template any_into<batch_type>) {
    batch_type copy(std::forward<Arg>(arg));
    std::apply([&](const auto*... one) { (feed_one(copy, one), ...); }, order.feeds());
    return copy;
  } else {
    return std::forward<Arg>(arg);
  }
}

struct no_fence {};
template<class Model>
using fence_for = std::conditional_t<uses_update_fence<Model>, update_fence, no_fence>;

/// The fence of a model session, if the model uses one.
template<bool UsesFence>
class fence_owner {
protected:
  [[no_unique_address]] no_fence fence_;
};
template<>
class fence_owner<true> {
public:
  /// Returns the fence that is passed to each step of the model.
  [[nodiscard]] update_fence& fence() noexcept { return fence_; }

protected:
  update_fence fence_;
};

/// Calls `step` of the model. If the model uses an `update_fence`, the fence is the last argument.
template<class Model, class... Args>
  requires requires(Model& model, Args&&... args) { model.step(std::forward<Args>(args)...); }
[[gnu::always_inline]] inline decltype(auto) call_step(Model& model, no_fence& /*none*/, Args&&... args) {
  return model.step(std::forward<Args>(args)...);
}
template<class Model, class... Args>
  requires requires(Model& model, update_fence& fence, Args&&... args) { model.step(std::forward<Args>(args)..., fence); }
[[gnu::always_inline]] inline decltype(auto) call_step(Model& model, update_fence& fence, Args&&... args) {
  return model.step(std::forward<Args>(args)..., fence);
}

/// A callable or member that can be applied to a step's result, to the model, or to both.
template<class Projection, class Result, class Model>
concept fetchable_from = std::invocable<const Projection&, const Result&> || std::invocable<const Projection&, const Model&> ||
                         std::invocable<const Projection&, const Result&, const Model&>;

}  // namespace detail

/// Runs the steps of a model and counts them. Each call of the model's `step` that returns is one step, with or without hooks. A call that
/// throws is not counted. If the model has a function `std::int64_t& global_step()`, the model counts its steps itself.
///
/// A master (`session_target::master`, "local:NAME") connects sessions of one process that train one model together: one chief, which makes
/// the model ready, and workers. The master then counts the steps of all its sessions. `enter`, and the `run` without hooks, block until
/// this session may step. Code that accesses the model between steps must hold the result of `exclusive()`.
/// @lifetime The model must outlive the session.
template<trainable_model Model>
class model_session : public detail::fence_owner<uses_update_fence<Model>> {
  using detail::fence_owner<uses_update_fence<Model>>::fence_;

public:
  using model_type = Model;
  using result_type = model_result<Model>;
  using outcome_type = run_outcome<result_type>;
  static_assert(!(has_concurrent_steps<Model> && owns_global_step<Model>),
                "stepwell: a model with concurrent steps cannot own the global step: it would be read while others write it");

  /// Creates a session without a master.
  /// @errors `invalid_argument_error` if a variable has an empty name, the same name as another variable, or a name reserved for the
  ///         library.
  explicit(false) model_session(Model& model) : model_session(model, session_target{}) {}
  /// Creates a session. If `target` names a master, connects the session to that master, as the chief or as a worker.
  /// @errors Those of the other constructor. `invalid_argument_error` if `target.master` is not "local:NAME", or if the master has another
  ///         model. `failed_precondition_error` if the master already has a chief.
  model_session(Model& model, const session_target& target) : model_(&model), config_(target.config), connection_(connect(target, model)) {
    const auto alone = connection_ ? connection_->enter_alone() : master_scope();
    look_at_step();
    check_variable_names(model.variables());
    if constexpr (uses_update_fence<Model>) {
      fence_.list_with([&model] { return model.variables(); });
    }
  }
  // NOLINTBEGIN(bugprone-use-after-move): only the base is moved before the members
  model_session(model_session&& other) noexcept
      : detail::fence_owner<uses_update_fence<Model>>(std::move(other)), model_(other.model_), steps_(other.steps_),
        config_(std::move(other.config_)), connection_(std::move(other.connection_)) {
    look_at_step();
    other.look_at_step();
  }
  // NOLINTEND(bugprone-use-after-move)
  model_session& operator=(model_session&&) = delete;

  /// True if `step` of the model accepts these arguments. If the model uses an `update_fence`, the fence is passed after the arguments.
  template<class... Args>
  static constexpr bool takes = requires(Model& model, detail::fence_for<Model>& fence, Args&&... args) {
    detail::call_step(model, fence, std::forward<Args>(args)...);
  };

  /// True if the result of a step with these arguments must be awaited.
  template<class... Args>
  static constexpr bool awaits = requires(Model& model, detail::fence_for<Model>& fence, Args&&... args) {
    { detail::call_step(model, fence, std::forward<Args>(args)...) } -> coro::awaited;
  };

  /// Blocks until the master lets this session step. The caller must hold the returned object during the run and while it reads the values
  /// of the run. Without a master, the object is empty.
  /// @errors `aborted_error` if the chief has not made the model ready, or has made it ready again since this session called `join`.
  ///         `failed_precondition_error` after `close`.
  template<class Order>
  [[nodiscard]] master_scope enter(const Order& /*order*/) {
    return take_turn();
  }

  /// Does one step. Feeds of a batch change a copy of the batch. To apply feeds to the model, the caller calls `feed` before this function.
  /// @pre The object returned by `enter` is held.
  /// @errors Exceptions of the model's `step`.
  template<detail::order_like Order, class... Args>
  outcome_type run(const Order& order, Args&&... args) {
    check_step<Order, Args...>();
    static_assert(!awaits<Args...>, "stepwell: the model's step is awaited; such a model needs an asynchronous session, see defer_start");
    const auto before = step_inside();
    if constexpr (std::is_void_v<decltype(call_step(std::forward<Args>(args)...))>) {
      call_step(detail::with_feeds(order, std::forward<Args>(args))...);
      return count(before, result_type{});
    } else {
      auto result = call_step(detail::with_feeds(order, std::forward<Args>(args))...);
      return count(before, std::move(result));
    }
  }

  /// The three parts of `run`, for a model whose `step` is awaited. `fed` returns a tuple of the arguments with the feeds applied. This
  /// tuple must live until the step has ended. `step` returns the coroutine of the step, which starts when it is awaited. `count` is
  /// called after the step: it counts the step and returns the outcome.
  template<detail::order_like Order, class... Args>
  static auto fed(const Order& order, Args&&... args) {
    check_step<Order, Args...>();
    return std::tuple<decltype(detail::with_feeds(order, std::forward<Args>(args)))...>{
        detail::with_feeds(order, std::forward<Args>(args))...};
  }
  template<class... Args>
  auto step(std::tuple<Args...>& fed) {
    return std::apply([this](auto&&... one) { return detail::call_step(*model_, fence_, std::forward<decltype(one)>(one)...); },
                      std::move(fed));
  }
  outcome_type count(std::int64_t before, result_type&& result) {
    wait_at_fence();  // has no effect if the step has waited at the fence
    return {std::move(result), before, count_step()};
  }

  /// Does one step without hooks. Returns the result of the model's `step`.
  template<class... Args>
    requires takes<Args...>
  result_type run(Args&&... args) {
    const auto turn = take_turn();
    return run(std::tuple<>{}, std::forward<Args>(args)...).result;
  }

  /// Assigns fed values to members of the model. The destructor of the returned object restores the previous values.
  template<class Order>
  [[nodiscard]] auto feed(const Order& order) {
    wait_at_fence();
    return std::apply([this](const auto*... one) { return std::tuple{detail::fed_member(*model_, one)...}; }, order.feeds());
  }

  /// Returns the value of a fetch. The fetch is applied to the result of the step if it accepts the result, otherwise to the model if it
  /// accepts the model, otherwise to both.
  template<class Projection>
    requires detail::fetchable_from<Projection, result_type, Model>
  [[nodiscard]] decltype(auto) read(const outcome_type& outcome, const Projection& projection) const {
    if constexpr (std::invocable<const Projection&, const result_type&>) {
      return std::invoke(projection, outcome.result);
    } else if constexpr (std::invocable<const Projection&, const Model&>) {
      return std::invoke(projection, std::as_const(*model_));
    } else {
      return std::invoke(projection, outcome.result, std::as_const(*model_));
    }
  }

  /// Returns the number of steps done so far. With a master, this is the number of the steps of all its sessions.
  [[nodiscard]] std::int64_t global_step() const noexcept {
    if constexpr (owns_global_step<Model>) {
      return connection_ ? connection_->global_step() : model_->global_step();
    } else {
      return std::atomic_ref(*live_step_).load(std::memory_order_relaxed);
    }
  }

  /// Returns the variables of the model, and `global_step`. Each call of this function calls `variables` of the model. With a master,
  /// access the variables only while you hold the result of `exclusive`.
  [[nodiscard]] variable_list variables() {
    const auto alone = is_shared() && !connection_->is_inside() ? exclusive() : master_scope();
    if (is_shared() && connection_->is_chief_ready()) { steps_ = connection_->global_step(); }  // not while the chief may restore `steps_`
    auto all = model_->variables();
    if constexpr (owns_global_step<Model>) {
      all.push_back(variable_ref(std::string(global_step_name), model_->global_step()).early());
    } else {
      all.push_back(variable_ref(std::string(global_step_name), steps_).early());
    }
    return all;
  }

  /// Returns the model.
  [[nodiscard]] Model& subject() const noexcept { return *model_; }
  [[nodiscard]] const session_config& config() const noexcept { return config_; }

  /// Blocks until no other session steps, restores or copies the model. No other session can begin to do this while the caller holds the
  /// returned object. Without a master, the object is empty.
  [[nodiscard]] master_scope exclusive() { return connection_ ? connection_->enter_alone() : master_scope(); }

  /// Calls `make_ready()`. With a master, the call has exclusive access to the model. If `make_ready` then returns true, workers that wait
  /// for the chief continue. Returns the global step of the model after the call.
  /// @errors Those of `make_ready`. With a master, `failed_precondition_error` if this session is a worker, or if another session is the
  ///         chief now.
  std::int64_t prepare_as_chief(function_ref<bool()> make_ready) {
    const auto alone = connection_ ? connection_->begin_preparing() : master_scope();
    look_at_step();
    if (connection_) { connection_->set_global_step(own_step()); }
    if (make_ready() && connection_) { connection_->end_preparing(own_step()); }
    return own_step();
  }
  /// Returns true if the session is connected to a master. Other sessions may then step the model.
  [[nodiscard]] bool is_shared() const noexcept { return connection_ && !connection_->is_closed(); }
  /// Returns true if the chief has made the model ready. Without a master, always returns true.
  [[nodiscard]] bool is_chief_ready() const { return !connection_ || connection_->is_chief_ready(); }
  /// Blocks until the chief has made the model ready, at most until `until` on the clock `time`. Returns false if `until` was reached
  /// first, or if a stop or an interruption in `signals` ended the wait. Without a master, returns true at once.
  bool wait_for_chief(session_signals& signals, clock& time, clock::time_point until) {
    return !connection_ || connection_->wait_for_chief(signals, time, until);
  }
  /// Accepts the current state of the model, which the chief has made ready. From now on, this session may step the model. Does nothing
  /// without a master.
  /// @pre `exclusive` is held.
  void join() noexcept {
    if (connection_) { connection_->join(); }
  }
  /// Disconnects from the master, if there is one. With a master, no step is possible afterwards.
  void close() noexcept {
    if (!connection_) { return; }
    connection_->close();
    steps_ = connection_->global_step();
    look_at_step();
  }

private:
  template<class Order, class... Args>
  static consteval void check_step() {
    static_assert(
        takes<Args...>,
        "stepwell: the model has no step that takes these arguments; the compiler names both, as Model and Args, near this message");
    static_assert(decltype(detail::keys_of<Order>())::template all_fit<Model, std::remove_cvref_t<Args>...>,
                  "stepwell: a feed must name an assignable member of the model, or of an argument of its step");
  }
  template<class... Args>
  [[gnu::always_inline]] decltype(auto) call_step(Args&&... args) {
    return detail::call_step(*model_, fence_, std::forward<Args>(args)...);
  }
  void wait_at_fence() {
    if constexpr (uses_update_fence<Model>) { fence_.wait(); }
  }
  static std::unique_ptr<master_connection> connect(const session_target& target, Model& model) {
    if (target.master.empty()) { return nullptr; }
    return std::make_unique<master_connection>(target,
                                               master_subject{std::addressof(model), type_key::of<Model>(), has_concurrent_steps<Model>});
  }
  [[nodiscard]] master_scope take_turn() {
    if (connection_) [[unlikely]] { return connection_->enter(); }
    return {};
  }
  [[nodiscard]] std::int64_t own_step() const noexcept {
    if constexpr (owns_global_step<Model>) {
      return model_->global_step();
    } else {
      return steps_;
    }
  }
  /// Returns the global step. @pre The object returned by `enter` is held.
  [[nodiscard]] std::int64_t step_inside() const noexcept {
    if constexpr (owns_global_step<Model> || has_concurrent_steps<Model>) {
      return global_step();
    } else {
      return *live_step_;  // only the session that holds the result of `enter` writes it
    }
  }
  std::int64_t count_step() noexcept {
    if constexpr (owns_global_step<Model>) {
      if (connection_) { connection_->set_global_step(model_->global_step()); }
      return model_->global_step();
    } else if constexpr (has_concurrent_steps<Model>) {
      return std::atomic_ref(*live_step_).fetch_add(1, std::memory_order_relaxed) + 1;
    } else {
      const auto next = *live_step_ + 1;  // this thread is the only writer, but other threads may read
      std::atomic_ref(*live_step_).store(next, std::memory_order_relaxed);
      return next;
    }
  }
  /// Sets the pointer to the step counter, in this object or in the master, so that a step needs one load and no branch.
  void look_at_step() noexcept { live_step_ = is_shared() ? &connection_->shared_step() : &steps_; }

  Model* model_;
  std::int64_t steps_ = 0;  // the step counter; with a master, a copy of the master's counter, for `variables`
  std::int64_t* live_step_ = nullptr;
  session_config config_;
  std::unique_ptr<master_connection> connection_;
};

/// A model that counts its steps itself may do a run without a step.
template<trainable_model Model>
inline constexpr bool detail::counts_each_run<model_session<Model>> = !owns_global_step<Model>;

/// Runs the steps of a model for an evaluation: the global step does not change.
/// @lifetime The model must outlive the session.
template<trainable_model Model>
class evaluation_session {
public:
  using model_type = Model;
  using result_type = typename model_session<Model>::result_type;
  using outcome_type = typename model_session<Model>::outcome_type;

  /// Creates the session over `model`. `global_step` is the step of the checkpoint from which the model was restored.
  evaluation_session(Model& model, std::int64_t global_step) : steps_(model), global_step_(global_step) {}

  /// Does one step of the model. The outcome has the unchanged global step.
  /// @errors Exceptions of the model's `step`.
  template<class Requests, class... Args>
  outcome_type run(const Requests& requests, Args&&... args) {
    auto outcome = steps_.run(requests, std::forward<Args>(args)...);
    outcome.step_before = outcome.step_after = global_step_;
    return outcome;
  }
  [[nodiscard]] std::int64_t global_step() const noexcept { return global_step_; }

  // The members below call the members of `model_session` with the same names.
  template<class Requests>
  [[nodiscard]] auto feed(const Requests& requests) {
    return steps_.feed(requests);
  }
  template<class Projection>
    requires detail::fetchable_from<Projection, result_type, Model>
  [[nodiscard]] decltype(auto) read(const outcome_type& outcome, const Projection& projection) const {
    return steps_.read(outcome, projection);
  }
  [[nodiscard]] variable_list variables() { return steps_.variables(); }
  [[nodiscard]] Model& subject() const noexcept { return steps_.subject(); }

private:
  model_session<Model> steps_;
  std::int64_t global_step_;
};

template<trainable_model Model>
struct raw_session_over<Model> {
  using type = model_session<Model>;
};

/// The summary op of a model receives the result of the step and the model.
template<trainable_model Model>
struct scaffold_traits<Model> {
  using summary_op = std::function<void(summary::writer&, const model_result<Model>&, const Model&, std::int64_t)>;
};

namespace detail {
/// A model that is given as an rvalue.
template<class Model>
concept is_rvalue_model = trainable_model<Model> && !std::is_reference_v<Model> && !raw_session<Model> && !session_creator<Model>;

/// Replaces the type of an rvalue model and causes a compile error, because the model would be destroyed before its session. Some compilers
/// instantiate this type before they check the condition of the deduction guide, so the type repeats this condition.
template<class Model>
struct rvalue_model {
  static_assert(!is_rvalue_model<Model>, "stepwell: the session refers to the model; an rvalue model would be destroyed before it");
};
}  // namespace detail

template<class Model, class... Hooks>
  requires detail::is_rvalue_model<Model>
monitored_session(Model&&, Hooks...) -> monitored_session<detail::rvalue_model<Model>, Hooks...>;

}  // namespace stepwell
