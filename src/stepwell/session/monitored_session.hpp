// SPDX-License-Identifier: Apache-2.0
//
// A raw session with hooks around every run: restored at start, saved at boundaries, closed with care.
#pragma once

#include "stepwell/coro/generator.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/creation/session_manager.hpp"
#include "stepwell/data/range_source.hpp"
#include "stepwell/session/detail/blocking_driver.hpp"
#include "stepwell/session/detail/session_impl.hpp"
#include "stepwell/session/step_context.hpp"
#include "stepwell/session/step_result.hpp"
#include "stepwell/session/training_session.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// A training loop's companion (contract MON). Made of a raw session, or of a model, and hooks:
/// `monitored_session session(model, stop_at_step_hook{{.last_step = 100}});`
///
/// @lifetime Refers to the model, which must outlive it. Can be moved; generators and writers survive the move, and the one
///           moved from can only be destroyed.
/// @threads  One thread at a time, except `request_stop`, `should_stop` and `stop_reason`.
template<raw_session Raw, class... Held>
class monitored_session {
  using core_type = session_impl<Raw, Held...>;
  static_assert(!core_type::awaits_hooks(),
                "stepwell: a hook with awaited calls needs an asynchronous session: "
                "monitored_training_session(defer_start, ...)");

public:
  using raw_type = Raw;
  using result_type = typename Raw::result_type;
  using step_type = step_result<result_type>;

  /// Begins the hooks; then makes the raw session ready, restored from the newest whole checkpoint if `settings` find one,
  /// and tells the hooks (MON-2). Failures that may pass are tried again as in a recovery.
  /// @errors What hooks throw; what restoring throws; `invalid_argument_error` for clashing or reserved names.
  template<class Given>
    requires std::is_constructible_v<Raw, Given&&>
  explicit monitored_session(session_settings settings, Given&& raw, Held... hooks)
      : monitored_session(std::in_place, std::move(settings), Raw(std::forward<Given>(raw)),
                          detail::prepare_given<Raw>(settings.keep_initial_state && settings.recover), std::move(hooks)...) {}
  template<class Given>
    requires(std::is_constructible_v<Raw, Given &&> && !std::is_same_v<std::remove_cvref_t<Given>, monitored_session>)
  explicit monitored_session(Given&& raw, Held... hooks)
      : monitored_session(session_settings{}, std::forward<Given>(raw), std::move(hooks)...) {}

  /// The same with the raw sessions that `creator` makes, first and at every recovery (MON-1).
  template<session_creator Creator>
    requires std::is_same_v<created_by<Creator>, Raw>
  explicit monitored_session(session_settings settings, Creator creator, Held... hooks)
      : monitored_session(std::in_place, std::move(settings), std::nullopt, detail::create_with<Raw>(std::move(creator)),
                          std::move(hooks)...) {}
  template<session_creator Creator>
    requires std::is_same_v<created_by<Creator>, Raw>
  explicit monitored_session(Creator creator, Held... hooks)
      : monitored_session(session_settings{}, std::move(creator), std::move(hooks)...) {}

  monitored_session(monitored_session&& other) noexcept : core_(std::move(other.core_)) {}
  monitored_session& operator=(monitored_session&&) = delete;

  /// Reached without `close`: closes, and logs what there is to throw (D-17). Reached by an exception: leaves as after an
  /// error, so no hook is ended (CLOSE-5); nothing is thrown.
  ~monitored_session() {
    if (!core_ || core_->is_closed()) { return; }
    if (std::uncaught_exceptions() > exceptions_at_birth_) {
      core_->abandon(nullptr);
      return;
    }
    detail::close_or_log(*core_);
  }

  /// One step with `args`, hooks around it; what the model's `step` returned. After a recovery the whole call is repeated
  /// with the same arguments (REC-2); arguments that a step can only use up are given once, and their failure is thrown.
  /// @errors `failed_precondition_error` after a hook asked to stop (RUN-1) or the session closed; else whatever the
  ///         step, a hook, or background I/O throws. After an error no later hook sees the run.
  ///
  /// Besides the arguments of the step, and in any place: `fetch(...)`, then the values are returned, copied, as a tuple:
  /// `auto [loss] = session.run(fetch(&result::loss), batch);`; `feed(key, value)`; `run_options`; a `run_metadata` that is
  /// filled.
  template<class... Args>
  auto run(Args&&... args) {
    return run_with<all_hooks>(std::forward<Args>(args)...);
  }
  /// The same with the hooks that `Choice` chooses: `run_with<only<logging_hook>>(batch)`. The others neither see nor feed
  /// this run.
  template<class Choice, class... Args>
  auto run_with(Args&&... args) {
    return for_caller<Choice>(
        detail::places_for_caller<Args...>(), detail::places_for_step<Args...>(), std::forward_as_tuple(std::forward<Args>(args)...),
        [](auto&&... all) __attribute__((always_inline)) { return detail::run_call(std::forward<decltype(all)>(all)...); });
  }

