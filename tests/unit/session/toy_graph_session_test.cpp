// SPDX-License-Identifier: Apache-2.0
//
// Tests of sessions over a raw session that is not a model: a graph in another process, with fetches and feeds by name, variables that are
// pulled and pushed, and variables of strings. No header of `model/` is included.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/creation/scaffold.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/protocol/any_hook.hpp>
#include <stepwell/protocol/state_names.hpp>
#include <stepwell/session/monitored_session.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

/// The values of all variables, as they travel between the processes.
struct graph_state {
  double weight = 0;
  double bias = 0;
  std::vector<std::string> labels = {"", ""};
  std::string note = {};
  std::int64_t step = 0;

  friend bool operator==(const graph_state&, const graph_state&) = default;
};

/// The process in which the graph runs. A session reaches it by its functions only.
class graph_process {
public:
  struct reply {
    std::map<std::string, double> values;
    std::int64_t step_before;
    std::int64_t step_after;
  };

  void connect() { most_connections = std::max(most_connections, ++connections); }
  void disconnect() { --connections; }

  void initialize() {
    ++initializations;
    state_.emplace(graph_state{.weight = 1, .bias = 0.5, .note = "new"});
  }
  /// Runs the train operation. `rate:0` and `x:0` may be fed.
  reply run(const std::set<std::string>& fetches, const std::map<std::string, double>& feeds) {
    ++runs;
    last_fetches = fetches;
    last_feeds = feeds;
    auto& state = present();
    if (state.step == fails_after) {
      fails_after = -1;
      if (keeps_variables) {
        state.weight = nothing;  // the step failed midway
      } else {
        state_.reset();
      }
      throw sw::unavailable_error("the process of the graph has crashed");
    }
    const auto value_of = [&](const char* name, double otherwise) { return feeds.contains(name) ? feeds.at(name) : otherwise; };
    const auto loss = state.weight * value_of("x:0", 2) + state.bias;
    state.weight -= value_of("rate:0", 0.125) * loss;
    state.labels[static_cast<std::size_t>(state.step % 2)] = std::string(static_cast<std::size_t>(state.step + 1), 'x');
    ++state.step;
    state.note = "after step " + std::to_string(state.step);
    const std::map<std::string, double> all = {{"loss:0", loss}, {"weight:0", state.weight}, {"bias:0", state.bias}};
    reply answer{.values = {}, .step_before = state.step - 1, .step_after = state.step};
    for (const auto& name : fetches) { answer.values[name] = all.at(name); }
    return answer;
  }
  graph_state pull() {
    ++pulls;
    return present();
  }
  void push(const graph_state& values) {
    ++pushes;
    present() = values;
  }

  int connections = 0;
  int most_connections = 0;
  int initializations = 0;
  int runs = 0;
  int pulls = 0;
  int pushes = 0;
  std::int64_t fails_after = -1;
  bool keeps_variables = false;  // in a failure
  std::set<std::string> last_fetches;
  std::map<std::string, double> last_feeds;

private:
  graph_state& present() {
    if (!state_) { throw sw::failed_precondition_error("the variables are uninitialized"); }
    return *state_;
  }

  std::optional<graph_state> state_;
};

/// A handle to a tensor of the graph.
struct tensor_handle {
  std::string node;
  [[nodiscard]] std::string name() const { return node + ":0"; }
};

/// Returns the name of a tensor: "x" and "x:0" are one.
std::string tensor_name(std::string_view name) { return std::string(name).append(name.find(':') == name.npos ? ":0" : ""); }
std::string tensor_name(const tensor_handle& handle) { return handle.name(); }

/// A fetch, or the key of a feed, in the one form that `any_hook` uses.
struct tensor_key {
  std::string name;
  template<class Fetch>
    requires requires(const Fetch& fetch) { tensor_name(fetch); }
  explicit tensor_key(const Fetch& fetch) : name(tensor_name(fetch)) {}
};
std::string tensor_name(const tensor_key& key) { return key.name; }

/// A raw session over the graph of another process.
class toy_graph_session {
public:
  using result_type = double;
  using fetch_key = tensor_key;
  static constexpr bool reads_feeds = true;

  struct outcome_type {
    double result;
    std::int64_t step_before;
    std::int64_t step_after;
    std::map<std::string, double> values;
  };

  explicit toy_graph_session(graph_process& process, bool counts_runs = false) : process_(&process), counts_runs_(counts_runs) {
    process_->connect();
  }

