// SPDX-License-Identifier: Apache-2.0
#include "train.hpp"

#include "features.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/schedules/schedules.hpp>
#include <stepwell/summary/writer.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <memory>

namespace digits {
namespace {

namespace sw = stepwell;

sw::format::hparam_map settings_of(const network& model, const options& wanted) {
  return {{"batch_size", static_cast<double>(wanted.batch_size)},
          {"hidden", static_cast<double>(wanted.hidden)},
          {"learning_rate", static_cast<double>(model.optimizer.learning_rate)},
          {"seed", static_cast<double>(wanted.seed)}};
}

/// Returns the hook for the more expensive summaries, written rarely.
auto rare_summaries() {
  return sw::summary_saver_hook{
      {.save_steps = 1000},
      sw::summary::histogram("hidden/kernel", [](const network& now) -> const auto& { return now.hidden.kernel.value; }),
      sw::summary::image("hidden/features", [](const network& now) { return features(now, 3); })};
}

/// Returns the hook that measures the model on the test data after each epoch.
auto evaluation(const dataset& test) {
  return sw::evaluate_every(
      {.every = sw::epochs(1), .name = "test", .log = false}, [&test](const network& now) { return evaluate(now, test); },
      sw::measure("accuracy", &score::accuracy), sw::measure("loss", &score::loss));
}

/// Returns the hook that sets the learning rate: it rises for 200 steps, then falls to a tenth.
auto learning_rate(const network& model, std::int64_t last_step) {
  constexpr std::int64_t warm_up = 200;
  const sw::schedules::cosine_decay fall({.initial = static_cast<double>(model.optimizer.learning_rate),
                                          .decay_steps = std::max<std::int64_t>(last_step - warm_up, 1),
                                          .alpha = 0.1});
  return sw::scheduled([](network& now) -> float& { return now.optimizer.learning_rate; }, sw::schedules::warm_up(warm_up, fall));
}

}  // namespace

outcome train(network& model, const datasets& data, const options& wanted) {
  const auto batch_size = std::min<std::uint64_t>(wanted.batch_size, data.train.size());
  if (!model.group) { model.group = std::make_shared<sw::group>(sw::make_single_process_engine()); }
  auto batches = sw::data::shuffled_batches(sw::part_of(data.train, model.group),
                                            {.batch_size = batch_size, .seed = wanted.seed, .epochs = wanted.epochs});
  const auto epochs = static_cast<std::int64_t>(wanted.epochs.value_or(0));
  const auto steps_per_epoch = static_cast<std::int64_t>(batches.batches_per_epoch());
  const auto last_step = epochs > 0 ? std::min(wanted.steps, epochs * steps_per_epoch) : wanted.steps;

  // All writers of a directory share one event file. This one flushes every second, so that the run can be watched.
  // The session of a group has a writer of its own.
  const auto events = wanted.group ? nullptr : sw::summary::writer::shared(wanted.run_dir, {.flush_secs = 1});

  const auto tested = evaluation(data.test);
  const auto accuracy = tested.value("accuracy");
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = wanted.run_dir,
       .saves = {.save_steps = wanted.save_steps},
       .summaries = {.save_steps = 100, .hparams = settings_of(model, wanted)},
       .step_counter = {.every_n_steps = 5000},
       .stop_on = {SIGINT, SIGTERM},
       .group = wanted.group ? model.group : nullptr},
      sw::summaries(sw::summary::scalar("train/loss", &network::result::loss),
                    sw::summary::scalar("train/accuracy", &network::result::accuracy)),
      sw::stop_at_step(wanted.steps), learning_rate(model, last_step), sw::nan_tensor_hook{&network::result::loss},
      sw::chief_only(tested, sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize}, accuracy},
                     sw::progress_hook{{.last_step = last_step, .last_epoch = epochs, .batch_size = static_cast<std::int64_t>(batch_size)},
                                       &network::result::loss},
                     rare_summaries()));

  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  session.close();
  return {session.global_step(), session.stop_reason()};
}

}  // namespace digits