  /// Calls `step_fn(context)`, see `step_context`; what it returns. After a failure that may pass, in its own code too, all
  /// of it is repeated once the session is made anew (STEP-6): side effects of runs without hooks happen again.
  /// @errors What `step_fn` throws.
  template<class StepFn>
  auto run_step_fn(StepFn&& step_fn) {
    static_assert(std::is_invocable_v<StepFn&, step_context<monitored_session>&>,
                  "stepwell: `step_fn` may either have one `step_context` argument, taken by reference, or not be called");
    using result = std::invoke_result_t<StepFn&, step_context<monitored_session>&>;
    std::conditional_t<std::is_void_v<result>, char, std::optional<result>> returned{};
    auto call = [&] {
      step_context<monitored_session> context(*this);
      if constexpr (std::is_void_v<result>) {
        step_fn(context);
      } else {
        returned.emplace(step_fn(context));
      }
    };
    detail::step_fn_attempt<core_type, decltype(call)> attempt(*core_, call);
    detail::drive(*core_, core_->protocol().step(attempt));
    if constexpr (!std::is_void_v<result>) { return std::move(*returned); }
  }

  /// Steps over the batches of `source`, until a stop or the end of the data: an input range of `step_type`.
  /// A source is advanced only after a whole step. One that can seek goes first to where a restored checkpoint left it;
  /// one that cannot says so in the log and goes on from where it is. A range that is no source is wrapped into one.
  /// @lifetime An lvalue source must outlive the range; the range must not outlive the session.
  /// @cost     One allocation a call, none a step.
  template<class Source>
  [[nodiscard]] generator<const step_type&> steps(Source&& source) & {
    if constexpr (data::batch_source<std::remove_cvref_t<Source>>) {
      return detail::steps_over<step_type, Source>(*core_, std::forward<Source>(source));
    } else {
      using wrapped = decltype(data::source(std::forward<Source>(source)));
      return detail::steps_over<step_type, wrapped>(*core_, data::source(std::forward<Source>(source)));
    }
  }
  /// Steps of a model that needs no data.
  [[nodiscard]] generator<const step_type&> steps() & { return detail::steps_over<step_type, no_data>(*core_, no_data()); }

  template<class... Source>
  void steps(Source&&...) && {
    static_assert(sizeof...(Source) > 1000, "stepwell: steps() on a temporary session; name the session, it must outlive its steps");
  }

  /// Whether the loop should end. @threads Any.
  [[nodiscard]] bool should_stop() const noexcept { return core_->should_stop(); }
  /// Asks the loop to end after the step under way. Once asked for, a stop is kept. @threads Any.
  void request_stop(std::string why = "the caller asked to stop") {
    core_->control().signals()->request_stop({stop_cause::requested, std::move(why)});
  }
  /// Why the loop ended, as far as it has. @threads Any.
  [[nodiscard]] stepwell::stop_reason stop_reason() const { return core_->why(); }