  /// Does one step: one run of the process, whatever the hooks fetch and feed.
  template<class Request>
  outcome_type run(const Request& request) {
    std::set<std::string> fetches = {"loss:0"};
    std::map<std::string, double> feeds;
    request.for_each_fetch([&](const auto& fetch) { fetches.insert(tensor_name(fetch)); });
    request.for_each_feed([&](const auto& key, double value) { feeds.emplace(tensor_name(key), value); });
    auto reply = process_->run(fetches, feeds);
    const auto before = std::exchange(mirror_.step, counts_runs_ ? mirror_.step + 1 : reply.step_after);
    return {reply.values.at("loss:0"), counts_runs_ ? before : reply.step_before, mirror_.step, std::move(reply.values)};
  }
  template<class Fetch>
    requires requires(const Fetch& fetch) { tensor_name(fetch); }
  const double& read(const outcome_type& outcome, const Fetch& fetch) const {
    return outcome.values.at(tensor_name(fetch));
  }

  std::int64_t global_step() const { return mirror_.step; }
  /// Refers to a copy of the values, which is current between `pull` and the end of its result only.
  sw::variable_list variables() {
    auto all = sw::variables({{"weight", mirror_.weight}, {"bias", mirror_.bias}, {"labels", mirror_.labels}, {"note", mirror_.note}});
    const sw::variable_ref step(std::string(sw::global_step_name), mirror_.step);
    all.push_back(counts_runs_ ? step.optional() : step);
    return all;
  }
  auto pull() {
    const auto step = mirror_.step;
    mirror_ = process_->pull();
    if (counts_runs_) { mirror_.step = step; }
    return std::shared_ptr<void>(nullptr, [this](std::nullptr_t) { forget(); });
  }
  void push() {
    auto values = mirror_;
    process_->push(values);
    forget();
  }

  void init_variables() { process_->initialize(); }
  void close() { process_->disconnect(); }

private:
  /// Spoils the copy: a value that is read without a pull is wrong.
  void forget() { mirror_ = {.weight = nothing, .bias = nothing, .labels = {"stale", "stale"}, .note = "stale", .step = mirror_.step}; }

  graph_process* process_;
  bool counts_runs_;
  graph_state mirror_ = {.weight = nothing, .bias = nothing};
};
static_assert(sw::raw_session<toy_graph_session> && sw::detail::has_pull<toy_graph_session>);

/// Connects at the start and at each recovery, and initialises the graph if there is nothing to restore.
struct graph_connector {
  graph_process* process;
  sw::scaffold_options<toy_graph_session>::init_with init_fn = nullptr;
  bool counts_runs = false;

  toy_graph_session create_session(sw::session_creation& creation) const {
    toy_graph_session raw(*process, counts_runs);
    sw::scaffold<toy_graph_session> with({.init_fn = init_fn});
    with.finalize();
    process->initialize();  // a new process has variables before they are restored
    sw::session_manager<toy_graph_session>().prepare_session(raw, creation, {}, {with.init_op(), with.init_fn()});
    return raw;
  }
};

/// The setup and the hook of a session that saves to `directory`.
struct saving {
  explicit saving(const std::string& directory, std::int64_t every) : hook({.checkpoint_dir = directory, .save_steps = every}) {}

  sw::session_setup setup() const { return {.find_checkpoint = hook.checkpoint_finder(), .restores_what_it_saves = true}; }
  sw::checkpoint_saver_hook hook;
};

graph_state trained(std::int64_t steps) {
  graph_process process;
  process.initialize();
  for (std::int64_t i = 0; i < steps; ++i) { process.run({}, {}); }
  return process.pull();
}

/// Fetches names that are known at run time only.
struct listing_hook {
  std::vector<std::string> names;
  std::vector<double>* seen;

  auto before_run(auto& /*context*/) const { return sw::fetch_list(names); }
  void after_run(auto& /*context*/, const auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i) { seen->push_back(values[i]); }
  }
};

}  // namespace

