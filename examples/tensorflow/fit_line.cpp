// SPDX-License-Identifier: Apache-2.0
//
// Trains the graph of fit_line.py: fit_line line.meta. It finds the line through points of y = 3 x + 1.
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

namespace sw = stepwell;

namespace {

void train(const char* file) {
  auto graph = sw::tensorflow::graph::import_meta_graph(file);
  auto session = sw::monitored_training_session(graph,
                                                {.checkpoint_dir = "line-run",
                                                 .saves = {.save_steps = 100},
                                                 .summaries = {.save_steps = 10},
                                                 .config = {.inter_op_parallelism_threads = 1}},
                                                sw::nan_tensor_hook{"loss:0"}, sw::stop_at_step_hook{{.last_step = 300}});

  const std::vector<float> x = {-1, 0, 1, 2};
  const std::vector<float> y = {-2, 1, 4, 7};
  while (!session.should_stop()) {
    const auto [loss] = session.run(sw::fetch<float>("loss:0"), sw::target("train_op"), sw::feed("x:0", x), sw::feed("y:0", y));
    if (session.global_step() % 100 == 0) { std::printf("step %ld: loss %g\n", static_cast<long>(session.global_step()), loss); }
  }
  session.close();
}

}  // namespace

int main(int count, char** values) {
  try {
    train(count > 1 ? values[1] : "line.meta");
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "fit_line: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
