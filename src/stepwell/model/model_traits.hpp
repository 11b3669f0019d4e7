// SPDX-License-Identifier: Apache-2.0
//
// What a model is, and what its step returns.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/coro/detail/awaited.hpp"
#include "stepwell/hook/fetch.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <variant>

namespace stepwell {
namespace detail {

template<class T>
struct returned_by;
template<class R, class M, class... Args>
struct returned_by<R (M::*)(Args...)> {
  using type = R;
};
template<class R, class M, class... Args>
struct returned_by<R (M::*)(Args...) const> {
  using type = R;
};
template<class R, class M, class... Args>
struct returned_by<R (M::*)(Args...) noexcept> {
  using type = R;
};
template<class R, class M, class... Args>
struct returned_by<R (M::*)(Args...) const noexcept> {
  using type = R;
};

template<class Model>
concept has_one_step = requires { typename returned_by<decltype(&Model::step)>::type; };
template<class Model>
concept names_result = requires { typename Model::result; };

template<class Model>
struct step_returns;
template<has_one_step Model>
struct step_returns<Model> {
  using type = std::remove_cvref_t<coro::once_awaited_t<typename returned_by<decltype(&Model::step)>::type>>;
};
template<class Model>
  requires(!has_one_step<Model> && names_result<Model>)
struct step_returns<Model> {
  using type = typename Model::result;
};

template<class T>
using void_to_monostate = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

}  // namespace detail

/// A type that can be trained: `step(args...)` does one training step, `variables()` names what a checkpoint holds.
/// If `step` is a template or overloaded, the type must name what it returns: `using result = ...`.
/// A step may return an `asio::awaitable` of its result; then the model is for awaited sessions only.
template<class Model>
concept trainable_model = std::is_class_v<Model> && requires(Model& model) {
  { model.variables() } -> std::same_as<variable_list>;
  typename detail::step_returns<Model>::type;
};

/// What one step of the model returns, once awaited; std::monostate for nothing.
template<class Model>
using model_result = detail::void_to_monostate<typename detail::step_returns<Model>::type>;

/// The model counts its steps itself.
template<class Model>
concept owns_global_step = requires(Model& model) {
  { model.global_step() } -> std::same_as<std::int64_t&>;
};

/// Whether `step` may be called for several sessions at a time, once they share a master: the model says so with
/// `static constexpr bool concurrent_steps = true`, and sees to it that its steps, and those who read it, get on.
template<class Model>
inline constexpr bool has_concurrent_steps = [] {
  if constexpr (requires {
                  { Model::concurrent_steps } -> std::convertible_to<bool>;
                }) {
    return bool(Model::concurrent_steps);
  } else {
    return false;
  }
}();

/// A callable or member that can be read from a step's result, from the model, or from both.
template<class Projection, class Result, class Model>
concept fetchable_from = std::invocable<const Projection&, const Result&> || std::invocable<const Projection&, const Model&> ||
                         std::invocable<const Projection&, const Result&, const Model&>;

/// @errors `invalid_argument_error` naming a variable without a name, named twice, or named like one of ours.
void check_variable_names(const variable_list& variables);

}  // namespace stepwell