TEST_CASE("a run by name is one run of the process, with the fetches and feeds of caller and hooks", "[session][graph]") {
  test::log_capture log;
  graph_process process;
  std::vector<double> listed;
  std::vector<double> erased;
  sw::monitored_session session(
      graph_connector{&process}, sw::nan_tensor_hook{"loss:0"},
      sw::logging_tensor_hook{{.every_n_iter = 1}, "loss", sw::tag("w", "weight:0")}, listing_hook{{"bias", "loss:0"}, &listed},
      sw::any_hook<toy_graph_session>(listing_hook{{"bias:0"}, &erased}), sw::feed_fn_hook([] { return sw::feed("rate:0", 0.25); }));
  const auto [weight, loss] = session.run(sw::fetch("weight", sw::tag("loss", tensor_handle{"loss"})), sw::feed(std::string("x:0"), 4.0));
  CHECK(loss == 4.5);
  CHECK(weight == 1 - 0.25 * 4.5);
  CHECK(process.runs == 1);
  CHECK(process.last_fetches == std::set<std::string>{"bias:0", "loss:0", "weight:0"});
  CHECK(process.last_feeds == std::map<std::string, double>{{"rate:0", 0.25}, {"x:0", 4.0}});
  CHECK(listed == std::vector{0.5, 4.5});
  CHECK(erased == std::vector{0.5});
  CHECK(log.contains(sw::log_level::info, "w = -0.125"));
  CHECK(session.global_step() == 1);

  CHECK(session.run(sw::fetch_list(std::vector<std::string>{"bias:0", "weight:0"})).size() == 2);
  CHECK(process.pulls == 1);  // the initial state; runs pull nothing
}

TEST_CASE("two feeds of one name conflict, whatever the types of their keys, and nothing runs", "[session][graph]") {
  graph_process process;
  sw::monitored_session session(graph_connector{&process}, sw::feed_fn_hook([] { return sw::feed("x:0", 1.0); }));
  CHECK_THROWS_WITH(session.run(sw::feed(std::string("x:0"), 2.0)),
                    ContainsSubstring("Same tensor is fed by a SessionRunHook and user. Conflict(s): [x:0]"));
  CHECK_THROWS_AS(session.run(sw::feed(tensor_handle{"x"}, 2.0)), sw::failed_precondition_error);
  CHECK(process.runs == 0);
  session.run(sw::feed("rate:0", 0.5));
  CHECK(process.last_feeds.size() == 2);
}

TEST_CASE("a graph trains, is saved by a pull each, and is resumed by a push", "[session][graph]") {
  const test::temporary_directory directory;
  {
    graph_process process;
    saving saves(directory.path(), 2);
    auto setup = saves.setup();
    sw::monitored_session session(std::move(setup), graph_connector{&process}, std::move(saves.hook),
                                  sw::stop_at_step_hook{{.last_step = 5}});
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    CHECK(process.pulls == 1 + 3);  // initial state; steps 0, 2 and 4
    session.close();
    CHECK(process.pulls == 1 + 4);
    CHECK(process.pushes == 0);
    CHECK(process.connections == 0);
    CHECK(process.pull() == trained(5));
  }
  const sw::checkpoint_reader saved(directory / "model.ckpt-5");
  CHECK(saved.read("note").strings().front() == "after step 5");
  CHECK(saved.read("labels").strings()[0] == "xxxxx");

  graph_process process;
  saving saves(directory.path(), 100);
  auto setup = saves.setup();
  sw::monitored_session session(std::move(setup), graph_connector{&process}, std::move(saves.hook),
                                sw::stop_at_step_hook{{.last_step = 9}});
  CHECK(session.global_step() == 5);
  CHECK(process.pushes == 1);
  CHECK(process.pulls == 0);
  CHECK(process.pull() == trained(5));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  CHECK(process.pull() == trained(9));
}

TEST_CASE("a graph recovers to its checkpoint, or to the state after its initialisation", "[session][graph]") {
  const test::temporary_directory directory;
  graph_process process;
  process.fails_after = 3;
  SECTION("from a checkpoint") {
    saving saves(directory.path(), 2);
    auto setup = saves.setup();
    sw::monitored_session session(std::move(setup), graph_connector{&process}, std::move(saves.hook),
                                  sw::stop_at_step_hook{{.last_step = 6}});
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
    CHECK(process.runs == 6 + 1 + 1);  // the failed run, and the step after the checkpoint
  }
  SECTION("without one") {
    sw::monitored_session session(graph_connector{&process}, sw::stop_at_step_hook{{.last_step = 6}});
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    CHECK(session.metrics().recoveries == 1);
    session.close();
    CHECK(process.runs == 6 + 3 + 1);
    CHECK(process.pulls == 1);
  }
  CHECK(process.pushes == 1);
  CHECK(process.most_connections == 1);  // the old session is closed before its successor connects
  CHECK(process.pull() == trained(6));
}

