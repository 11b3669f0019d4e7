// SPDX-License-Identifier: Apache-2.0
//
// Trains a graph with the installed adapter. Without TensorFlow's library, checks that the error says how to install it.
#include <stepwell/base/error.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/tensorflow/graph_builder.hpp>
#include <stepwell/tensorflow/runtime.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace sw = stepwell;
namespace tf = stepwell::tensorflow;

/// Trains the graph until step 10.
int train(tf::graph graph) {
  auto session = sw::monitored_training_session(graph, {}, sw::nan_tensor_hook{"w/read"}, sw::stop_at_step_hook{{.last_step = 10}});
  for (const auto& step : session.steps()) { std::printf("%ld\n", static_cast<long>(step.global_step)); }
  session.close();
  return session.global_step() == 10 ? 0 : 1;
}

int count_to_ten() {
  tf::graph_builder build;
  build.variable("w", tf::tensor(1.0F));
  const auto step = build.variable("global_step", tf::tensor(std::int64_t{0}));
  const tf::output one = build.constant("one", tf::tensor(std::int64_t{1}));
  build.add("AssignAddVariableOp", "train_op").input(step.handle).input(one).build();
  build.add_to_collection("train_op", "train_op");
  return train(std::move(build).finish());
}

int main() {
  try {
    std::printf("TensorFlow %s\n", tf::runtime::open().version().c_str());
  } catch (const sw::not_found_error& failure) {
    const std::string text = failure.what();
    std::printf("%s\n", text.c_str());
    return text.find("pip install tensorflow-cpu") != std::string::npos ? 0 : 1;  // the program runs, and says how to get the library
  }
  return count_to_ten();
}
