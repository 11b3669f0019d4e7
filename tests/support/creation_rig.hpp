// SPDX-License-Identifier: Apache-2.0
//
// The arguments that a session passes to a session creator, available without a session.
#pragma once

#include <stepwell/creation/session_creation.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace stepwell::test {

struct creation_rig {
  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
  boundary_requests requests{clock};
  detail::source_positions positions;
  recovery_copy initial;
  detail::initial_values missing;
  detail::checkpoint_search search{nullptr};

  [[nodiscard]] session_creation first() { return make(true); }
  [[nodiscard]] session_creation again() { return make(false); }

private:
  session_creation make(bool is_first) {
    return {requests, positions, initial, &missing, [] { return variable_list(); }, search, is_first};
  }
};

/// Returns the message of the `Error` that `action` throws, or "none" if it throws nothing. Other exceptions propagate.
template<class Error, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& failure) { return failure.what(); }
  return "none";
}

}  // namespace stepwell::test
