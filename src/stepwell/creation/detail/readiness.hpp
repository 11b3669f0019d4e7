// SPDX-License-Identifier: Apache-2.0
//
// Readiness checks of a session manager, and their messages.
// @see contract SM-2
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/function_ref.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/creation/session_creation.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

struct restore_from;

/// Returns the object that operations on a raw session receive: its model or graph, or the raw session itself if it has neither.
template<class Raw>
[[nodiscard]] auto& subject_in_raw(Raw& raw) noexcept {
  if constexpr (requires { raw.subject(); }) {
    return raw.subject();
  } else {
    return raw;
  }
}
template<class Raw>
using subject_of = std::remove_reference_t<decltype(subject_in_raw(std::declval<Raw&>()))>;

namespace detail {

/// The reason why something is not ready. Empty if it is ready.
using unreadiness = std::string;

/// Returns "Variables not initialized: a, b", or empty if there are no names.
[[nodiscard]] unreadiness not_initialized(const std::vector<std::string>& names);
/// Returns the reason if the message of a failed ready operation contains "uninitialized".
/// @errors Throws `failure` otherwise.
[[nodiscard]] unreadiness reason_of_refusal(const failed_precondition_error& failure);

template<class Ready, class Subject>
[[nodiscard]] unreadiness not_ready(const Ready& ready_op, const Subject& subject) {
  if (!ready_op) { return {}; }
  try {
    return not_initialized(ready_op(subject));
  } catch (const failed_precondition_error& failure) { return reason_of_refusal(failure); }
}

/// Describes the given initialisation functions, for messages.
[[nodiscard]] std::string described(bool has_init_op, bool has_init_fn);
[[noreturn]] void throw_not_ready(std::string_view for_what, const std::string& init, const unreadiness& reason);
[[noreturn]] void throw_nothing_to_begin_with();

/// Returns the newest complete checkpoint of the directory, or the one that the session's settings find. Waits for one if `from` requests
/// it.
[[nodiscard]] std::optional<checkpoint_reader> find_or_wait(session_creation& creation, const restore_from& from,
                                                            seconds_value recovery_wait);
/// Restores `variables()`, the hooks and the sources from the checkpoint that `from` selects. Returns true if something was restored.
/// @see contract SM-4
[[nodiscard]] bool restored(session_creation& creation, function_ref<variable_list()> variables, const restore_from& from,
                            seconds_value recovery_wait);

/// The wait of a worker for its chief.
class ready_wait {
public:
  ready_wait(session_creation& creation, std::optional<seconds_value> max_wait, seconds_value pause);

  [[nodiscard]] clock::time_point until() const noexcept { return until_; }
  /// Waits until the next check.
  /// @errors Those of `session_manager::wait_for_session`.
  void once_more(const unreadiness& reason) const;
  [[noreturn]] void give_up(const unreadiness& reason) const;

private:
  session_creation& creation_;
  double max_wait_secs_;
  seconds_value pause_;
  clock::time_point until_;
};

}  // namespace detail
}  // namespace stepwell
