// SPDX-License-Identifier: Apache-2.0
//
// The entry point of the library: `monitored_training_session`. The function makes a session that restores and saves checkpoints, writes
// summaries and measures steps per second.
// @see contract CREATE
#pragma once

#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/training_options.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace detail {

/// A fetch that returns pointers to the result and to the model of a run.
struct whole_run {
  template<class Result, class Model>
  std::pair<const Result*, const Model*> operator()(const Result& result, const Model& model) const {
    return {&result, &model};
  }
};

/// The summary op made from a function that writes the summaries of a run.
template<class Function>
struct written_summary {
  Function function;
  whole_run projection = {};

  void write(summary::writer& out, const auto& run, std::int64_t step) const { function(out, *run.first, *run.second, step); }
};
template<class Op>
inline constexpr bool is_written = false;
template<class Function>
inline constexpr bool is_written<written_summary<Function>> = true;

template<class Given>
using summary_op_of = std::conditional_t<summary::summary_op<Given>, Given, written_summary<Given>>;

}  // namespace detail

/// The result of `summaries`.
template<summary::summary_op... Ops>
struct summary_list {
  std::tuple<Ops...> ops;
};

/// Returns a list of the summaries that a training session writes to its event file whenever summaries are due (see
/// `training_options::summaries`). Pass the list to `monitored_training_session`, in any position among the hooks:
/// `summaries(summary::scalar("loss", &result::loss), summary::histogram("w", &model::w))`. The second argument of `summary::scalar` and of
/// the similar functions selects the value: a member of the result or of the model, or a callable that takes the result, the model, or both.
/// If the session trains a model, not a graph of TensorFlow, an element of the list can also be a function that writes the summaries of a
/// step: `[](summary::writer& out, const result& r, const model& m, std::int64_t step) {...}`. The session needs a directory for event files.
template<class... Ops>
[[nodiscard]] summary_list<detail::summary_op_of<Ops>...> summaries(Ops... ops) {
  static_assert(sizeof...(Ops) > 0,
                "stepwell: summaries() has nothing to write; give it summary::scalar(\"loss\", &result::loss), another "
                "function of summary::, or a function that writes");
  return {{detail::summary_op_of<Ops>{std::move(ops)}...}};
}

struct defer_start_t;
class deferred_start;

namespace detail {

/// True if `T` is a type that selects an asynchronous session as the first argument of `monitored_training_session`; see
/// async_training_session.hpp.
template<class T>
inline constexpr bool selects_async_start = std::is_same_v<T, defer_start_t> || std::is_same_v<T, deferred_start>;

template<class Given>
inline constexpr bool is_scaffold = false;
template<class Subject>
inline constexpr bool is_scaffold<scaffold<Subject>> = true;
template<class Subject>
inline constexpr bool is_scaffold<std::shared_ptr<scaffold<Subject>>> = true;

/// True for an argument that is not a hook: a scaffold or a list of summaries.
template<class Given>
inline constexpr bool is_beside_hooks = is_scaffold<Given>;
template<class... Ops>
inline constexpr bool is_beside_hooks<summary_list<Ops...>> = true;

/// Returns the scaffold among the arguments. Null if there is none.
template<class Subject, class... Given>
std::shared_ptr<scaffold<Subject>> scaffold_in(Given&... given) {
  static_assert((0 + ... + is_scaffold<Given>) <= 1, "stepwell: two scaffolds are given; a session has one");
  std::shared_ptr<scaffold<Subject>> found;
  [[maybe_unused]] const auto look = [&found]<class One>(One& one) {
    if constexpr (std::is_same_v<One, scaffold<Subject>>) {
      found = std::make_shared<scaffold<Subject>>(std::move(one));
    } else if constexpr (is_scaffold<One>) {
      static_assert(std::is_same_v<One, std::shared_ptr<scaffold<Subject>>>, "stepwell: the scaffold is for a model of another type");
      found = std::move(one);
    }
  };
  (look(given), ...);
  return found;
}

/// True if the arguments are hooks only, and none of them is a pack of hooks.
template<class... Given>
inline constexpr bool are_flat = ((is_flat<Given> && !is_beside_hooks<Given>) && ...);

template<class Given>
std::tuple<> summary_ops_of(Given&& /*other*/) {
  return {};
}
template<class... Ops>
std::tuple<Ops...> summary_ops_of(summary_list<Ops...>&& list) {
  return std::move(list.ops);
}
/// Returns the summary ops among the arguments.
template<class... Given>
auto summary_ops_in([[maybe_unused]] Given&... given) {
  if constexpr (are_flat<Given...>) {  // avoids tuples, which compile slowly
    return std::tuple<>();
  } else {
    return std::tuple_cat(detail::summary_ops_of(std::move(given))...);
  }
}

/// Returns the hooks among the arguments as a flat tuple: each `chief_only(...)` is replaced by the hooks that it contains.
template<class Given>
auto hooks_of(Given&& given, bool is_chief) {
  if constexpr (is_beside_hooks<Given>) {
    return std::tuple<>();
  } else {
    return detail::flattened(std::forward<Given>(given), is_chief);
  }
}
template<class... Given>
auto flattened_hooks([[maybe_unused]] bool is_chief, Given&&... given) {
  return std::tuple_cat(detail::hooks_of(std::forward<Given>(given), is_chief)...);
}

/// The summary op made from the scaffold's function `summary_op`, which may be null. If `is_alone` is true, there are no other summary ops:
/// `write` then calls `begin` even if the function is null. `begin` writes the START event of the session, and restarts the period.
template<class Model>
struct scaffold_summary {
  typename scaffold_traits<Model>::summary_op function;
  bool is_alone;
  whole_run projection = {};

