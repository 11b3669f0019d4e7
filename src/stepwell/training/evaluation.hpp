// SPDX-License-Identifier: Apache-2.0
//
// Evaluation of a model at one checkpoint, or at each new checkpoint of a directory, without training. Corresponds to TensorFlow's
// `evaluate_once` and `evaluate_repeatedly`.
#pragma once

#include "stepwell/checkpoint/checkpoints_iterator.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/hook/detail/hook_set.hpp"
#include "stepwell/hooks/final_ops_hook.hpp"
#include "stepwell/hooks/stop_after_n_evals_hook.hpp"
#include "stepwell/model/evaluation_session.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/training_session.hpp"
#include "stepwell/training/evaluation_options.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Placeholder for the source of a model whose `step` takes no batch.
struct no_source {};

namespace detail {

template<class Hook>
std::reference_wrapper<Hook> as_reference(Hook& hook) {
  return hook;
}
template<class Hook>
std::reference_wrapper<Hook> as_reference(std::reference_wrapper<Hook>& hook) {
  return hook;
}

/// Evaluates a model that is already restored.
template<class Values, class Model, class Source, class FinalOps, class... Hooks>
evaluation<Values> evaluate(Model& model, const restored_evaluation& from, Source& source, const evaluation_options& options,
                            FinalOps& final_ops, Hooks... hooks) {
  static_assert(((phase_of<hook_type_of<Hooks>>() != hook_phase::persist) && ...),
                "stepwell: an evaluation saves nothing; leave out the hook that saves");
  stop_after_n_evals_hook counter({.num_evals = options.num_evals, .log_progress = options.log_progress});
  monitored_session session(settings_of(options), evaluation_session<Model>(model, from.global_step), saves_nothing_hook{},
                            std::move(hooks)..., std::ref(counter), std::ref(final_ops));
  evaluation_report report(from.checkpoint_path, options);
  with(session, [&](auto& self) {
    if constexpr (std::is_same_v<std::remove_const_t<Source>, no_source>) {
      for ([[maybe_unused]] const auto& step : self.steps()) {}
    } else {
      for ([[maybe_unused]] const auto& step : self.steps(source)) {}
    }
  });
  report.finish(counter.evals_completed());
  return {from.checkpoint_path, from.global_step, counter.evals_completed(), session.stop_reason(), final_ops.final_ops_values()};
}

template<class Model, class MakeSource, class FinalOps, class... Hooks>
class repeated_evaluation {
public:
  using values_type = typename FinalOps::values_type;

  repeated_evaluation(Model& model, MakeSource make_source, repeated_evaluation_options options, FinalOps final_ops, Hooks... hooks)
      : model_(model), make_source_(std::move(make_source)), options_(std::move(options)), final_ops_(std::move(final_ops)),
        hooks_(std::move(hooks)...) {}

  /// Evaluates the checkpoint `prefix`. Returns nothing if the checkpoint was deleted or is damaged.
  [[nodiscard]] std::optional<evaluation<values_type>> next(const std::string& prefix) {
    const auto opened = open_if_whole(prefix, options_.evaluation);
    if (!opened) { return std::nullopt; }
    const auto from = detail::restore_for_evaluation(model_, *opened, options_.evaluation);
    auto&& source = make_source_();
    ++count_;
    return std::apply(
        [&](Hooks&... hook) {
          return detail::evaluate<values_type>(model_, from, source, options_.evaluation, final_ops_, detail::as_reference(hook)...);
        },
        hooks_);
  }
  [[nodiscard]] bool is_enough() const noexcept {
    return options_.max_number_of_evaluations && count_ >= *options_.max_number_of_evaluations;
  }

private:
  Model& model_;
  MakeSource make_source_;
  repeated_evaluation_options options_;
  FinalOps final_ops_;
  std::tuple<Hooks...> hooks_;
  std::int64_t count_ = 0;
};

template<class Repeated>
generator<const evaluation<typename Repeated::values_type>&> evaluations_of(generator<const std::string&> checkpoints,
                                                                            std::unique_ptr<Repeated> repeated) {
  std::optional<evaluation<typename Repeated::values_type>> latest;
  if (repeated->is_enough()) { co_return; }
  for (const auto& prefix : checkpoints) {
    latest = repeated->next(prefix);
    if (latest) { co_yield *latest; }
    if (repeated->is_enough()) { break; }
  }
}

}  // namespace detail

