// SPDX-License-Identifier: Apache-2.0
//
// Hooks that run on the chief only.
// @see contract CREATE-1, CREATE-7
#pragma once

#include "stepwell/hook/detail/hook_set.hpp"

#include <tuple>
#include <utility>

namespace stepwell {

/// A hook that is called only if `is_active` is true. It keeps its own phase.
template<class Hook>
struct chief_only_hook {
  Hook hook;
  bool is_active = true;
};

template<class Hook>
struct hook_access<chief_only_hook<Hook>> {
  using hook_type = hook_type_of<Hook>;
  static constexpr hook_type& get(chief_only_hook<Hook>& held) noexcept { return hook_access<Hook>::get(held.hook); }
  static constexpr bool is_active(const chief_only_hook<Hook>& held) noexcept { return held.is_active; }
};

/// Several chief-only hooks, for the hook pack of `monitored_training_session`.
template<class... Hooks>
struct chief_only_hooks {
  std::tuple<chief_only_hook<Hooks>...> all;
};

/// Returns `hooks` as chief-only hooks: they are never called on a worker. Example: `monitored_training_session(model, options,
/// chief_only(hook, hook), hook)`.
template<class... Hooks>
[[nodiscard]] chief_only_hooks<Hooks...> chief_only(Hooks... hooks) {
  return {{chief_only_hook<Hooks>{std::move(hooks)}...}};
}

namespace detail {

/// True for a single hook, false for a pack of hooks.
template<class Held>
inline constexpr bool is_flat = true;
template<class... Hooks>
inline constexpr bool is_flat<chief_only_hooks<Hooks...>> = false;

template<class Held>
std::tuple<Held> flattened(Held&& hook, bool /*is_chief*/) {
  return std::tuple<Held>(std::forward<Held>(hook));
}
template<class... Hooks>
std::tuple<chief_only_hook<Hooks>...> flattened(chief_only_hooks<Hooks...>&& hooks, bool is_chief) {
  std::apply([is_chief](auto&... one) { ((one.is_active = is_chief), ...); }, hooks.all);
  return std::move(hooks.all);
}

}  // namespace detail
}  // namespace stepwell
