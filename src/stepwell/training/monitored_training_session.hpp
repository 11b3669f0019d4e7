// SPDX-License-Identifier: Apache-2.0
//
// The entry point of the library: a session with everything that training needs.
// @see contract CREATE
#pragma once

#include "stepwell/base/detail/time_after.hpp"
#include "stepwell/hook/chief_only.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/training/default_hooks.hpp"
#include "stepwell/training/training_options.hpp"

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

struct defer_start_t;
class deferred_start;

namespace detail {
/// True for the first argument of a call that creates an asynchronous session; see async_training_session.hpp.
template<class T>
inline constexpr bool says_how_to_start = std::is_same_v<T, defer_start_t> || std::is_same_v<T, deferred_start>;

/// Returns the hooks as a flat tuple: `chief_only` is replaced by its hooks.
template<class... Hooks>
auto flattened_hooks([[maybe_unused]] bool is_chief, Hooks&&... hooks) {
  return std::tuple_cat(detail::flattened(std::move(hooks), is_chief)...);
}

/// Session creator for a chief or a worker, depending on the options.
template<class Model>
class training_session_creator {
public:
  training_session_creator(Model& model, const training_options<Model>& options)
      : model_(&model), scaffold_(options.scaffold), max_wait_secs_(options.max_wait_secs),
        options_{.target = {options.master, options.is_chief, options.config},
                 .restore = {},
                 .keep_initial_state = options.keep_initial_state && options.retry.max_attempts > 0,
                 .recovery_wait = options.recovery_wait} {}

  [[nodiscard]] model_session<Model> create_session(session_creation& creation) {
    if (options_.target.is_chief) { return chief_session_creator<Model>(*model_, scaffold_, options_).create_session(creation); }
    return worker_session_creator<Model>(
               *model_, scaffold_, {.target = options_.target, .max_wait_secs = max_wait_secs_, .recovery_wait = options_.recovery_wait})
        .create_session(creation);
  }

private:
  Model* model_;
  std::shared_ptr<scaffold<Model>> scaffold_;
  seconds_value max_wait_secs_;
  chief_session_options options_;
};

template<template<class, class...> class Session, class Model, class... Hooks>
std::type_identity<Session<model_session<Model>, step_counter_hook, default_summary_hook<Model>, checkpoint_saver_hook, Hooks...>>
    session_with(std::type_identity<std::tuple<Hooks...>>);

template<class... Hooks>
auto held_of() {
  if constexpr ((is_flat<Hooks> && ...)) {
    return std::type_identity<std::tuple<Hooks...>>();
  } else {
    return std::type_identity<decltype(detail::flattened_hooks(true, std::declval<Hooks>()...))>();
  }
}

template<template<class, class...> class Session, class Model, class... Hooks>
using session_of_hooks = typename decltype(session_with<Session, Model>(held_of<Hooks...>()))::type;

/// Returns a blocking or asynchronous `Session`, made of `first...`, settings, creator and hooks.
template<template<class, class...> class Session, class Model, class... Hooks, class... First>
auto make_training_session(Model& model, const training_options<Model>& options, [[maybe_unused]] std::tuple<First...> first,
                           Hooks... hooks) {
  const auto plain = plain_options_of(options);
  refuse_negative_options(plain);
  auto counter = make_step_counter_hook(plain);
  auto summaries = make_summary_hook(plain, options);
  auto saver = make_checkpoint_saver_hook(plain, sizeof...(First) > 0);  // an asynchronous session begins on a thread that may block
  auto settings = make_session_settings(plain, saver);
  const auto make = [&](First... one, auto... flat) {
    return session_of_hooks<Session, Model, Hooks...>(std::move(one)..., std::move(settings),
                                                      training_session_creator<Model>(model, options), std::move(counter),
                                                      std::move(summaries), std::move(saver), std::move(flat)...);
  };
  if constexpr (sizeof...(First) == 0 && (is_flat<Hooks> && ...)) {  // avoids tuples, which compile slowly
    return make(std::move(hooks)...);
  } else {
    return std::apply(make, std::tuple_cat(std::move(first), detail::flattened_hooks(options.is_chief, std::move(hooks)...)));
  }
}

/// Returns true if `Model` can be the model of a session. Otherwise fails to compile with an explanation.
template<class Model>
constexpr bool can_be_trained() {
  static_assert(std::is_lvalue_reference_v<Model>,
                "stepwell: the session refers to the model; an rvalue model would be destroyed before it");
  static_assert(!std::is_const_v<std::remove_reference_t<Model>>, "stepwell: a const model cannot be trained");
  static_assert(
      trainable_model<std::remove_cvref_t<Model>>,
      "stepwell: a model is a class with step(...) and variables(), which returns stepwell::variables({{\"name\", member}, ...}); if its "
      "step is a template or overloaded, it must name the type of its result: using result = ...");
  return std::is_lvalue_reference_v<Model> && !std::is_const_v<std::remove_reference_t<Model>> &&
         trainable_model<std::remove_cvref_t<Model>>;
}

}  // namespace detail

/// The type of a session made by `monitored_training_session`.
template<class Model, class... Hooks>
using training_session_of = detail::session_of_hooks<monitored_session, Model, Hooks...>;

/// Returns a session over `model`. It restores the newest complete checkpoint of `options.checkpoint_dir`, if there is one. It has
/// a step counter, summaries and checkpoints according to the options, and `hooks` in the order of their phases. Hooks in
/// `chief_only(...)` are included only if `is_chief` is true. A worker has no default hooks and waits for its chief.
///
/// @errors   `invalid_argument_error` for invalid options and names. `failed_precondition_error` naming the process that holds the
///           directory. `data_loss_error` if the directory contains checkpoints and all of them are damaged. `not_found_error` and
///           `invalid_argument_error` naming the differences if checkpoint and model differ.
/// @lifetime `model` must outlive the session.
/// @cost     Reads and verifies the checkpoint. If the session saves, allocates two buffers of the size of the variables.
/// @see      contract CREATE-7
template<class Model, class... Hooks>
  requires(!detail::says_how_to_start<std::remove_cvref_t<Model>>)
[[nodiscard]] auto monitored_training_session(Model&& model, training_options<std::remove_cvref_t<Model>> options = {}, Hooks... hooks) {
  if constexpr (detail::can_be_trained<Model>()) {
    return detail::make_training_session<monitored_session>(model, options, std::tuple<>(), std::move(hooks)...);
  }
}

}  // namespace stepwell
