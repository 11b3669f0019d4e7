// SPDX-License-Identifier: Apache-2.0
//
// Hooks with state that survives a restart. The state is saved with the model, below `stepwell/hook/NAME/`.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/variable.hpp"

#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {

/// A hook that lists variables, and has a name for them. The name is `state_name()` of the object, else `state_name` of the type. If a
/// checkpoint lacks the state, the state stays as it is, and a warning is logged.
/// @errors The construction of a session throws if two of its hooks have the same name.
template<class Hook>
concept stateful_hook = requires(Hook& hook) {
  { hook.variables() } -> std::same_as<variable_list>;
} && (requires(Hook& hook) { { hook.state_name() } -> std::convertible_to<std::string_view>; } ||
      requires { { Hook::state_name } -> std::convertible_to<std::string_view>; });

/// True unless a hook lists variables without a name for them. Such variables would silently not be saved.
template<class Hook>
concept names_its_state = stateful_hook<Hook> || !requires(Hook& hook) {
  { hook.variables() } -> std::same_as<variable_list>;
};

/// Returns the name under which the state of `hook` is saved.
template<stateful_hook Hook>
[[nodiscard]] std::string state_name_of(Hook& hook) {
  if constexpr (requires {
                  { hook.state_name() } -> std::convertible_to<std::string_view>;
                }) {
    return std::string(hook.state_name());
  } else {
    return std::string(Hook::state_name);
  }
}

/// The prefix of the library's own variables. The model must not use it.
inline constexpr std::string_view reserved_prefix = "stepwell/";
inline constexpr std::string_view hook_state_prefix = "stepwell/hook/";
inline constexpr std::string_view source_state_prefix = "stepwell/source/";
/// The name of the layout version that a session saves. It is unrelated to `stepwell/saver/version`, by which a saver, with or without a
/// session, recognises the files that it may delete.
inline constexpr std::string_view version_name = "stepwell/version";
/// The layout version of the library's own variables in a checkpoint. Later versions are rejected, earlier versions are supported.
inline constexpr std::int64_t state_version = 1;
inline constexpr std::string_view global_step_name = "global_step";

/// The variables of several hooks, named `stepwell/hook/NAME/...`.
class hook_states {
public:
  hook_states();
  ~hook_states();
  hook_states(const hook_states&) = delete;
  hook_states& operator=(const hook_states&) = delete;

  /// Adds the variables of `hook` if the hook is stateful. A hook that holds other hooks has a function `add_state_to(hook_states&)`, which
  /// adds their variables.
  /// @errors `invalid_argument_error` if two hooks share a name.
  template<class Hook>
  void add(Hook& hook) {
    if constexpr (requires { hook.add_state_to(*this); }) {
      hook.add_state_to(*this);
    } else if constexpr (stateful_hook<Hook>) {
      add(state_name_of(hook), hook.variables());
    }
  }
  [[nodiscard]] variable_list variables() && { return std::move(all_); }

private:
  void add(const std::string& name, const variable_list& own);

  variable_list all_;
  std::set<std::string> names_;
};

}  // namespace stepwell
