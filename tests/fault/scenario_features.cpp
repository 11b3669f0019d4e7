// SPDX-License-Identifier: Apache-2.0
#include "fault/scenario_parts.hpp"
#include "fault/scenarios.hpp"

#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/record_files.hpp>
#include <stepwell/format/events/record.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/io/atomic_file.hpp>
#include <stepwell/io/file_system.hpp>

#include <cstddef>

namespace stepwell::test {
namespace {

/// A large model that is trained on records. Its loss in an evaluation falls with each step.
struct record_model : large_model {
  result step(const std::vector<std::byte>& record) { return large_model::step(static_cast<std::int64_t>(record.size() % 2 + 1)); }
  [[nodiscard]] double loss_of(double value) const { return value - static_cast<double>(sum); }
};

std::vector<std::byte> records_of(std::size_t size) {
  std::vector<std::byte> content;
  for (int i = 0; i < 3; ++i) { format::append_record(content, std::vector<std::byte>(size)); }
  return content;
}

// Allocated before any request is refused. The records of one file are larger than `large_allocation`.
record_model trained;
record_model evaluated;
const std::vector<std::byte> small_records = records_of(10);
const std::vector<std::byte> large_records = records_of(9 * large_allocation / 8);

data::record_files_options records_in(const std::string& directory) {
  data::record_files_options options{.paths = {directory + "/small", directory + "/large"}, .epochs = std::nullopt};
  value_or_throw(io::write_file_atomically(*io::posix_file_system(), options.paths[0], small_records));
  value_or_throw(io::write_file_atomically(*io::posix_file_system(), options.paths[1], large_records));
  return options;
}

void train_with_features(const std::string& directory) {
  static const std::vector<double> test_set{1, 2, 3};
  training_options options{.checkpoint_dir = directory, .saves = {.save_steps = 3}};
  options.metrics = {std::make_shared<summary::csv_writer>(directory + "/metrics.csv"),
                     std::make_shared<summary::jsonl_writer>(directory + "/metrics.jsonl")};
  const auto loss = measure("loss", metrics::mean(), [](double value) { return value; });
  const auto tested = evaluate_every({.every = 2, .log = false}, beside(evaluated), test_set, &record_model::loss_of, loss);
  auto session = monitored_training_session(trained, options, tested, best_checkpoint_hook{{.keep = 2}, tested.value("loss")},
                                            stop_at_step_hook({.num_steps = steps_of_a_session}));
  std::int64_t last = 0;
  auto batches = data::prefetch(data::record_files(records_in(directory)), {.depth = 2});
  for (const auto& step : session.steps(batches)) { last = step.global_step; }
  session.close();
  if (latest_checkpoint(directory) != directory + "/model.ckpt-" + std::to_string(last)) {
    throw std::logic_error("the newest checkpoint is not the one of step " + std::to_string(last));
  }
}

}  // namespace

void featured_sessions(const std::string& directory) {
  train_with_features(directory);
  train_with_features(directory);
}

}  // namespace stepwell::test