TEST_CASE("a raw session that is given is restored in place", "[session][graph]") {
  graph_process process;
  process.initialize();
  sw::monitored_session session(toy_graph_session(process), sw::stop_at_step_hook{{.last_step = 3}});
  process.fails_after = 1;
  SECTION("if its variables are there") {
    process.keeps_variables = true;
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
    CHECK(process.pushes == 1);
    CHECK(process.pull() == trained(3));
  }
  SECTION("but not if nobody creates them") {
    session.run();
    CHECK_THROWS_AS(session.run(), sw::failed_precondition_error);
  }
}

TEST_CASE("a snapshot of a graph holds pulled values, strings too", "[session][graph]") {
  graph_process process;
  sw::monitored_session session(graph_connector{&process});
  session.run();
  const auto first = session.snapshot();
  session.run();
  const auto second = session.snapshot();
  CHECK(first.find("note")->strings == std::vector<std::string>{"after step 1"});
  CHECK(second.find("labels")->strings == std::vector<std::string>{"x", "xx"});
  double weight = 0;
  std::string note = {};
  sw::restore(sw::variables({{"weight", weight}, {"note", note}}), second);
  CHECK(weight == trained(2).weight);
  CHECK(note == "after step 2");
}

TEST_CASE("a graph without a global step starts at 0 from a checkpoint without one", "[session][graph]") {
  const test::temporary_directory directory;
  auto start = trained(4);
  {
    sw::detail::checkpoint_writer writer(directory / "model.ckpt-0");
    for (const auto& one : sw::variables({{"weight", start.weight}, {"bias", start.bias}})) { writer.add(one.name(), one.view()); }
    writer.add_strings("labels", {2}, start.labels);
    writer.add_strings("note", {}, {&start.note, 1});
    writer.commit();
  }
  const sw::session_setup setup{.find_checkpoint = [&] { return std::optional(sw::checkpoint_reader(directory / "model.ckpt-0")); }};
  graph_process process;
  sw::monitored_session session(setup, graph_connector{.process = &process, .counts_runs = true});
  CHECK(session.global_step() == 0);
  session.run();
  CHECK(session.global_step() == 1);
  CHECK(process.pull().weight == trained(5).weight);
  graph_process other;
  CHECK_THROWS_AS(sw::monitored_session(setup, graph_connector{.process = &other}), sw::not_found_error);  // its graph has a step
}

TEST_CASE("a warm start pushes what it restored and keeps the rest", "[session][graph]") {
  const test::temporary_directory directory;
  double pretrained = 42;
  {
    sw::detail::checkpoint_writer writer(directory / "other");
    writer.add("w", sw::view_of(pretrained));
    writer.commit();
  }
  graph_process process;
  sw::monitored_session session(graph_connector{&process, sw::init_from_checkpoint(directory / "other", {{"w", "weight"}})});
  const auto state = process.pull();
  CHECK(state.weight == 42);
  CHECK(state.bias == 0.5);
  CHECK(state.note == "new");
}

TEST_CASE("early stopping pushes the best state into the graph at the close", "[session][graph]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  graph_process process;
  saving saves(directory.path(), 100);
  auto setup = saves.setup();
  const auto best = directory / "best";
  constexpr auto greatest = sw::metric_mode::maximize;  // the loss falls in each step, so the first one is best
  sw::monitored_session session(
      std::move(setup), graph_connector{&process}, std::move(saves.hook),
      sw::best_checkpoint_hook{{.mode = greatest, .directory = best}, "loss:0"},
      sw::early_stopping_hook{{.patience = 2, .mode = greatest, .restore_best = true, .best_directory = best}, "loss:0"});
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK(session.global_step() == 3);
  CHECK(process.pull().weight == trained(3).weight);
  session.close();
  CHECK(process.pull().weight == trained(1).weight);
}

TEST_CASE("final ops of a graph get the raw session", "[session][graph]") {
  const auto last_step = [](const toy_graph_session& raw) { return raw.global_step(); };
  sw::final_ops_hook final_ops{last_step};
  graph_process process;
  sw::monitored_session session(graph_connector{&process}, std::ref(final_ops));
  session.run();
  session.run();
  session.close();
  CHECK(std::get<0>(*final_ops.final_ops_values()) == 2);
}
