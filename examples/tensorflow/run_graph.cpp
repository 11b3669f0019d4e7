// SPDX-License-Identifier: Apache-2.0
//
// Trains a graph of TensorFlow from C++ and prints the fetched values of each step:
//
//     run_graph DIR --steps N --run-dir D [--hooks all|none]
//
// DIR holds model.ckpt-0 with its .meta, and reference.json, which names fetches, feeds and the train operation. The feeds are computed
// from the number of the step. The run continues from the newest checkpoint in D, or else starts from DIR/model.ckpt-0. Each line is a
// step, a tab, and the values separated by tabs: floats in hexadecimal, the elements of a fetch separated by commas.
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/profiler_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/tensorflow/server.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace tf = stepwell::tensorflow;

namespace {

struct arguments {
  std::string graph_dir;
  std::string run_dir;
  std::int64_t steps = 20;
  std::int64_t checkpoint_steps = 5;
  bool has_hooks = true;
};

arguments parse(int count, char** values) {
  arguments given;
  for (int i = 1; i < count; ++i) {
    const std::string one = values[i];
    const auto next = [&]() -> std::string {
      if (i + 1 >= count) { throw std::invalid_argument(one + " needs a value"); }
      return values[++i];
    };
    if (one == "--steps") {
      given.steps = std::stoll(next());
    } else if (one == "--run-dir") {
      given.run_dir = next();
    } else if (one == "--checkpoint-steps") {
      given.checkpoint_steps = std::stoll(next());
    } else if (one == "--hooks") {
      given.has_hooks = next() == "all";
    } else if (given.graph_dir.empty() && !one.starts_with("--")) {
      given.graph_dir = one;
    } else {
      throw std::invalid_argument("unknown argument " + one);
    }
  }
  if (given.graph_dir.empty() || given.run_dir.empty()) {
    throw std::invalid_argument("usage: run_graph DIR --steps N --run-dir D [--hooks all|none] [--checkpoint-steps N]");
  }
  return given;
}

/// A feed whose elements are computed from the number of the step.
struct computed_feed {
  std::string name;
  std::string kind;
  sw::tensor_shape shape;
  std::int64_t seed;

  /// Element k is r = (k * 31 + step * 17 + seed * 7) mod 97: as a float r / 97, as an integer r mod 10, as a string "token<r>".
  tf::tensor at(std::int64_t step) const {
    const auto number = [&](std::size_t k) { return (static_cast<std::int64_t>(k) * 31 + step * 17 + seed * 7) % 97; };
    if (kind == "bytes") {
      std::vector<std::string> tokens(static_cast<std::size_t>(sw::element_count(shape)));
      for (std::size_t k = 0; k < tokens.size(); ++k) { tokens[k] = "token" + std::to_string(number(k)); }
      return tf::tensor::of_strings(tokens, shape);
    }
    if (kind == "int64") {
      tf::tensor made(sw::dtype::int64, shape);
      std::size_t k = 0;
      for (auto& one : made.span<std::int64_t>()) { one = number(k++) % 10; }
      return made;
    }
    tf::tensor made(sw::dtype::float32, shape);
    std::size_t k = 0;
    for (auto& one : made.span<float>()) { one = static_cast<float>(number(k++)) / 97.0F; }
    return made;
  }
};

/// The content of reference.json.
struct reference {
  std::vector<std::string> fetches;
  std::string train;
  std::vector<computed_feed> feeds;

  explicit reference(const std::string& file) {
    std::ifstream in(file);
    if (!in) { throw std::runtime_error("cannot read " + file); }
    const auto content = nlohmann::json::parse(in);
    fetches = content.at("fetches").get<std::vector<std::string>>();
    train = content.at("train").get<std::string>();
    for (const auto& one : content.at("feeds")) {
      feeds.push_back({one.at("name").get<std::string>(), one.at("kind").get<std::string>(), one.at("shape").get<sw::tensor_shape>(),
                       static_cast<std::int64_t>(feeds.size())});
    }
  }

