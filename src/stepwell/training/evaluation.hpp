// SPDX-License-Identifier: Apache-2.0
//
// Evaluation of a model at one checkpoint, or at each new checkpoint of a directory, without training. Corresponds to TensorFlow's
// `evaluate_once` and `evaluate_repeatedly`.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/hooks/function_hooks.hpp"
#include "stepwell/hooks/stop_hooks.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/protocol/detail/hook_set.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/session_signals.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/training_options.hpp"
#include "stepwell/session/training_session.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Options of an evaluation. Every option has a default.
struct evaluation_options {
  std::optional<std::int64_t> num_evals = std::nullopt;  ///< Maximum number of steps. Empty: all data is used.
  bool log_progress = true;                              ///< Log "Evaluation [3/10]".
  restore_options restore = {};     ///< For example, `{.names = ema_names(...)}` restores saved averages instead of the variables.
  std::stop_token stop_token = {};  ///< Ends the evaluation after the current step.
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< Null: the clock of the machine.
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< Null: the file system of the machine.
};

/// Options of `evaluate_repeatedly`. Every option has a default.
struct repeated_evaluation_options {
  evaluation_options evaluation = {};                                    ///< Options of each evaluation.
  seconds_value eval_interval_secs = 60;                                 ///< Minimum time between the starts of two evaluations.
  std::optional<std::int64_t> max_number_of_evaluations = std::nullopt;  ///< Empty: no limit.
  std::optional<seconds_value> timeout = std::nullopt;                   ///< Maximum wait for each new checkpoint. Empty: no limit.
  std::function<bool()> timeout_fn = nullptr;                            ///< See `checkpoints_iterator_options`.
  seconds_value seconds_to_sleep = 1;                                    ///< Interval between two polls of the directory.
  /// Token for which a stop is requested when no more checkpoints will be written, for example because the training has ended. After the
  /// stop, the current evaluation is finished, and the directory is polled once more. If this poll finds a new checkpoint, it is evaluated.
  /// Then the range ends. In contrast, `evaluation.stop_token` ends the current evaluation after its current step, and ends a wait for a
  /// checkpoint at once. The range then ends without a further poll.
  std::stop_token stop_token = {};
  bool all_listed = false;  ///< If true, evaluates every listed checkpoint, oldest first; see `checkpoints_iterator_options`.
};

/// Result of an evaluation. `Values` is the tuple of the values of the final ops, see `final_ops_hook`.
template<class Values>
struct evaluation {
  std::string checkpoint_path;
  std::int64_t global_step;     ///< Step of the checkpoint; 0 if unknown.
  std::int64_t evals;           ///< Number of steps made.
  stepwell::stop_reason ended;  ///< Reason why the evaluation ended.
  std::optional<Values> final_ops_values;
};

/// Placeholder for the source of a model whose `step` takes no batch.
struct no_source {};

/// An object, such as a `tensorflow::graph_evaluation`, that opens a raw session for each evaluation, with the values of a checkpoint.
template<class Subject>
concept opens_evaluations = requires(Subject& subject, const checkpoint_reader& source, const restore_options& options) {
  { subject.open_evaluation(source, options) } -> raw_session;
};

/// An object that can be evaluated: a model, or an object that opens a raw session for each evaluation.
template<class Subject>
concept evaluable = trainable_model<Subject> || opens_evaluations<Subject>;

namespace detail {

[[nodiscard]] checkpoint_reader open_checkpoint(const std::string& prefix, const evaluation_options& options);
[[nodiscard]] session_setup setup_of(const evaluation_options& options);
[[nodiscard]] checkpoints_iterator_options following_of(const repeated_evaluation_options& options);

/// Hook that rejects the saves that other hooks request.
struct saves_nothing_hook {
  static constexpr auto phase = hook_phase::observe;
  void after_create_session(auto& session, auto& /*threads*/) const { session.reject_state("an evaluation does not save checkpoints"); }
};

/// Logs the end of an evaluation.
void log_evaluation(const std::string& checkpoint_path, std::int64_t evals, std::chrono::duration<double> took);

template<class Hook>
std::reference_wrapper<Hook> as_reference(Hook& hook) {
  return hook;
}
template<class Hook>
std::reference_wrapper<Hook> as_reference(std::reference_wrapper<Hook>& hook) {
  return hook;
}

/// Restores a model, or the object that opens a raw session, and returns the raw session of the evaluation.
template<class Model>
auto open_evaluation(Model& model, const checkpoint_reader& reader, const restore_options& options) {
  if constexpr (opens_evaluations<Model>) {
    return model.open_evaluation(reader, options);
  } else {
    stepwell::restore(model, reader, options);
    return evaluation_session<Model>(model, reader.step().value_or(0));
  }
}

/// Restores and evaluates a model. Calls `make_source` once, after the restore.
template<class FinalOps, class Model, class MakeSource, class... Hooks>
evaluation<typename FinalOps::values_type> evaluate(Model& model, const checkpoint_reader& reader, MakeSource&& make_source,
                                                    const evaluation_options& options, FinalOps& final_ops, Hooks... hooks) {
  static_assert(((phase_of<detail::hook_type_of<Hooks>>() != hook_phase::persist) && ...),
                "stepwell: an evaluation saves nothing; leave out the hook that saves");
  auto raw = detail::open_evaluation(model, reader, options.restore);
  const auto step = reader.step().value_or(0);
  auto&& source = make_source();
  stop_after_n_evals_hook counter({.num_evals = options.num_evals, .log_progress = options.log_progress});
  monitored_session session(detail::setup_of(options), std::move(raw), saves_nothing_hook{}, std::move(hooks)..., std::ref(counter),
                            std::ref(final_ops));
  const auto time = options.clock ? options.clock : system_clock();
  const auto started = time->now();
  log_info("Starting evaluation of " + reader.prefix());
  with(session, [&](auto& self) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(source)>, no_source>) {
      for ([[maybe_unused]] const auto& done : self.steps()) {}
    } else {
      for ([[maybe_unused]] const auto& done : self.steps(source)) {}
    }
  });
  detail::log_evaluation(reader.prefix(), counter.evals_completed(), time->now() - started);
  return {reader.prefix(), step, counter.evals_completed(), session.stop_reason(), final_ops.final_ops_values()};
}

