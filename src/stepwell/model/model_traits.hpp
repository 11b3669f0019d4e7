// SPDX-License-Identifier: Apache-2.0
//
// The concept of a model, and the result type of its step.
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

/// A type that can be trained. `step(args...)` does one training step. `variables()` lists the variables that a checkpoint holds. If `step`
/// is a template or overloaded, the type must name the result type: `using result = ...`. A step may return an `asio::awaitable` of its
/// result; such a model works in asynchronous sessions only.
template<class Model>
concept trainable_model = std::is_class_v<Model> && requires(Model& model) {
  { model.variables() } -> std::same_as<variable_list>;
  typename detail::step_returns<Model>::type;
};

/// The result type of one step, after awaiting it. std::monostate for void.
template<class Model>
using model_result = detail::void_to_monostate<typename detail::step_returns<Model>::type>;

/// A model that counts its steps itself.
template<class Model>
concept owns_global_step = requires(Model& model) {
  { model.global_step() } -> std::same_as<std::int64_t&>;
};

/// True if `step` may be called concurrently by several sessions that share a master. The model declares it with
/// `static constexpr bool concurrent_steps = true`. It must then synchronise its steps with each other and with readers of its members.
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

/// A callable or member that can be applied to a step's result, to the model, or to both.
template<class Projection, class Result, class Model>
concept fetchable_from = std::invocable<const Projection&, const Result&> || std::invocable<const Projection&, const Model&> ||
                         std::invocable<const Projection&, const Result&, const Model&>;

/// Checks the names of variables.
/// @errors `invalid_argument_error` that names the variable, if a name is empty, used twice, or reserved for the library.
void check_variable_names(const variable_list& variables);

}  // namespace stepwell