  void write(summary::writer& out, const auto& run, std::int64_t step, const auto& begin) const {
    if (function || is_alone) { begin(); }
    if (function) { function(out, *run.first, *run.second, step); }
  }
};

/// Throws the error for two functions with the same purpose: one in `summaries(...)`, and the `summary_op` of the scaffold.
/// @errors `invalid_argument_error` always.
[[noreturn]] void throw_both_given();

// The functions below are defined in the library and not in this header. Otherwise, they would slow down the compilation of user programs.

/// Checks `options` and completes them. Makes the directories absolute. If the scaffold has saver options, they replace
/// `options.saves.saver`. Then the saver options get the session's clock and I/O pool, if they have none.
/// @errors `invalid_argument_error` if one of the options that are checked here is invalid, even if it is not used. The message names the
///   option.
void complete(training_options& options, const std::optional<saver_options>& of_scaffold, bool has_summaries);

/// Makes the default hooks of a session. The options must have been completed by `complete`. If there is no directory, or if the period is
/// off, a hook does nothing.
struct default_hooks {
  [[nodiscard]] static step_counter_hook counter(const training_options& options);
  /// Returns the hook that saves checkpoints. If `is_deferred` is true, the hook locks the directory in `begin`, otherwise in this call.
  [[nodiscard]] static checkpoint_saver_hook saver(const training_options& options, bool is_deferred);
  template<summary::summary_op... Ops>
  [[nodiscard]] static summary_saver_hook<Ops...> summaries(const training_options& options, Ops... ops) {
    return summary_saver_hook<Ops...>(default_hooks::work_of_summaries(options), std::move(ops)...);
  }
  /// Returns the part of the summary hook that is independent of its summary ops. Returns null if the hook is off.
  [[nodiscard]] static std::shared_ptr<summary_work> work_of_summaries(const training_options& options);
};
/// Returns the setup of a session with the hook `saver`. If the hook is on, its saver finds the checkpoint for the restore. The saver then
/// does not delete this checkpoint.
[[nodiscard]] session_setup setup_with(const training_options& options, const checkpoint_saver_hook& saver);

template<class Model, class... Ops>
auto default_summary_hook(const training_options& options, const std::shared_ptr<scaffold<Model>>& with, Ops... ops) {
  scaffold_summary<Model> of_scaffold{with ? with->summary_op() : nullptr, sizeof...(Ops) == 0};
  if constexpr ((is_written<Ops> || ...)) {
    if (of_scaffold.function) { throw_both_given(); }
  }
  return default_hooks::summaries(options, std::move(of_scaffold), std::move(ops)...);
}

/// Creates the raw session of a chief or of a worker, depending on the options.
template<class Model>
class training_session_creator {
public:
  training_session_creator(Model& model, std::shared_ptr<scaffold<Model>> with, const training_options& options)
      : model_(&model), scaffold_(std::move(with)), waits_for_chief_(!options.is_chief && !options.group),
        max_wait_secs_(options.max_wait_secs), options_{.target = detail::target_of(options),
                                                        .restore = {},
                                                        .keep_initial_state = detail::keeps_initial_state(options),
                                                        .recovery_wait = options.recovery_wait} {}

