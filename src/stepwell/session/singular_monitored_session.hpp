// SPDX-License-Identifier: Apache-2.0
//
// A monitored session without recovery: transient failures are thrown to the caller.
// @see contract SING
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/session/monitored_session.hpp"

#include <type_traits>
#include <utility>

namespace stepwell {

/// A `monitored_session` with these differences. `aborted_error` and `unavailable_error` are thrown to the caller, and the session can be
/// used afterwards. `should_stop` and loops over `steps` throw failures that the session's threads reported.
/// @see contract SING-2, SING-4
template<raw_session Raw, class... Held>
class singular_monitored_session : public monitored_session<Raw, Held...> {
  using base = monitored_session<Raw, Held...>;

public:
  template<class Given>
    requires(std::is_constructible_v<base, session_settings, Given &&, Held...>)
  explicit singular_monitored_session(session_settings settings, Given&& given, Held... hooks)
      : base(without_recovery(std::move(settings)), std::forward<Given>(given), std::move(hooks)...) {}
  template<class Given>
    requires(std::is_constructible_v<base, session_settings, Given &&, Held...> &&
             !std::is_same_v<std::remove_cvref_t<Given>, singular_monitored_session>)
  explicit singular_monitored_session(Given&& given, Held... hooks)
      : singular_monitored_session(session_settings{}, std::forward<Given>(given), std::move(hooks)...) {}

  singular_monitored_session(singular_monitored_session&&) noexcept = default;

  /// Returns true if the loop should end. @errors Failures that the session's threads reported.
  [[nodiscard]] bool should_stop() const {
    this->throw_failure_of_threads();
    return base::should_stop();
  }

  /// Returns the raw session. @errors `failed_precondition_error` if the session is closed. @see contract SING-3
  [[nodiscard]] Raw& raw_session() {
    if (this->is_closed()) { throw failed_precondition_error("raw_session() called on a closed session; it has no raw session"); }
    return base::raw_session();
  }

private:
  static session_settings without_recovery(session_settings settings) {
    settings.recover = false;
    return settings;
  }
};

template<raw_session Raw, class... Hooks>
singular_monitored_session(Raw, Hooks...) -> singular_monitored_session<Raw, Hooks...>;
template<raw_session Raw, class... Hooks>
singular_monitored_session(session_settings, Raw, Hooks...) -> singular_monitored_session<Raw, Hooks...>;
template<session_creator Creator, class... Hooks>
singular_monitored_session(Creator, Hooks...) -> singular_monitored_session<created_by<Creator>, Hooks...>;
template<session_creator Creator, class... Hooks>
singular_monitored_session(session_settings, Creator, Hooks...) -> singular_monitored_session<created_by<Creator>, Hooks...>;

}  // namespace stepwell