  std::vector<tf::named_feed> feeds_at(std::int64_t step) const {
    std::vector<tf::named_feed> all;
    for (const auto& one : feeds) { all.push_back({one.name, one.at(step)}); }
    return all;
  }
};

template<class Number>
void print_floats(const tf::tensor& value) {
  const char* separator = "";
  for (const auto one : value.span<Number>()) {
    std::printf(one == 0 ? "%s%a" : "%s%.13a", separator, static_cast<double>(one));
    separator = ",";
  }
}
void print(const tf::tensor& value) {
  const char* separator = "";
  switch (value.dtype()) {
    case sw::dtype::float32: return print_floats<float>(value);
    case sw::dtype::float64: return print_floats<double>(value);
    case sw::dtype::int64:
      for (const auto one : value.span<std::int64_t>()) {
        std::printf("%s%lld", std::exchange(separator, ","), static_cast<long long>(one));
      }
      return;
    case sw::dtype::int32:
      for (const auto one : value.span<std::int32_t>()) { std::printf("%s%d", std::exchange(separator, ","), one); }
      return;
    default:
      for (const auto& one : value.strings()) { std::printf("%s%s", std::exchange(separator, ","), one.c_str()); }
  }
}

/// Starts a server in this process for each task that a device of the graph names. Returns the address of one, or "" if there are none.
std::string start_servers(const tf::graph& graph) {
  std::map<std::string, int> tasks;  // the number of tasks of each job
  for (const auto& operation : graph.operations()) {
    const auto device = operation.device();
    const auto job = device.find("/job:");
    const auto task = device.find("/task:");
    if (job == std::string::npos || task == std::string::npos) { continue; }
    auto& count = tasks[device.substr(job + 5, device.find('/', job + 5) - job - 5)];
    count = std::max(count, std::atoi(device.c_str() + task + 6) + 1);
  }
  tf::server_options options;
  for (const auto& [job, count] : tasks) {
    for (int i = 0; i < count; ++i) { options.cluster[job].push_back(tf::free_local_address()); }
  }
  std::string target;
  for (const auto& [job, addresses] : options.cluster) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      options.job = job;
      options.task = static_cast<int>(i);
      target = tf::server(options).target();  // the session may use any of them; the last one is a worker
    }
  }
  return target;
}

template<class... Hooks>
void train(const arguments& given, const reference& wanted, tf::graph& graph, Hooks... hooks) {
  // Where there is no checkpoint in the run's directory, the graph starts from the values that were saved with it.
  const auto start_values = [&](const auto& /*scaffold*/, tf::graph_session& raw) {
    sw::restore(raw.variables(), sw::checkpoint_reader(given.graph_dir + "/model.ckpt-0"));
    raw.push();
  };
  auto scaffold = std::make_shared<sw::scaffold<tf::graph_session>>(sw::scaffold_options<tf::graph_session>{.init_fn = start_values});
  auto session = sw::monitored_training_session(graph,
                                                {.master = start_servers(graph),
                                                 .scaffold = std::move(scaffold),
                                                 .checkpoint_dir = given.run_dir,
                                                 .save_checkpoint_steps = given.checkpoint_steps,
                                                 .save_summaries_steps = 5,
                                                 .config = {.intra_op_parallelism_threads = 1, .inter_op_parallelism_threads = 1},
                                                 .train_op = wanted.train},
                                                sw::stop_at_step_hook{{.last_step = given.steps}}, std::move(hooks)...);
  try {
    while (!session.should_stop()) {
      const auto step = session.global_step();
      const auto values = session.run(sw::fetch_list(wanted.fetches), sw::target(wanted.train), wanted.feeds_at(step));
      std::printf("%lld", static_cast<long long>(session.global_step()));
      for (const auto& value : values) {
        std::putchar('\t');
        print(value);
      }
      std::putchar('\n');
      std::fflush(stdout);
    }
  } catch (const sw::out_of_range_error&) {}  // the end of a queue is the end of the training
  session.close();
}

}  // namespace

int main(int count, char** values) {
  try {
    const auto given = parse(count, values);
    const reference wanted(given.graph_dir + "/reference.json");
    auto graph = tf::graph::import_meta_graph(given.graph_dir + "/model.ckpt-0.meta");
    if (given.has_hooks) {
      train(given, wanted, graph, sw::nan_tensor_hook{wanted.fetches.front()},
            sw::logging_tensor_hook{{.every_n_iter = 10}, sw::tag("loss", wanted.fetches.front())},
            sw::profiler_hook{{.save_steps = 10, .output_dir = given.run_dir}});
    } else {
      train(given, wanted, graph);
    }
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "run_graph: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