  [[nodiscard]] model_session<Model> create_session(session_creation& creation) {
    if (!waits_for_chief_) { return chief_session_creator<Model>(*model_, scaffold_, options_).create_session(creation); }
    return worker_session_creator<Model>(
               *model_, scaffold_, {.target = options_.target, .max_wait_secs = max_wait_secs_, .recovery_wait = options_.recovery_wait})
        .create_session(creation);
  }

private:
  Model* model_;
  std::shared_ptr<scaffold<Model>> scaffold_;
  bool waits_for_chief_;  // a worker of a group receives the state instead
  seconds_value max_wait_secs_;
  chief_session_options options_;
};

/// Returns a blocking or asynchronous `Session`. The arguments of its constructor are `first...`, the setup, a creator and the hooks.
template<template<class, class...> class Session, class Model, class... Given, class... First>
auto make_training_session(Model& model, training_options& options, [[maybe_unused]] std::tuple<First...> first, Given... given) {
  const auto with = detail::scaffold_in<Model>(given...);
  auto ops = detail::summary_ops_in(given...);
  detail::complete(options, with ? with->saver() : std::nullopt, std::tuple_size_v<decltype(ops)> > 0);
  auto counter = default_hooks::counter(options);
  auto summaries = std::apply([&](auto&... one) { return detail::default_summary_hook<Model>(options, with, std::move(one)...); }, ops);
  auto saver = default_hooks::saver(options, sizeof...(First) > 0);  // an asynchronous session begins on a thread that may block
  auto setup = detail::setup_with(options, saver);
  const auto make = [&](First... one, auto... flat) {
    using session = Session<model_session<Model>, step_counter_hook, decltype(summaries), checkpoint_saver_hook, decltype(flat)...>;
    return session(std::move(one)..., std::move(setup), training_session_creator<Model>(model, with, options), std::move(counter),
                   std::move(summaries), std::move(saver), std::move(flat)...);
  };
  if constexpr (are_flat<Given...>) {  // avoids tuples of hooks, which compile slowly
    return make(std::get<First>(std::move(first))..., std::move(given)...);
  } else {
    return std::apply(make, std::tuple_cat(std::move(first), detail::flattened_hooks(options.is_chief, std::move(given)...)));
  }
}

/// Returns true if `Model` can be the model of a session. Otherwise does not compile, and the message explains the reason.
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

/// Returns a session that trains `model`. `given` are the hooks. Among the hooks, in any position, there may be lists of `summaries(...)` and
/// one `scaffold`, which is a value or a shared pointer. The session of a chief restores the newest complete checkpoint of
/// `options.checkpoint_dir`, if there is one. Depending on the options, it has default hooks, which count steps, write summaries and save
/// checkpoints. A worker waits for its chief, and has no default hooks. The given hooks are added, and all hooks are sorted by their phases
/// (see `hook_phase`). Hooks in `chief_only(...)` are called only if `is_chief` is true.
///
/// @errors   `invalid_argument_error` for invalid options, and for invalid names of variables and hooks. `failed_precondition_error` if
///           another session that saves checkpoints, in any process, uses the directory; the message names the process. `data_loss_error`
///           if the directory contains checkpoints and all of them are damaged. `not_found_error` or `invalid_argument_error` if the
///           variables of the checkpoint and of the model differ; the message lists the differences. `deadline_exceeded_error` if a worker
///           has waited for its chief for `max_wait_secs`.
/// @lifetime `model` must outlive the session.
/// @cost     Reads the checkpoint once, and verifies it while reading. If no checkpoint is restored, copies the variables once for recovery
///           (see `keep_initial_state`) and, if the session saves checkpoints, once for the first checkpoint. The first copy is freed
///           before the second one is made.
/// @see      contract CREATE-7
// clang-format off
template<class Model, class... Given>
  requires(!detail::selects_async_start<std::remove_cvref_t<Model>>)
[[nodiscard]] auto monitored_training_session(  // cannot convert {...}? Write training_options{...}: the compiler then names the wrong option
    Model&& model, training_options options = {}, Given... given) {  // clang-format on
  if constexpr (detail::can_be_trained<Model>()) {
    return detail::make_training_session<monitored_session>(model, options, std::tuple<>(), std::move(given)...);
  }
}
/// Like the overload above, with the default options. For a model or a graph.
template<class Model, class First, class... Given>
  requires(!detail::selects_async_start<std::remove_cvref_t<Model>> && !std::is_convertible_v<First, training_options>)
[[nodiscard]] auto monitored_training_session(Model&& model, First first, Given... given) {
  return monitored_training_session(std::forward<Model>(model), training_options{}, std::move(first), std::move(given)...);
}

}  // namespace stepwell
