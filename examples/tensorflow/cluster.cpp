// SPDX-License-Identifier: Apache-2.0
//
// Trains one graph with several processes, on servers of TensorFlow: a parameter server holds the variables, a chief and workers do the
// steps. Start the same program once for each task:
//
//     cluster JOB TASK PS CHIEF WORKER... --steps N --run-dir D
//
// JOB is ps, chief or worker; PS, CHIEF and WORKER are addresses such as localhost:2222. cluster.sh starts all of them on this machine.
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/tensorflow/graph_builder.hpp>
#include <stepwell/tensorflow/server.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace tf = stepwell::tensorflow;

namespace {

struct arguments {
  std::string job;
  int task = 0;
  std::map<std::string, std::vector<std::string>> cluster;
  std::int64_t steps = 1'000;
  std::string run_dir = "cluster-run";
};

arguments parse(int count, char** values) {
  arguments given;
  std::vector<std::string> places;
  for (int i = 1; i < count; ++i) {
    const std::string one = values[i];
    if ((one == "--steps" || one == "--run-dir") && i + 1 < count) {
      (one == "--steps" ? void(given.steps = std::atoll(values[i + 1])) : void(given.run_dir = values[i + 1]));
      ++i;
    } else {
      places.push_back(one);
    }
  }
  if (places.size() < 4) { throw std::invalid_argument("usage: cluster JOB TASK PS CHIEF WORKER... --steps N --run-dir D"); }
  given.job = places[0];
  given.task = std::atoi(places[1].c_str());
  given.cluster["ps"] = {places[2]};
  given.cluster["chief"] = {places[3]};
  given.cluster["worker"].assign(places.begin() + 4, places.end());
  if (given.cluster["worker"].empty()) { given.cluster.erase("worker"); }
  return given;
}

/// Returns a graph that finds the line through points: its variables are on the parameter server, all else is on this task.
tf::graph build_line(const arguments& given) {
  const std::string on_ps = "/job:ps/task:0";
  const std::string here = "/job:" + given.job + "/task:" + std::to_string(given.task);
  tf::graph_builder build;
  const auto w = build.variable("w", tf::tensor(0.0F), on_ps);
  const auto b = build.variable("b", tf::tensor(0.0F), on_ps);
  const auto step = build.variable("global_step", tf::tensor(std::int64_t{0}), on_ps);
  const auto placeholder = [&](const char* name) -> tf::output {
    return build.add("Placeholder", name).device(here).attr("dtype", sw::dtype::float32).attr("shape", sw::tensor_shape{4});
  };
  const tf::output x = placeholder("x");
  const tf::output y = placeholder("y");
  const tf::output product = build.add("Mul", "product").device(here).input(w.value).input(x);
  const tf::output line = build.add("AddV2", "line").device(here).input(product).input(b.value);
  const tf::output error = build.add("Square", "error").device(here).input(build.add("Sub", "distance").device(here).input(line).input(y));
  const tf::output axis = build.constant("axis", tf::tensor(std::vector<std::int32_t>{0}));
  const tf::output loss = build.add("Mean", "loss").device(here).input(error).input(axis);
  const auto gradients = build.gradients({loss}, {w.value, b.value});
  const auto rate = build.constant("rate", tf::tensor(0.02F));
  const tf::operation for_w =
      build.add("ResourceApplyGradientDescent", "apply_w").device(on_ps).input(w.handle).input(rate).input(gradients[0]);
  const tf::operation for_b =
      build.add("ResourceApplyGradientDescent", "apply_b").device(on_ps).input(b.handle).input(rate).input(gradients[1]);
  build.add("AssignAddVariableOp", "train_op")
      .device(on_ps)
      .input(step.handle)
      .input(build.constant("one", tf::tensor(std::int64_t{1})))
      .control_input(for_w)
      .control_input(for_b)
      .attr("dtype", sw::dtype::int64)
      .build();
  build.add_to_collection("train_op", "train_op");
  return std::move(build).finish();
}

void train(const arguments& given, const std::string& master) {
  auto graph = build_line(given);
  const bool is_chief = given.job == "chief";
  auto session = sw::monitored_training_session(
      graph, {.master = master, .is_chief = is_chief, .checkpoint_dir = given.run_dir, .saves = {.save_steps = 100}},
      tf::graph_options{.runtime = {.operation_timeout_in_ms = 10'000}}, sw::nan_tensor_hook{"loss"},
      sw::stop_at_step_hook{{.last_step = given.steps}});
  std::printf("%s %d begins after step %lld\n", given.job.c_str(), given.task, static_cast<long long>(session.global_step()));
  std::fflush(stdout);
  const std::vector<float> x = {-1, 0, 1, 2};
  const std::vector<float> y = {-2, 1, 4, 7};
  int own_steps = 0;
  while (!session.should_stop()) {
    session.run(sw::feed("x:0", x), sw::feed("y:0", y));
    ++own_steps;
  }
  session.close();
  std::printf("%s %d did %d steps and ends at step %lld\n", given.job.c_str(), given.task, own_steps,
              static_cast<long long>(session.global_step()));
}

}  // namespace

int main(int count, char** values) {
  try {
    const auto given = parse(count, values);
    const tf::server server({.cluster = given.cluster, .job = given.job, .task = given.task});
    if (given.job == "ps") {
      while (true) { ::pause(); }  // serves until it is killed
    }
    train(given, server.target());
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "cluster: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