/// Restores `checkpoint_path` into `model`, runs its steps over `source` with hooks, and ends the hooks. The evaluation ends after
/// `num_evals` steps or at the end of the data. For a model that needs no data, pass `no_source{}`. Every trainable model can be
/// evaluated: its `step` is the evaluation. An evaluation saves nothing: a hook that saves does not compile, and a save requested
/// by a hook is rejected with a warning. Stateful hooks keep their current state. The source continues at its current position.
/// `evaluate_once(model, "run/model.ckpt-500", test_set, {.num_evals = 100}, final_ops_hook{&digits::accuracy})`.
/// @errors   Failures of restoring, and exceptions of a step or a hook. The latter two are passed to `on_error` of the hooks, as in
///           training.
/// @lifetime All arguments must outlive only the call.
template<trainable_model Model, class Source, class... Ops, class... Hooks>
auto evaluate_once(Model& model, const std::string& checkpoint_path, Source&& source, const evaluation_options& options,
                   final_ops_hook<Ops...> final_ops, Hooks... hooks) {
  using values = typename final_ops_hook<Ops...>::values_type;
  const auto from = detail::restore_for_evaluation(model, detail::open_checkpoint(checkpoint_path, options), options);
  return detail::evaluate<values>(model, from, source, options, final_ops, std::move(hooks)...);
}
/// Like the overload above, without final values.
template<trainable_model Model, class Source, class... Hooks>
auto evaluate_once(Model& model, const std::string& checkpoint_path, Source&& source, const evaluation_options& options = {},
                   Hooks... hooks) {
  return stepwell::evaluate_once(model, checkpoint_path, std::forward<Source>(source), options, final_ops_hook{}, std::move(hooks)...);
}

/// Evaluates each new complete checkpoint of a directory, in the order of `checkpoints_iterator`. `make_source()` returns the data
/// of one evaluation. Each evaluation is made when the next element of the range is requested:
/// `for (const auto& found : evaluate_repeatedly(model, "run", [&] { return data::source(test_set); }, options, ops)) {...}`.
/// Hooks begin and end with each evaluation and are kept for the next one. A checkpoint that its saver deletes before it is opened
/// is skipped with a log line.
/// @lifetime `model` and the targets of `std::ref` hooks must outlive the range.
/// @errors   Like `evaluate_once` and `checkpoints_iterator`, thrown during the iteration.
template<trainable_model Model, std::invocable MakeSource, class... Ops, class... Hooks>
[[nodiscard]] auto evaluate_repeatedly(Model& model, std::string checkpoint_dir, MakeSource make_source,
                                       repeated_evaluation_options options, final_ops_hook<Ops...> final_ops, Hooks... hooks) {
  using repeated = detail::repeated_evaluation<Model, MakeSource, final_ops_hook<Ops...>, Hooks...>;
  auto checkpoints = checkpoints_iterator(std::move(checkpoint_dir), detail::following_of(options));
  return detail::evaluations_of(std::move(checkpoints), std::make_unique<repeated>(model, std::move(make_source), std::move(options),
                                                                                   std::move(final_ops), std::move(hooks)...));
}
/// Like the overload above, without final values.
template<trainable_model Model, std::invocable MakeSource, class... Hooks>
[[nodiscard]] auto evaluate_repeatedly(Model& model, std::string checkpoint_dir, MakeSource make_source,
                                       repeated_evaluation_options options = {}, Hooks... hooks) {
  return stepwell::evaluate_repeatedly(model, std::move(checkpoint_dir), std::move(make_source), std::move(options), final_ops_hook{},
                                       std::move(hooks)...);
}

}  // namespace stepwell
