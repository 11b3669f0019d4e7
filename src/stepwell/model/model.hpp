// SPDX-License-Identifier: Apache-2.0
//
// The concepts of a model, the type of the result of a step, and functions that restore a model without a session.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/checkpoint/update_fence.hpp"
#include "stepwell/coro/detail/awaited.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <variant>

namespace stepwell {
namespace detail {

// These declarations also match a noexcept member function, because a pointer to it converts to a pointer without noexcept.
template<class R, class M, class... Args>
std::type_identity<R> returned_by(R (M::*)(Args...));
template<class R, class M, class... Args>
std::type_identity<R> returned_by(R (M::*)(Args...) const);

template<class Model>
concept has_one_step = requires { detail::returned_by(&Model::step); };
template<class Model>
concept names_result = requires { typename Model::result; };

template<class Model>
struct step_returns;
template<has_one_step Model>
struct step_returns<Model> {
  using type = std::remove_cvref_t<coro::once_awaited_t<typename decltype(detail::returned_by(&Model::step))::type>>;
};
template<class Model>
  requires(!has_one_step<Model> && names_result<Model>)
struct step_returns<Model> {
  using type = typename Model::result;
};

template<class R, class M, class... Args>
std::bool_constant<(std::is_same_v<Args, update_fence&> || ...)> has_fence_parameter(R (M::*)(Args...));
template<class R, class M, class... Args>
std::bool_constant<(std::is_same_v<Args, update_fence&> || ...)> has_fence_parameter(R (M::*)(Args...) const);

}  // namespace detail

/// A type that can be restored: `variables()` lists the variables that a checkpoint contains. The type need not be trainable.
template<class Model>
concept restorable_model = std::is_class_v<Model> && requires(Model& model) {
  { model.variables() } -> std::same_as<variable_list>;
};

/// A type that can be trained. `step(args...)` does one training step. `variables()` lists the variables that a checkpoint contains. If
/// `step` is a template or overloaded, the model must declare the type of the result of `step`: `using result = ...`. `step` may be a
/// coroutine of Boost.Asio, which the session awaits. A model with such a coroutine works in asynchronous sessions only.
template<class Model>
concept trainable_model = restorable_model<Model> && requires { typename detail::step_returns<Model>::type; };

/// The type of the result of one step. If `step` is a coroutine, this is the type of the awaited result. If there is no result (void), the
/// type is `std::monostate`.
template<class Model>
using model_result = std::conditional_t<std::is_void_v<typename detail::step_returns<Model>::type>, std::monostate,
                                        typename detail::step_returns<Model>::type>;

/// A model that counts its steps itself. Its function `global_step()` returns a reference to the counter.
template<class Model>
concept owns_global_step = requires(Model& model) {
  { model.global_step() } -> std::same_as<std::int64_t&>;
};

/// True if several sessions may call `step` of one model object concurrently. This concerns only sessions that share a master
/// (`training_options::master`). The model declares this with `static constexpr bool concurrent_steps = true`. Its function `step` must
/// then synchronise with concurrent calls of `step`, and with code that reads members of the model.
template<class Model>
inline constexpr bool has_concurrent_steps = false;
template<class Model>
  requires requires {
    { Model::concurrent_steps } -> std::convertible_to<bool>;
  }
inline constexpr bool has_concurrent_steps<Model> = Model::concurrent_steps;

/// True if the last parameter of `step` is an `update_fence&`. The session can then copy the variables for a checkpoint while `step` runs,
/// until `step` calls `wait` of the fence. If `step` is a template or overloaded, the model declares the parameter with `static constexpr
/// bool uses_update_fence = true`. All overloads of `step` must then have this last parameter.
template<class Model>
inline constexpr bool uses_update_fence = false;
template<detail::has_one_step Model>
inline constexpr bool uses_update_fence<Model> = decltype(detail::has_fence_parameter(&Model::step))::value;
template<class Model>
  requires(!detail::has_one_step<Model> &&
           requires {
             { Model::uses_update_fence } -> std::convertible_to<bool>;
           })
inline constexpr bool uses_update_fence<Model> = Model::uses_update_fence;

/// Checks the names of variables.
/// @errors `invalid_argument_error` if a name is empty, used twice, or reserved: `global_step_name`, or a name that begins with
///   `reserved_prefix`. The message contains the name.
void check_variable_names(const variable_list& variables);

/// Restores the variables of `model`, and its global step if the model counts its steps itself.
/// @errors  Those of the overload of `restore` for a `variable_list`. After a `not_found_error` or an `invalid_argument_error`, nothing was
///   written.
/// @threads `model` must not be used by another thread during the call.
template<restorable_model Model>
restore_report restore(Model& model, const snapshot& source, const restore_options& options = {}) {
  auto report = restore(model.variables(), source, options);
  if constexpr (owns_global_step<Model>) { model.global_step() = source.step(); }
  return report;
}
template<restorable_model Model>
restore_report restore(Model& model, const checkpoint_reader& source, const restore_options& options = {}) {
  auto report = restore(model.variables(), source, options);
  if constexpr (owns_global_step<Model>) { model.global_step() = source.step().value_or(0); }
  return report;
}

}  // namespace stepwell
