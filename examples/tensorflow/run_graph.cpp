// SPDX-License-Identifier: Apache-2.0
//
// Trains a graph of TensorFlow from C++ and prints the fetched values of each step:
//
//     run_graph DIR --steps N --run-dir D [--hooks all|none]
//
// DIR holds model.ckpt-0 with its .meta, and reference.json, which names fetches, feeds and the train operation. The feeds are computed
// from the number of the step. The run continues from the newest checkpoint in D, or else starts from DIR/model.ckpt-0.
//
// Each line is a step, a tab, and the values separated by tabs. The elements of a fetch are separated by commas. Floats of all sizes are
// hexadecimal. A complex number is written as in Python, but hexadecimal: 0x1.8000000000000p+0-0x1.0000000000000p-2j is 1.5 - 0.25j.
// Booleans are 0 or 1. Strings are written as they are.
//
// With --hooks all, the profiler hook runs. The NaN hook and the logging hook watch the first fetch of type float32 or float64. They are
// left out if there is no such fetch.
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
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
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

[[noreturn]] void throw_usage(const std::string& mistake) {
  throw std::invalid_argument(mistake + "\nusage: run_graph DIR --steps N --run-dir D [--hooks all|none] [--checkpoint-steps N]");
}

/// Returns the number that was given for `option`. @errors `std::invalid_argument` if `text` is not a number of 0 or more.
std::int64_t parse_count(const std::string& option, const std::string& text) {
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) {
    throw_usage(option + " needs a whole number from 0 to " + std::to_string(std::numeric_limits<std::int64_t>::max()) + ", but \"" + text +
                "\" was given");
  }
  return number;
}

bool parse_hooks(const std::string& text) {
  if (text != "all" && text != "none") { throw_usage("--hooks needs \"all\" or \"none\", but \"" + text + "\" was given"); }
  return text == "all";
}

arguments parse(int count, char** values) {
  arguments given;
  for (int i = 1; i < count; ++i) {
    const std::string one = values[i];
    const auto next = [&]() -> std::string {
      if (i + 1 >= count) { throw_usage(one + " needs a value"); }
      return values[++i];
    };
    if (one == "--steps") {
      given.steps = parse_count(one, next());
    } else if (one == "--run-dir") {
      given.run_dir = next();
    } else if (one == "--checkpoint-steps") {
      given.checkpoint_steps = parse_count(one, next());
    } else if (one == "--hooks") {
      given.has_hooks = parse_hooks(next());
    } else if (given.graph_dir.empty() && !one.starts_with("--")) {
      given.graph_dir = one;
    } else {
      throw_usage("unknown argument \"" + one + "\"");
    }
  }
  if (given.graph_dir.empty()) { throw_usage("DIR is missing"); }
  if (given.run_dir.empty()) { throw_usage("--run-dir is missing"); }
  return given;
}

/// A feed whose elements are computed from the number of the step.
struct computed_feed {
  std::string name;
  std::string kind;  // "float", "int64" or "bytes"
  sw::tensor_shape shape;
  std::int64_t seed;

