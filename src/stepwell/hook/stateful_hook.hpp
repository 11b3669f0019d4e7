// SPDX-License-Identifier: Apache-2.0
//
// Hooks whose state matters over a restart: saved with the model, below `stepwell/hook/NAME/`.
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

/// A hook that lists variables, under a name. The name is `state_name()` of the object, else `state_name` of the type;
/// two hooks with one name in a session are an error at construction.
/// State that a checkpoint lacks stays as it is, with a warning.
template<class Hook>
concept stateful_hook = requires(Hook& hook) {
  { hook.variables() } -> std::same_as<variable_list>;
} && (requires(Hook& hook) { { hook.state_name() } -> std::convertible_to<std::string_view>; } ||
      requires { { Hook::state_name } -> std::convertible_to<std::string_view>; });

/// Whether what lists variables also says under which name: without one they would be lost in silence.
template<class Hook>
concept names_its_state = stateful_hook<Hook> || !requires(Hook& hook) {
  { hook.variables() } -> std::same_as<variable_list>;
};

/// The name under which `hook` keeps its state.
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

/// Everything below this prefix is ours, not the model's.
inline constexpr std::string_view reserved_prefix = "stepwell/";
inline constexpr std::string_view hook_state_prefix = "stepwell/hook/";
inline constexpr std::string_view source_state_prefix = "stepwell/source/";
/// In what a session saves. `stepwell/saver/version` is another matter: by that a saver, with or without a session, knows the
/// files it may delete.
inline constexpr std::string_view version_name = "stepwell/version";
/// The layout of what is ours in a checkpoint. A later one is refused, an earlier one understood.
inline constexpr std::int64_t state_version = 1;
inline constexpr std::string_view global_step_name = "global_step";

/// The variables of several hooks, named `stepwell/hook/NAME/...`.
class hook_states {
public:
  hook_states();
  ~hook_states();
  hook_states(const hook_states&) = delete;
  hook_states& operator=(const hook_states&) = delete;

  /// Nothing of a hook without state. One that stands for others has an `add_state_to(hook_states&)` and adds those.
  /// @errors `invalid_argument_error` when two hooks share a name.
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
