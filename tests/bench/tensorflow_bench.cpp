// SPDX-License-Identifier: Apache-2.0
//
// The cost that a monitored session adds to a run of TensorFlow: the graph `mlp` in the calling thread, with six hooks of which two fetch,
// compared with a bare loop of TF_SessionRun that fetches the same values and the step, in alternating batches of steps. With the file of
// another graph, prints the time of its monitored step. With the file of a large graph, prints the time for which a due checkpoint stops
// training, compared with one memcpy of the variables, and the memory that it needs. `bash tests/run tensorflow-bench` runs it.
#include "bench/memory.hpp"
#include "bench/timing.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/tensorflow/detail/c_api.hpp>
#include <stepwell/tensorflow/detail/config.hpp>
#include <stepwell/tensorflow/detail/graph_state.hpp>
#include <stepwell/tensorflow/detail/session_core.hpp>
#include <stepwell/tensorflow/runtime.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
namespace tf = stepwell::tensorflow;
namespace c = stepwell::tensorflow::detail::c;
using stepwell::bench::median;

namespace {

constexpr int steps = 50;
constexpr int pairs = 1001;

double micros_of(auto&& action) {
  const auto begun = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count();
}
sw::training_options options_in(const std::string& directory) {
  return {.checkpoint_dir = directory,
          .summaries = {.save_steps = 1'000'000'000},
          .step_counter = {.every_n_steps = 1'000'000'000},
          .config = {.intra_op_parallelism_threads = 1, .inter_op_parallelism_threads = 1}};
}

/// Returns the read of the global step that runs after `train_op`, `loss` and `accuracy`, and after nothing else. A run of the monitored
/// session has made it.
c::output read_of_step(const tf::detail::graph_state& state) {
  const std::set<std::string> wanted = {"train_op", "loss", "accuracy"};
  for (const auto& [purpose, operation] : state.added) {
    std::istringstream lines(purpose);
    std::string line;
    std::getline(lines, line);
    std::set<std::string> after;
    while (std::getline(lines, line)) { after.insert(line.substr(line.rfind('/') + 1)); }
    if (after == wanted) { return {operation, 0}; }
  }
  throw sw::internal_error("the monitored session reads no step after train_op, loss and accuracy");
}

/// A loop of TF_SessionRun that does what the monitored session does in a step, and nothing else: the same session of TensorFlow, feeds,
/// fetches and target, the same read of the step, one status for all runs. Each value is read once, and each tensor is deleted.
/// In a session of its own, its variables would be at other addresses, which makes the steps of one process up to 0.5 us faster or slower.
class bare_loop {
public:
  bare_loop(const tf::graph& graph, const tf::graph_session& session, const tf::tensor& images, const tf::tensor& labels)
      : raw_(session.core()->session->raw()), fed_{images.raw(), labels.raw()}, status_(functions_.new_status()) {
    const auto& state = *graph.state();
    feeds_ = {state.get_output("images", "feed"), state.get_output("labels", "feed")};
    outputs_ = {state.get_output("loss", "fetch"), state.get_output("accuracy", "fetch"), state.get_output("global_step", "fetch")};
    target_ = state.get("train_op", "target");
  }
  bare_loop(const bare_loop&) = delete;
  bare_loop& operator=(const bare_loop&) = delete;
  ~bare_loop() { functions_.delete_status(status_); }

  void run(c::output step) {
    outputs_[2] = step;
    std::array<c::tensor*, 3> values{};
    for (int i = 0; i < steps; ++i) {
      functions_.session_run(raw_, nullptr, feeds_.data(), fed_.data(), 2, outputs_.data(), values.data(), 3, &target_, 1, nullptr,
                             status_);
      if (functions_.get_code(status_) != 0) { throw sw::internal_error(functions_.message(status_)); }
      if (!std::isfinite(read<float>(values[0]))) { throw sw::internal_error("the loss is not finite"); }
      accuracy_ = read<float>(values[1]);
      step_ = read<std::int64_t>(values[2]);
      for (auto* const one : values) { functions_.delete_tensor(one); }
    }
  }

private:
  template<class T>
  T read(const c::tensor* from) const {
    T value;
    std::memcpy(&value, functions_.tensor_data(from), sizeof(value));
    return value;
  }

  const c::api& functions_ = tf::detail::functions();
  c::session* raw_;
  std::array<c::output, 2> feeds_{};
  std::array<c::tensor*, 2> fed_;
  std::array<c::output, 3> outputs_{};
  c::operation* target_ = nullptr;
  c::status* status_;
  volatile float accuracy_ = 0;
  volatile std::int64_t step_ = 0;
};

void compare(const std::string& file) {
  const stepwell::test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(file);
  // Step counter, summaries, checkpoints, stop, and two that fetch.
  auto session = sw::monitored_training_session(graph, options_in(directory.path()), sw::nan_tensor_hook{"loss:0"},
                                                sw::logging_tensor_hook{{.at_end = true}, "accuracy:0"},
                                                sw::stop_at_step_hook{{.last_step = 1'000'000'000}});
  const auto images = tf::tensor(sw::dtype::float32, {16, 64}).for_graph(1);  // shared with the graph: not copied in each step
  const auto labels = tf::tensor(sw::dtype::int64, {16}).for_graph(1);
  const auto monitored = [&] {
    for (int i = 0; i < steps; ++i) { session.run(sw::feed("images:0", images), sw::feed("labels:0", labels)); }
  };
  bare_loop bare(graph, session.raw_session(), images, labels);
  monitored();  // makes the plan, and the read of the step after everything else
  const auto exact = read_of_step(*graph.state());
  const auto plain = graph.state()->get_output("global_step", "fetch");
  for (const auto& step : {exact, plain}) { bare.run(step); }
  std::vector<double> ours;
  std::vector<double> same;
  std::vector<double> others;
  std::vector<double> more;
  for (int i = 0; i < pairs; ++i) {  // in turns: ours, bare, bare, ours
    const auto first = micros_of(monitored) / steps;
    const auto second = micros_of([&] { bare.run(exact); }) / steps;
    const auto third = micros_of([&] { bare.run(exact); }) / steps;
    const auto fourth = micros_of(monitored) / steps;
    others.push_back(micros_of([&] { bare.run(plain); }) / steps);
    ours.push_back((first + fourth) / 2);
    same.push_back((second + third) / 2);
    more.push_back(ours.back() - same.back());
  }
  std::printf("monitored step with six hooks %.2f us, bare TF_SessionRun of the same %.2f us, difference %.2f us (medians of %d pairs)\n",
              median(ours), median(same), median(more), pairs);
  std::printf("bare TF_SessionRun with the step read beside the train operation, which may be the old one: %.2f us\n", median(others));
}

void measure(const std::string& file) {
  const stepwell::test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(file);
  auto session = sw::monitored_training_session(graph, options_in(directory.path()), sw::nan_tensor_hook{"loss:0"},
                                                sw::logging_tensor_hook{{.every_n_iter = 1'000'000'000}, "loss:0"});
  const auto x = tf::tensor(sw::dtype::float32, {4}).for_graph(1);
  const auto run = [&] {
    for (int i = 0; i < steps; ++i) { session.run(sw::feed("x:0", x), sw::feed("y:0", x)); }
  };
  run();
  std::vector<double> times;
  for (int i = 0; i < pairs; ++i) { times.push_back(micros_of(run) / steps); }
  std::printf("stepwell: monitored step of %s: %.2f us\n", file.c_str(), median(times));
}

/// A checkpoint is due every `period` steps. Its cost is the time of that step above the median of the other steps. The next step is shown,
/// too: it would have to copy variables that a checkpoint still held.
void stall(const std::string& file) {
  constexpr int saves = 9;
  constexpr int period = 12;
  const stepwell::test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(file);
  auto options = options_in(directory.path());
  options.saves.save_steps = period;
  options.saves.saver.max_to_keep = 1;
  auto session = sw::monitored_training_session(graph, options, tf::graph_options{.save_graph_def = false});
  std::size_t bytes = 0;
  for (const auto& one : session.raw_session().variables()) {
    bytes += sw::size_of(one.dtype()) * static_cast<std::size_t>(sw::element_count(one.shape()));
  }
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> times;
  std::vector<double> copies;
  std::size_t without = 0;
  for (int step = 1; step <= (saves + 1) * period; ++step) {
    times.push_back(micros_of([&] { session.run(); }));
    if (step % period == period / 2) {
      copies.push_back(micros_of([&] { std::memcpy(to.data(), from.data(), bytes); }));
      if (step < period) {
        std::this_thread::sleep_for(std::chrono::seconds(2));  // until the checkpoint of the start is written
        stepwell::bench::reset_peak_memory();
      }
    }
    if (step == period - 1) { without = stepwell::bench::status_bytes("VmHWM:"); }
  }
  std::vector<double> due;
  std::vector<double> next;
  std::vector<double> others;
  for (std::size_t i = period; i < times.size(); ++i) {  // the first steps prepare plans and memory
    const auto place = (i + 1) % period;                 // 0: the step that is followed by a save
    if (place == 0 && i + 1 < times.size()) { due.push_back(times[i]), next.push_back(times[i + 1]); }
    if (place > 1) { others.push_back(times[i]); }
  }
  const auto stop = median(due) - median(others);
  const auto slower = median(next) - median(others);
  std::printf(
      "due checkpoint of %zu MiB: stops training for %.1f ms, %.2f memcpy; the next step, during the write, takes %.1f ms more; one memcpy "
      "%.1f ms, a step %.1f ms (medians of %d)\n",
      bytes >> 20U, stop / 1e3, stop / median(copies), slower / 1e3, median(copies) / 1e3, median(others) / 1e3, saves);
  std::printf("peak memory while checkpoints are written: %.2f times the variables more than without\n",
              static_cast<double>(stepwell::bench::status_bytes("VmHWM:") - without) / static_cast<double>(bytes));
}

}  // namespace

int main(int count, char** values) {
  try {
    sw::set_log_level(sw::log_level::error);
    if (count < 2) {
      std::fprintf(stderr, "usage: bench_tensorflow MLP.meta [REGRESSION.meta [LARGE.meta]]\n");
      return EXIT_FAILURE;
    }
    compare(values[1]);
    if (count > 2) { measure(values[2]); }
    if (count > 3) { stall(values[3]); }
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_tensorflow: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