  /// Element k is r = (k * 31 + step * 17 + seed * 7) mod 97: as a float r / 97, as an integer r mod 10, as a string "token<r>".
  tf::tensor at(std::int64_t step) const {
    const auto number = [&](std::size_t k) { return (static_cast<std::int64_t>(k) * 31 + step * 17 + seed * 7) % 97; };
    if (kind == "bytes") {
      std::vector<std::string> tokens(tf::tensor(sw::dtype::string, shape).size());  // the tensor checks the shape
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

/// Reads feed number `number`. @errors `std::invalid_argument` if its kind is unknown. Errors of the JSON library.
computed_feed read_feed(const nlohmann::json& content, std::size_t number) {
  computed_feed feed{.name = content.at("name").get<std::string>(),
                     .kind = content.at("kind").get<std::string>(),
                     .shape = content.at("shape").get<sw::tensor_shape>(),
                     .seed = static_cast<std::int64_t>(number)};
  if (feed.kind != "float" && feed.kind != "int64" && feed.kind != "bytes") {
    throw std::invalid_argument("feed \"" + feed.name + "\" has the unknown kind \"" + feed.kind +
                                "\"; the known kinds are \"float\", \"int64\" and \"bytes\"");
  }
  return feed;
}

/// The content of reference.json.
struct reference {
  std::vector<std::string> fetches;
  std::string train;
  std::vector<computed_feed> feeds;

  explicit reference(const std::string& file) {
    std::ifstream in(file);
    if (!in) { throw std::runtime_error("cannot read " + file); }
    try {
      read(nlohmann::json::parse(in));
    } catch (const std::exception& failure) { throw std::runtime_error(file + ": " + failure.what()); }
  }

  std::vector<tf::named_feed> feeds_at(std::int64_t step) const {
    std::vector<tf::named_feed> all;
    for (const auto& one : feeds) {
      try {
        all.emplace_back(one.name, one.at(step));
      } catch (const std::exception& failure) { throw std::runtime_error("feed \"" + one.name + "\": " + failure.what()); }
    }
    return all;
  }

private:
  void read(const nlohmann::json& content) {
    fetches = content.at("fetches").get<std::vector<std::string>>();
    train = content.at("train").get<std::string>();
    for (const auto& one : content.at("feeds")) { feeds.push_back(read_feed(one, feeds.size())); }
  }
};

std::string text_of(std::integral auto number) { return std::to_string(number); }
std::string text_of(double number) {
  char text[32];  // the longest text is "-0x1.0000000000000p-1022"
  std::snprintf(text, sizeof text, number == 0 ? "%a" : "%.13a", number);
  return text;
}
template<class Float>
std::string text_of(std::complex<Float> number) {
  return text_of(number.real()) + (std::signbit(number.imag()) ? "" : "+") + text_of(number.imag()) + "j";
}

/// Returns the value of an IEEE half: a sign bit, 5 bits of the exponent, and 10 bits of the fraction.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 0) { value = std::ldexp(fraction, -24); }
  if (exponent == 31) { value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN(); }
  return (bits & 0x8000) == 0 ? value : -value;
}
/// Returns the value of a bfloat16: the upper half of a float.
double bfloat16_value(std::uint16_t bits) { return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)); }

/// Returns the texts of all elements, separated by commas. `text` returns the text of one element.
template<class Elements, class Text>
std::string joined(const Elements& elements, Text text) {
  std::string all;
  const char* separator = "";
  for (const auto& one : elements) { all.append(std::exchange(separator, ",")).append(text(one)); }
  return all;
}

template<class Number>
std::string numbers(const tf::tensor& value) {
  return joined(value.span<Number>(), [](Number one) { return text_of(one); });
}
/// Like `numbers`, for types of 16 bits that C++20 does not have.
template<double (*ValueOf)(std::uint16_t)>
std::string short_floats(const tf::tensor& value) {
  const std::span elements(reinterpret_cast<const std::uint16_t*>(value.bytes().data()), value.size());
  return joined(elements, [](std::uint16_t bits) { return text_of(ValueOf(bits)); });
}
std::string strings(const tf::tensor& value) { return joined(value.strings(), std::identity{}); }

using formatter = std::string (*)(const tf::tensor&);

