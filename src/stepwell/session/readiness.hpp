// SPDX-License-Identifier: Apache-2.0
//
// What a session manager asks and says: is it ready, and why not (contract SM-2).
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/session/session_creation.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

struct restore_from;

/// What operations on a raw session are called with: its model or graph, or the raw session itself where it has neither.
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

/// "Variables not initialized: a, b"; nothing for no names.
[[nodiscard]] std::optional<std::string> not_initialized(const std::vector<std::string>& names);
/// A failed ready operation: the reason if it says that something is uninitialized, else the failure goes on.
[[nodiscard]] std::string reason_of_refusal(const failed_precondition_error& failure);

template<class Ready, class Subject>
[[nodiscard]] std::optional<std::string> not_ready(const Ready& ready_op, const Subject& subject) {
  if (!ready_op) { return std::nullopt; }
  try {
    return not_initialized(ready_op(subject));
  } catch (const failed_precondition_error& failure) { return reason_of_refusal(failure); }
}

[[noreturn]] void throw_not_ready(std::string_view for_what, const std::string& init, const std::string& reason);
[[noreturn]] void throw_waited(double seconds, const std::string& reason);

/// The newest whole checkpoint of the directory, or what the session's settings find; waits for one if asked to.
[[nodiscard]] std::optional<checkpoint_reader> find_or_wait(session_creation& creation, const restore_from& from,
                                                            seconds_value recovery_wait);

}  // namespace detail
}  // namespace stepwell