  [[nodiscard]] std::int64_t global_step() const noexcept { return core_->raw().global_step(); }
  /// Runs made on it call no hook.
  [[nodiscard]] Raw& raw_session() noexcept { return core_->raw(); }
  /// The model of a model session.
  [[nodiscard]] auto& model() noexcept
    requires requires(Raw& raw) { raw.model(); }
  {
    return core_->raw().model();
  }
  /// What the session has been through.
  [[nodiscard]] session_metrics metrics() const { return core_->metrics(); }
  /// One of the hooks, by type; also after `close`.
  template<class Hook>
  [[nodiscard]] Hook& hook() {
    return core_->hooks().template get<Hook>();
  }
  /// The prefix of the checkpoint this session started from, if it did.
  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return core_->control().restored_from(); }

  /// An owned copy of all that a checkpoint would hold now, between two steps: for predictions, for an evaluation beside the
  /// training, to go back to. `restore(model, taken)` puts it into a model of the same variables.
  /// @errors `failed_precondition_error` after the close, after a step that failed and until one has not, and where a guard
  ///         found the state bad; `resource_exhausted_error` when there is no such memory.
  /// @cost   One memcpy of the variables, and one piece of memory of their size, gone with the snapshot.
  [[nodiscard]] stepwell::snapshot snapshot() { return core_->copy_state(std::nullopt); }
  /// The same into a buffer of `pool`, which gets it back with the end of the snapshot; waits until one is free.
  /// @cost One memcpy of the variables; their memory is that of the pool.
  [[nodiscard]] stepwell::snapshot snapshot(snapshot_pool pool) {
    core_->check_copy();
    return core_->copy_state(pool.acquire());
  }

  /// Has the hooks that save do so now, whatever their cadence, and waits until that is durable. Returns the step that is saved.
  /// @errors `failed_precondition_error` if no hook saves or a guard found the state bad; what prevented the save.
  std::int64_t checkpoint_now() {
    detail::drive(*core_, core_->protocol().save_now());
    return core_->raw().global_step();
  }

  /// Ends the hooks, makes the last checkpoint, waits for all I/O. The second time it does nothing (D-15).
  /// @errors The first failure of a hook's `end`, of background I/O, or of a thread; everything is closed all the same.
  void close() { detail::drive(*core_, core_->protocol().close()); }

  [[nodiscard]] bool is_closed() const noexcept { return core_->is_closed(); }

  /// Leaves as after the error `failure`: hooks hear of it, none is ended. For `with` and the like.
  void abandon(std::exception_ptr failure) noexcept { core_->abandon(std::move(failure)); }
  /// Whether this exception came out of a hook rather than out of the step (D-18).
  [[nodiscard]] bool came_from_hook(const std::exception_ptr& failure) const noexcept { return core_->came_from_hook(failure); }

protected:
  void throw_failure_of_threads() const { core_->check_threads(); }

private:
  friend class step_context<monitored_session>;

  template<class... Args>
  auto run_within_step(Args&&... args) {
    core_->throw_if_closed();
    return for_caller<all_hooks>(detail::places_for_caller<Args...>(), detail::places_for_step<Args...>(),
                                 std::forward_as_tuple(std::forward<Args>(args)...),
                                 [](auto&&... all) { return detail::run_within_step(std::forward<decltype(all)>(all)...); });
  }

  /// Splits the arguments of a run into those for its caller and those for the step.
  template<class Choice, std::size_t... Caller, std::size_t... Step, class Given, class Run>
  [[gnu::always_inline]] auto for_caller(std::index_sequence<Caller...>, std::index_sequence<Step...>, Given&& given, Run run) {
    using caller_type = detail::caller_request<Choice, std::remove_cvref_t<std::tuple_element_t<Caller, Given>>...>;
    const caller_type caller{{&std::as_const(std::get<Caller>(given))...}};
    return detail::result_for_caller<Raw, caller_type>(run(*core_, caller, std::get<Step>(std::forward<Given>(given))...));
  }

  explicit monitored_session(std::in_place_t, session_settings settings, std::optional<Raw> raw, detail::raw_maker_ptr<Raw> maker,
                             Held... hooks)
      : core_(std::make_unique<core_type>(std::move(settings), std::move(raw), std::move(maker), std::move(hooks)...)) {
    detail::drive(*core_, core_->protocol().start());
  }

  std::unique_ptr<core_type> core_;
  int exceptions_at_birth_ = std::uncaught_exceptions();
};

template<session_creator Creator, class... Hooks>
monitored_session(Creator, Hooks...) -> monitored_session<created_by<Creator>, Hooks...>;
template<session_creator Creator, class... Hooks>
monitored_session(session_settings, Creator, Hooks...) -> monitored_session<created_by<Creator>, Hooks...>;
template<raw_session Raw, class... Hooks>
monitored_session(Raw, Hooks...) -> monitored_session<Raw, Hooks...>;
template<raw_session Raw, class... Hooks>
monitored_session(session_settings, Raw, Hooks...) -> monitored_session<Raw, Hooks...>;

}  // namespace stepwell
