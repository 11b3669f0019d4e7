// SPDX-License-Identifier: Apache-2.0
//
// The session manager, which makes a raw session ready for its first step. For a chief, it restores or initialises the raw session. For a
// worker, it waits until the chief has done so.
// @see contract SM
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/protocol/raw_session.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// Options of a session manager: functions (see `scaffold_options`) and an interval. Each function may be empty. If all functions are
/// empty, every session counts as ready.
template<class Subject>
struct session_manager_options {
  using op = typename scaffold_options<Subject>::op;
  using ready = typename scaffold_options<Subject>::ready;

  op local_init_op = nullptr;
  ready ready_op = nullptr;
  ready ready_for_local_init_op = nullptr;
  /// The interval between two checks of a session that waits: of a worker that waits for its chief and cannot be notified, and of a chief
  /// that waits for a checkpoint. In TensorFlow the interval is fixed at 30 s.
  /// @see contract D-3
  seconds_value recovery_wait = 1;
};

/// The checkpoint to restore: the newest one of `checkpoint_dir`, or the one that `checkpoint_filename_with_path` names. If both strings
/// are empty, `session_setup::find_checkpoint` finds the checkpoint.
struct restore_from {
  std::string checkpoint_dir = {};
  std::string checkpoint_filename_with_path = {};
  bool wait_for_checkpoint = false;    ///< If there is no checkpoint, wait for one, at most for `max_wait_secs`.
  seconds_value max_wait_secs = 7200;  ///< After this time, the session continues without a checkpoint.
};

/// Functions that initialise the subject (the object that is trained, such as a model) if nothing was restored.
template<class Subject>
struct init_with {
  typename scaffold_options<Subject>::op init_op = nullptr;
  typename scaffold_options<Subject>::op init_fn = nullptr;
  /// If true, and if nothing was restored, the first creation of the session keeps a copy of the initial state. A later recovery that finds
  /// no checkpoint restores this copy.
  bool keep_initial_state = true;
};

namespace detail {

/// The reason why something is not ready. Empty if it is ready.
using unreadiness = std::string;

/// Returns "Variables not initialized: a, b" with the names that `ready_op` returns. Returns an empty string if `ready_op` returns no
/// names. If `ready_op` throws a `failed_precondition_error` whose message contains "uninitialized", returns that message.
[[nodiscard]] unreadiness check_uninitialized(function_ref<std::vector<std::string>()> ready_op);
template<class Ready, class Subject>
[[nodiscard]] unreadiness not_ready(const Ready& ready_op, const Subject& subject) {
  return ready_op ? detail::check_uninitialized([&] { return ready_op(subject); }) : unreadiness();
}

/// Throws `failed_precondition_error` if `reason` is not empty.
void check_ready(std::string_view for_what, bool has_init_op, bool has_init_fn, const unreadiness& reason);
[[noreturn]] void throw_nothing_to_begin_with();

/// Restores `variables()`, the state of the hooks and the positions of the sources from the checkpoint that `from` selects. Waits for a
/// checkpoint if `from` requests it. If there is no checkpoint, but the snapshot of a failed save is still in memory, restores this
/// snapshot. Returns true if something was restored, or if the session receives the state of its group later.
/// @see contract SM-4
[[nodiscard]] bool restored(session_creation& creation, function_ref<variable_list()> variables, const restore_from& from,
                            seconds_value recovery_wait);

/// Blocks until `check` returns an empty reason. Between two calls of `check`, calls `wait_for_chief` with the time at which the wait must
/// end. If `wait_for_chief` returns nullopt, pauses for `pause` instead. If `wait_for_chief` returns false, the wait has failed.
/// @errors The errors of `session_manager::wait_for_session`.
void wait_until_ready(session_creation& creation, std::optional<seconds_value> max_wait, seconds_value pause,
                      function_ref<unreadiness()> check, function_ref<std::optional<bool>(clock::time_point)> wait_for_chief);

/// Calls `make_ready` as the chief. If `make_ready` returns true, workers that wait for this session then continue. Returns the global step
/// of `raw` after the call.
template<class Raw>
std::int64_t prepare_as_chief(Raw& raw, function_ref<bool()> make_ready) {
  if constexpr (has_prepare_as_chief<Raw>) {
    return raw.prepare_as_chief(make_ready);
  } else {
    return static_cast<void>(make_ready()), raw.global_step();
  }
}

}  // namespace detail

/// Makes raw sessions ready, with the functions given by its options.
/// @threads The session's thread.
template<raw_session Raw>
class session_manager {
public:
  using subject_type = detail::subject_of<Raw>;
  using options = session_manager_options<subject_type>;

  session_manager() = default;
  /// @errors `invalid_argument_error` if there is a `ready_for_local_init_op` but no `local_init_op`.
  /// @see contract SM-1
  explicit session_manager(options given) : given_(std::move(given)) {
    if (given_.ready_for_local_init_op && !given_.local_init_op) {
      throw invalid_argument_error("session_manager: If you pass a ready_for_local_init_op you must also pass a local_init_op");
    }
  }