/// Evaluates each of `checkpoints`.
template<class Model, class MakeSource, class FinalOps, class... Hooks>
generator<const evaluation<typename FinalOps::values_type>&> evaluate_each(Model& model, generator<const checkpoint_reader&> checkpoints,
                                                                           MakeSource make_source, repeated_evaluation_options options,
                                                                           FinalOps final_ops, std::tuple<Hooks...> hooks) {
  auto left = options.max_number_of_evaluations.value_or(std::numeric_limits<std::int64_t>::max());
  if (left == 0) { co_return; }
  for (const auto& opened : checkpoints) {
    const auto found = std::apply(
        [&](Hooks&... hook) {
          return detail::evaluate(model, opened, make_source, options.evaluation, final_ops, detail::as_reference(hook)...);
        },
        hooks);
    co_yield found;
    if (--left == 0) { break; }
  }
}

}  // namespace detail

/// Evaluates a checkpoint: restores `checkpoint_path` into `model`, runs the model's steps over `source` with the hooks, and calls `end` of
/// the hooks. Example: `evaluate_once(model, "run/model.ckpt-500", test_set, {.num_evals = 100}, final_ops_hook{&digits::accuracy})`. The
/// evaluation ends after `num_evals` steps or at the end of the data. For a model that needs no data, pass `no_source{}`; then `num_evals`
/// or a hook must end the evaluation. `model` is any trainable model; its `step` should evaluate, not train. Nothing is saved: a hook of
/// the phase `persist`, such as `checkpoint_saver_hook`, does not compile, and a save that any other hook requests is rejected with a
/// warning. Only the model is restored: hooks keep their state, and the source keeps its position. After a transient failure of a step, the
/// batch that failed is evaluated again, with any kind of source; nothing is restored, because an evaluation changes no variables.
/// @errors   Failures of the restore. Exceptions of a step or a hook; for these exceptions, `on_error` of the hooks is called as in
///           training.
/// @lifetime All arguments must live until the call returns.
template<evaluable Model, class Source, class... Ops, class... Hooks>
auto evaluate_once(Model& model, const std::string& checkpoint_path, Source&& source, const evaluation_options& options,
                   final_ops_hook<Ops...> final_ops, Hooks... hooks) {
  return detail::evaluate(
      model, detail::open_checkpoint(checkpoint_path, options), [&]() -> auto& { return source; }, options, final_ops, std::move(hooks)...);
}
/// Like the overload above, without final values.
template<evaluable Model, class Source, class... Hooks>
auto evaluate_once(Model& model, const std::string& checkpoint_path, Source&& source, const evaluation_options& options = {},
                   Hooks... hooks) {
  return stepwell::evaluate_once(model, checkpoint_path, std::forward<Source>(source), options, final_ops_hook{}, std::move(hooks)...);
}

/// Returns a range of evaluations, one for each new complete checkpoint of a directory, in the order of `checkpoints_iterator`: `for (const
/// auto& found : evaluate_repeatedly(model, "run", [&] { return data::source(test_set); }, options, ops)) {...}`. An evaluation is made
/// when the loop requests the next element of the range. `make_source()` is called once for each evaluation, and returns its data. `begin`
/// and `end` of the hooks are called in each evaluation; all evaluations use the same hook objects. A checkpoint that is damaged is
/// skipped with a log line. One that the training deletes before it could be opened is skipped silently; during the evaluation, a deletion does
/// no harm.
/// @lifetime `model` and the targets of `std::ref` hooks must outlive the range.
/// @errors   Those of `evaluate_once` and `checkpoints_iterator`, thrown during the iteration.
template<evaluable Model, std::invocable MakeSource, class... Ops, class... Hooks>
[[nodiscard]] auto evaluate_repeatedly(Model& model, std::string checkpoint_dir, MakeSource make_source,
                                       repeated_evaluation_options options, final_ops_hook<Ops...> final_ops, Hooks... hooks) {
  auto checkpoints = detail::open_checkpoints(checkpoint_dir, detail::following_of(options));
  return detail::evaluate_each(model, std::move(checkpoints), std::move(make_source), std::move(options), std::move(final_ops),
                               std::tuple<Hooks...>(std::move(hooks)...));
}
/// Like the overload above, without final values.
template<evaluable Model, std::invocable MakeSource, class... Hooks>
[[nodiscard]] auto evaluate_repeatedly(Model& model, std::string checkpoint_dir, MakeSource make_source,
                                       repeated_evaluation_options options = {}, Hooks... hooks) {
  return stepwell::evaluate_repeatedly(model, std::move(checkpoint_dir), std::move(make_source), std::move(options), final_ops_hook{},
                                       std::move(hooks)...);
}

}  // namespace stepwell
