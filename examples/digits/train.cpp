// SPDX-License-Identifier: Apache-2.0
#include "train.hpp"

#include "features.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/summary/writer.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <utility>

namespace digits {
namespace {

namespace sw = stepwell;

sw::format::hparam_map settings_of(const network& model, const options& wanted) {
  return {{"batch_size", static_cast<double>(wanted.batch_size)},
          {"hidden", static_cast<double>(wanted.hidden)},
          {"learning_rate", static_cast<double>(model.optimizer.learning_rate)},
          {"seed", static_cast<double>(wanted.seed)}};
}

/// Returns the hook for cheap summaries, written often.
auto frequent_summaries(const network& model, const options& wanted) {
  auto settings = settings_of(model, wanted);
  return sw::summary_saver_hook{{.output_dir = wanted.run_dir, .save_steps = 100, .hparams = std::move(settings)},
                                sw::summary::scalar("train/loss", &network::result::loss),
                                sw::summary::scalar("train/accuracy", &network::result::accuracy)};
}

/// Returns the hook for more expensive summaries, written rarely.
auto rare_summaries(const dataset& test, const options& wanted) {
  return sw::summary_saver_hook{
      {.output_dir = wanted.run_dir, .save_steps = 1000},
      sw::summary::scalar("test/accuracy", [&test](const network& now) { return evaluate(now, test).accuracy; }),
      sw::summary::histogram("hidden/kernel", [](const network& now) -> const auto& { return now.hidden.kernel.value; }),
      sw::summary::image("hidden/features", [](const network& now) { return features(now, 3); })};
}

}  // namespace

std::int64_t train(network& model, const datasets& data, const options& wanted) {
  auto batches = sw::data::shuffled_batches(
      data.train, {.batch_size = std::min<std::uint64_t>(wanted.batch_size, data.train.size()), .seed = wanted.seed});

  // All writers of a directory share one event file. This one flushes every second, so that the run can be watched.
  const auto events = sw::summary::writer::shared(wanted.run_dir, {.flush_secs = 1});

  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = wanted.run_dir, .save_checkpoint_steps = wanted.save_steps, .log_step_count_steps = 5000},
      sw::stop_at_step_hook{{.last_step = wanted.steps}}, sw::nan_tensor_hook{&network::result::loss},
      sw::progress_hook{{.last_step = wanted.steps}, &network::result::loss}, frequent_summaries(model, wanted),
      rare_summaries(data.test, wanted));

  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  session.close();
  return session.global_step();
}

}  // namespace digits