  /// Makes `raw` ready as a chief. Restores `raw` if there is a checkpoint; otherwise initialises `raw`. In both cases, runs the local
  /// initialisation afterwards.
  /// @errors `failed_precondition_error` if `raw` is not ready afterwards. The errors of the restore, and of the functions of the scaffold.
  /// @see contract SM-6
  void prepare_session(Raw& raw, session_creation& creation, const restore_from& from = {},
                       const init_with<subject_type>& init = {}) const {
    const auto step = detail::prepare_as_chief(raw, [&] {
      auto& subject = detail::subject_in_raw(raw);
      if (!restore(raw, creation, from)) { initialize(raw, creation, init); }
      const bool has_op(init.init_op), has_fn(init.init_fn);
      detail::check_ready("for local_init", has_op, has_fn, try_local_init(subject));
      detail::check_ready("", has_op, has_fn, detail::not_ready(given_.ready_op, subject));
      return true;
    });
    creation.set_starts_at(step);
  }

  /// Makes `raw` ready as a worker. Blocks until the chief has made the subject ready, at most for `max_wait`, and runs the local
  /// initialisation. If `max_wait` is empty, there is no limit.
  /// @errors `deadline_exceeded_error` "Session was not ready after waiting N secs."; `cancelled_error` after a stop or an interruption.
  /// @see contract SM-10
  void wait_for_session(Raw& raw, session_creation& creation, std::optional<seconds_value> max_wait = std::nullopt) const {
    const auto wait_for_chief = [&]([[maybe_unused]] clock::time_point until) -> std::optional<bool> {
      if constexpr (detail::has_wait_for_chief<Raw>) {
        if (!raw.is_chief_ready()) { return raw.wait_for_chief(creation.signals(), *creation.time(), until); }
      }
      return std::nullopt;
    };
    detail::wait_until_ready(creation, max_wait, given_.recovery_wait, [&] { return worker_not_ready(raw, creation); }, wait_for_chief);
  }

private:
  [[nodiscard]] detail::unreadiness worker_not_ready(Raw& raw, session_creation& creation) const {
    if (!is_chief_ready(raw)) { return no_chief; }  // checked first without the lock: `alone_with` may block without a deadline
    [[maybe_unused]] const auto alone = detail::alone_with(raw);
    if (!is_chief_ready(raw)) { return no_chief; }
    auto& subject = detail::subject_in_raw(raw);
    auto reason = try_local_init(subject);
    if (reason.empty()) { reason = detail::not_ready(given_.ready_op, subject); }
    if (!reason.empty()) { return reason; }
    if constexpr (detail::has_join<Raw>) { raw.join(); }
    creation.set_starts_at(raw.global_step());
    creation.join();
    return {};
  }

  static constexpr const char* no_chief = "the chief has not made the model ready yet";
  static bool is_chief_ready(const Raw& raw) {
    if constexpr (detail::has_is_chief_ready<Raw>) {
      return raw.is_chief_ready();
    } else {
      return true;
    }
  }

  /// Runs the local initialisation, unless `ready_for_local_init_op` returns names of variables. Returns the reason why the initialisation
  /// was not run. Returns an empty string if it was run, or if there is no local initialisation.
  /// @see contract SM-3
  [[nodiscard]] detail::unreadiness try_local_init(subject_type& subject) const {
    if (!given_.local_init_op) { return {}; }
    auto reason = detail::not_ready(given_.ready_for_local_init_op, subject);
    if (reason.empty()) { given_.local_init_op(subject); }
    return reason;
  }

  bool restore(Raw& raw, session_creation& creation, const restore_from& from) const {
    const bool is_restored = detail::restored(creation, [&raw] { return raw.variables(); }, from, given_.recovery_wait);
    if (is_restored) { detail::push_variables(raw); }
    return is_restored;
  }

  /// If `Raw` has a function `pull`, its variables are outside of the memory of the model, and have values only after the initialisation.
  /// The initialisation functions are then called first, and afterwards the initial state is copied or, in a recovery, restored. For other
  /// raw sessions the order is the reverse.
  void initialize(Raw& raw, session_creation& creation, const init_with<subject_type>& init) const {
    if constexpr (detail::has_pull<Raw>) { call_init(raw, init); }
    if (creation.put_back_initial_state(raw.variables())) {  // in a recovery, and after a first attempt that failed half-way
      detail::push_variables(raw);
    } else if (!creation.is_first()) {
      if (!init.init_op && !init.init_fn && !given_.local_init_op) { detail::throw_nothing_to_begin_with(); }
      creation.begin_hooks_anew();
    } else if (init.keep_initial_state) {
      [[maybe_unused]] const auto values = detail::pull_variables(raw);
      creation.keep_initial_state(raw.variables(), raw.global_step());
    } else {
      creation.begin_hooks_anew();
    }
    if constexpr (!detail::has_pull<Raw>) { call_init(raw, init); }
  }
  static void call_init(Raw& raw, const init_with<subject_type>& init) {
    if (init.init_op) { init.init_op(detail::subject_in_raw(raw)); }
    if (init.init_fn) { init.init_fn(detail::subject_in_raw(raw)); }
  }

  options given_;
};

}  // namespace stepwell
