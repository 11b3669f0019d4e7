// SPDX-License-Identifier: Apache-2.0
//
// Trains the classifier of examples/digits with TensorFlow, without Python: the graph is made in C++. The program may be killed at any time
// and continues when it is started again.
#include "dataset.hpp"
#include "digits_graph.hpp"
#include "fingerprint.hpp"
#include "options.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace tf = stepwell::tensorflow;

namespace {

/// Examples whose batches are feeds of the graph.
struct fed_examples {
  const digits::dataset& examples;

  [[nodiscard]] std::uint64_t size() const noexcept { return examples.size(); }
  [[nodiscard]] std::vector<tf::named_feed> batch(std::span<const std::uint64_t> indices) const {
    const auto some = examples.batch(indices);
    return {{"images", tf::tensor(some.images)}, {"labels", tf::tensor(some.labels)}};
  }
};

/// Returns a checksum over all bits of the variables.
std::string fingerprint_of(const tf::graph_session& raw) {
  const auto names = digits::variable_names();
  std::vector<std::string> reads;
  for (const auto& name : names) { reads.push_back(name + "/read"); }
  auto values = raw.run_apart(reads);
  sw::variable_list all;
  for (std::size_t i = 0; i < names.size(); ++i) { all.emplace_back(names[i], values[i].span<float>()); }
  return digits::fingerprint(all);
}

void print_score(const tf::graph_session& raw, const digits::dataset& test) {
  std::vector<std::uint64_t> indices(test.size());
  std::iota(indices.begin(), indices.end(), std::uint64_t{0});
  const auto score = raw.run_apart({"loss", "accuracy"}, {}, fed_examples{test}.batch(indices));
  std::printf("final step=%lld loss=%.6f accuracy=%.4f fingerprint=%s\n", static_cast<long long>(raw.global_step()),
              static_cast<double>(score[0].as<float>()), static_cast<double>(score[1].as<float>()), fingerprint_of(raw).c_str());
}

void run(const digits::options& wanted) {
  const auto data = digits::datasets_for(wanted.data, wanted.run_dir);
  auto graph = digits::make_graph(wanted.hidden, wanted.seed);
  auto batches = sw::data::shuffled_batches(fed_examples{data.train}, {.batch_size = wanted.batch_size, .seed = wanted.seed});
  auto session =
      sw::monitored_training_session(graph,
                                     {.checkpoint_dir = wanted.run_dir,
                                      .saves = {.save_steps = wanted.save_steps},
                                      .config = {.intra_op_parallelism_threads = wanted.threads, .inter_op_parallelism_threads = 1}},
                                     sw::stop_at_step_hook{{.last_step = wanted.steps}}, sw::nan_tensor_hook{"loss"});
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  print_score(session.raw_session(), data.test);
  session.close();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const auto wanted = digits::parse_options(count, arguments);
    if (!wanted) {
      std::fputs(digits::help_text().c_str(), stdout);
      return EXIT_SUCCESS;
    }
    run(*wanted);
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "digits: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