/// Returns the function that writes the elements of a tensor of this type as text. Null if there is none.
formatter formatter_of(sw::dtype type) {
  switch (type) {
    case sw::dtype::boolean: return numbers<bool>;
    case sw::dtype::int8: return numbers<std::int8_t>;
    case sw::dtype::uint8: return numbers<std::uint8_t>;
    case sw::dtype::int16: return numbers<std::int16_t>;
    case sw::dtype::uint16: return numbers<std::uint16_t>;
    case sw::dtype::int32: return numbers<std::int32_t>;
    case sw::dtype::uint32: return numbers<std::uint32_t>;
    case sw::dtype::int64: return numbers<std::int64_t>;
    case sw::dtype::uint64: return numbers<std::uint64_t>;
    case sw::dtype::half: return short_floats<half_value>;
    case sw::dtype::bfloat16: return short_floats<bfloat16_value>;
    case sw::dtype::float32: return numbers<float>;
    case sw::dtype::float64: return numbers<double>;
    case sw::dtype::complex64: return numbers<std::complex<float>>;
    case sw::dtype::complex128: return numbers<std::complex<double>>;
    case sw::dtype::string: return strings;
    default: return nullptr;
  }
}

/// Throws if the graph does not have one of the fetches, or if its type cannot be printed. So a run does not fail at its first line.
void check_fetches(const tf::graph& graph, const std::vector<std::string>& fetches) {
  for (const auto& one : fetches) {
    const auto type = graph.dtype(graph.tensor(one));
    if (formatter_of(type) == nullptr) {
      throw std::runtime_error("fetch \"" + one + "\" has the type " + std::string(sw::to_string(type)) + ", which run_graph cannot print");
    }
  }
}

/// Returns the name of the first fetch whose elements are floats or doubles. The NaN hook checks no other types.
std::optional<std::string> first_float(const tf::graph& graph, const std::vector<std::string>& fetches) {
  const auto is_float = [&](const std::string& one) {
    const auto type = graph.dtype(graph.tensor(one));
    return type == sw::dtype::float32 || type == sw::dtype::float64;
  };
  const auto found = std::ranges::find_if(fetches, is_float);
  return found == fetches.end() ? std::nullopt : std::optional(*found);
}

void print_line(std::int64_t step, const std::vector<tf::tensor>& values) {
  auto line = std::to_string(step);
  for (const auto& value : values) { line.append("\t").append(formatter_of(value.dtype())(value)); }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
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
  auto session = sw::monitored_training_session(graph,
                                                {.master = start_servers(graph),
                                                 .checkpoint_dir = given.run_dir,
                                                 .saves = {.save_steps = given.checkpoint_steps},
                                                 .summaries = {.save_steps = 5},
                                                 .config = {.intra_op_parallelism_threads = 1, .inter_op_parallelism_threads = 1}},
                                                tf::graph_options{.operations = {.train_op = wanted.train}},
                                                sw::scaffold<tf::graph_session>({.init_fn = start_values}),
                                                sw::stop_at_step_hook{{.last_step = given.steps}}, std::move(hooks)...);
  try {
    while (!session.should_stop()) {
      const auto step = session.global_step();
      const auto values = session.run(sw::fetch_list(wanted.fetches), sw::target(wanted.train), wanted.feeds_at(step));
      print_line(session.global_step(), values);
    }
  } catch (const sw::out_of_range_error&) {}  // NOLINT(bugprone-empty-catch): the end of a queue is the end of the training
  session.close();
}

void train_with_hooks(const arguments& given, const reference& wanted, tf::graph& graph) {
  sw::profiler_hook profiler{{.save_steps = 10, .output_dir = given.run_dir}};
  if (const auto watched = first_float(graph, wanted.fetches)) {
    train(given, wanted, graph, sw::nan_tensor_hook{*watched}, sw::logging_tensor_hook{{.every_n_iter = 10}, sw::tag("loss", *watched)},
          std::move(profiler));
  } else {
    train(given, wanted, graph, std::move(profiler));
  }
}

}  // namespace

int main(int count, char** values) {
  try {
    const auto given = parse(count, values);
    const reference wanted(given.graph_dir + "/reference.json");
    auto graph = tf::graph::import_meta_graph(given.graph_dir + "/model.ckpt-0.meta");
    check_fetches(graph, wanted.fetches);
    if (given.has_hooks) {
      train_with_hooks(given, wanted, graph);
    } else {
      train(given, wanted, graph);
    }
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "run_graph: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
