// SPDX-License-Identifier: Apache-2.0
//
// Makes every function that a session calls fail once, in each of four ways, in sessions with and without recovery, in
// single runs and in loops. One table, here and in docs/how_to/when-things-fail.md, lists the expected result.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/recovery_rig.hpp"

#include <stepwell/threads/queue_runner.hpp>

#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// One line of the table, in the words of the page.
struct row {
  std::string what, out_of, passing, unrecovered, end_of_data, other;
  friend bool operator==(const row&, const row&) = default;
};
const std::string ctor = "the constructor";
const std::string run = "the run";
const std::string close_ = "`close`";
const std::string again = "tried again";
const std::string thrown = "thrown";
const std::string end_of_loop = "the loop ends";
const std::string logged = "logged";

const std::vector<row> matrix = {
    {"a hook's `begin`", ctor, thrown, thrown, thrown, thrown},
    {"looking for a checkpoint", ctor, again, thrown, thrown, thrown},
    {"a session creator", ctor, again, thrown, thrown, thrown},
    {"restoring", ctor, again, thrown, thrown, thrown},
    {"`init_op`", ctor, again, thrown, thrown, thrown},
    {"`init_fn`", ctor, again, thrown, thrown, thrown},
    {"`local_init_op`", ctor, again, thrown, thrown, thrown},
    {"`ready_op`", ctor, again, thrown, thrown, thrown},
    {"starting a queue runner", ctor, again, thrown, thrown, thrown},
    {"a hook's `after_create_session`", ctor, again, thrown, thrown, thrown},
    {"a hook's `before_run`", run, again, thrown, thrown, thrown},
    {"the model's `step`", run, again, thrown, end_of_loop, thrown},
    {"a hook's `after_run`", run, again, thrown, thrown, thrown},
    {"a checkpoint listener", run, again, thrown, thrown, thrown},
    {"a source's `peek`", run, again, thrown, end_of_loop, thrown},
    {"a source's `advance`", run, again, thrown, thrown, thrown},
    {"a source's `seek` in a recovery", run, again, thrown, thrown, thrown},
    {"a thread of the session", close_, again, thrown, thrown, thrown},
    {"a hook's `on_error`", run, logged, logged, logged, logged},
    {"a hook's `end`", close_, thrown, thrown, thrown, thrown},
    {"closing the raw session", close_, logged, logged, logged, logged},
};

/// One cell of the table: the function, the failure and the circumstances.
struct cell {
  row what;
  std::exception_ptr failure;
  std::string expected;
  bool recovers;
  bool is_loop;
  bool in_recovery;  // the creation fails in a recovery instead of at the start
};

/// A trap that throws once at its place after it has been armed.
struct trap {
  std::string place;
  std::exception_ptr failure;
  bool is_armed = false;
  int passed = 0;

  void pass(const std::string& here) {
    if (!is_armed || here != place || passed++ > 0) { return; }
    std::rethrow_exception(failure);
  }
};

struct matrix_hook {
  static constexpr auto state_name = "matrix";
  trap* armed;
  sw::coordinator* threads = nullptr;
  std::int64_t state = 0;

  void begin() { armed->pass("a hook's `begin`"); }
  void after_create_session(auto&, sw::coordinator& given) {
    threads = &given;
    armed->pass("a hook's `after_create_session`");
  }
  void before_run(auto&) { armed->pass("a hook's `before_run`"); }
  void after_run(auto&, const auto&) {
    armed->pass("a hook's `after_run`");
    if (!armed->is_armed || armed->place != "a thread of the session" || armed->passed++ > 0) { return; }
    threads->request_stop(armed->failure);
  }
  void on_error(auto&, const std::exception_ptr&) { armed->pass("a hook's `on_error`"); }
  void end(auto&) { armed->pass("a hook's `end`"); }
  sw::variable_list variables() {
    armed->pass("restoring");
    return sw::variables({{"state", state}});
  }
};

struct matrix_listener final : sw::checkpoint_saver_listener {
  trap* armed;
  explicit matrix_listener(trap* given) : armed(given) {}
  void before_save(std::int64_t) override { armed->pass("a checkpoint listener"); }
};

struct matrix_source : counting_source {
  trap* armed;
  explicit matrix_source(trap* given) : armed(given) {}
  const std::int64_t* peek() { return armed->pass("a source's `peek`"), counting_source::peek(); }
  void advance() { armed->pass("a source's `advance`"), counting_source::advance(); }
  void seek(std::uint64_t position) { armed->pass("a source's `seek` in a recovery"), counting_source::seek(position); }
};

struct matrix_queue {
  trap* armed;
  bool is_closed = false;
  std::string name() const { return "matrix"; }
  bool close(bool) { return !std::exchange(is_closed, true); }
  void reopen() {
    armed->pass("starting a queue runner");
    is_closed = false;
  }
};

struct matrix_raw : sw::model_session<adding_model> {
  trap* armed;
  matrix_raw(adding_model& model, trap* given) : sw::model_session<adding_model>(model), armed(given) {}
  void close() { armed->pass("closing the raw session"); }
};

struct matrix_creator {
  adding_model* model;
  trap* armed;

  matrix_raw create_session(sw::session_creation& creation) const {
    const auto op = [this](const std::string& name) { return [here = armed, name](auto&) { here->pass(name); }; };
    armed->pass("a session creator");
    matrix_raw raw(*model, armed);
    const sw::session_manager<matrix_raw> manager({.local_init_op = op("`local_init_op`"), .ready_op = [here = armed](const adding_model&) {
                                                     here->pass("`ready_op`");
                                                     return std::vector<std::string>{};
                                                   }});
    manager.prepare_session(raw, creation, {}, {.init_op = op("`init_op`"), .init_fn = op("`init_fn`")});
    return raw;
  }
};

constexpr std::int64_t saved_step = 3;
constexpr std::int64_t steps_to_do = 4;

/// The result of one session.
struct ending {
  std::string out_of;  // the call that threw; empty if none
  std::exception_ptr failure;
  bool is_done = false;
  sw::stop_reason why;
  std::int64_t recoveries = 0;
};

/// One session, from its construction to its close.
class experiment {
public:
  explicit experiment(const cell& given, const std::string& found_in) : given_(given), found_in_(found_in) {
    trap_.place = given.what.what;
    trap_.failure = given.failure;
    trap_.is_armed = given.what.out_of == ctor && !given.in_recovery;
    // A first failure calls on_error, or starts a recovery that creates a session or moves a source.
    const bool fails_first = given.in_recovery || trap_.place == "a hook's `on_error`" || trap_.place == "a source's `seek` in a recovery";
    model_.before = [this, times = fails_first ? 1 : 0, number = 0](std::int64_t) mutable {
      if (++number == 2) { trap_.is_armed = true; }
      trap_.pass("the model's `step`");
      if (number == 2 && times-- > 0) { throw sw::aborted_error(error_collector); }
    };
  }

  static constexpr auto error_collector = "what the recovery is for";

private:
  auto make() {
    sw::session_setup setup = at_once();
    if (!given_.recovers) { setup.options.retry.max_attempts = 0; }
    setup.find_checkpoint = [this] {
      trap_.pass("looking for a checkpoint");
      return given_.what.what.starts_with("`init") ? std::nullopt : sw::latest_whole_checkpoint(found_in_);
    };
    if (given_.what.what == "starting a queue runner") { setup.options.queue_runners = {runner_}; }
    return sw::monitored_session(std::move(setup), matrix_creator{&model_, &trap_}, matrix_hook{&trap_}, make_saver());
  }

  sw::checkpoint_saver_hook make_saver() {
    if (given_.what.what != "a checkpoint listener") { return sw::checkpoint_saver_hook::off(); }
    saved_in_.emplace();
    return sw::checkpoint_saver_hook({.checkpoint_dir = saved_in_->path(),
                                      .save_steps = 1,
                                      .saver = {.sync = false},
                                      .listeners = {std::make_shared<matrix_listener>(&trap_)}});
  }

  void train(auto& session) {
    const auto last = session.global_step() + steps_to_do;
    try {
      if (given_.is_loop) {
        loop_to(session, last);
      } else {
        run_to(session, last);
      }
    } catch (...) { end(run); }
    ending_.is_done = session.global_step() == last;
    ending_.why = session.stop_reason();
  }
  void loop_to(auto& session, std::int64_t last) {
    matrix_source source(&trap_);
    for (const auto& step : session.steps(source)) {
      if (step.global_step == last) { break; }
    }
  }
  static void run_to(auto& session, std::int64_t last) {
    try {
      while (session.global_step() < last && !session.should_stop()) { session.run(session.global_step() + 1); }
    } catch (const sw::out_of_range_error&) {
      if (session.came_from_hook(std::current_exception())) { throw; }
    }
  }

  void finish(auto& session) {
    trap_.is_armed = true;
    ending_.recoveries = session.metrics().recoveries;
    try {
      session.close();
    } catch (...) { end(close_); }
    CHECK(session.should_stop());
    CHECK_NOTHROW(session.close());
  }

  void end(const std::string& call) {
    // A failure is thrown once. Without recovery, a thread's failure also ends its loop before `close` throws it.
    // (contract SING-4)
    CHECK((ending_.out_of.empty() || (trap_.place == "a thread of the session" && ending_.failure == std::current_exception())));
    ending_.out_of = call;
    ending_.failure = std::current_exception();
  }

public:
  ending conduct() {
    try {
      auto session = make();
      train(session);
      finish(session);
    } catch (...) { end(ctor); }
    return ending_;
  }

private:
  cell given_;
  std::string found_in_;
  trap trap_;
  adding_model model_;
  matrix_queue queue_{&trap_};
  std::shared_ptr<sw::queue_runner> runner_ = std::make_shared<sw::queue_runner>(
      queue_, std::vector{sw::enqueue_op{"wait", [](const std::stop_token& stop) {
                                           std::promise<void> asked;
                                           const std::stop_callback tell(stop, [&] { asked.set_value(); });
                                           asked.get_future().wait();
                                         }}});
  std::optional<temporary_directory> saved_in_;
  ending ending_;
};

/// Returns a directory that contains one checkpoint.
std::string directory_with_checkpoint(const temporary_directory& directory) {
  adding_model model;
  matrix_hook hook{nullptr};
  std::int64_t step = saved_step;
  auto all = model.variables();
  all.emplace_back("global_step", step);
  all.emplace_back("stepwell/hook/matrix/state", hook.state);
  sw::saver saver(directory.path(), {.sync = false});
  sw::snapshot_pool pool(sw::snapshot_size(all));
  saver.save_and_wait(sw::snapshot::capture(pool.acquire(), all, step));
  return directory.path();
}

void check(const cell& given, const std::string& found_in) {
  INFO(given.what.what << (given.recovers ? ", recovering" : ", not recovering") << (given.is_loop ? ", in a loop" : ", in runs")
                       << (given.in_recovery ? ", made anew" : "") << ": " << given.expected);
  log_capture log;
  const auto seen = experiment(given, found_in).conduct();
  const bool needs_first = given.in_recovery || given.what.what.ends_with("in a recovery");
  CHECK((seen.failure == nullptr || seen.failure == given.failure || given.what.what == "a hook's `on_error`"));
  if (given.expected == again) {
    CHECK(seen.out_of.empty());
    CHECK(seen.is_done);
    CHECK(seen.recoveries == (needs_first ? 2 : 1));
  } else if (given.expected == thrown) {
    CHECK(seen.out_of == (given.in_recovery ? run : given.what.out_of));
    CHECK(seen.failure == given.failure);
    if (seen.out_of == run) { CHECK(seen.why.cause == sw::stop_cause::error); }
  } else if (given.expected == end_of_loop) {
    CHECK(seen.out_of.empty());
    CHECK_FALSE(seen.is_done);
    CHECK(seen.why.cause == sw::stop_cause::end_of_data);
  } else {
    CHECK(log.contains(sw::log_level::error, "the fault"));
    CHECK(seen.failure != given.failure);
    CHECK(seen.is_done == (given.recovers || given.what.out_of == close_));
  }
  // The failure that started a recovery is logged, independent of the result of the recovery.
  if (needs_first) { CHECK(log.contains(sw::log_level::warning, experiment::error_collector)); }
}

/// Returns the lines of the table on the page.
std::vector<row> table_of(const std::string& page) {
  std::vector<row> found;
  std::stringstream text(page);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("| ") || line.starts_with("| what fails")) { continue; }
    std::vector<std::string> cells;
    for (std::size_t from = 2, to = 0; (to = line.find(" |", from)) != std::string::npos; from = to + 3) {
      cells.push_back(line.substr(from, to - from));
    }
    if (cells.size() == 6) { found.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]}); }
  }
  return found;
}

}  // namespace

TEST_CASE("REC-3 CLOSE-2 CLOSE-5 D-18 each failure in each place has the effect that the table lists", "[fault][matrix]") {
  const temporary_directory directory;
  const auto found_in = directory_with_checkpoint(directory);
  const auto what = GENERATE(from_range(matrix));
  const bool makes_sessions = what.out_of == ctor && what.what != "a hook's `begin`";
  const bool is_of_source = what.what.starts_with("a source's");
  const bool only_anew = what.what == "starting a queue runner";
  struct kind {
    std::exception_ptr failure;
    std::string recovered, unrecovered;
  };
  for (const auto& [failure, recovered, unrecovered] :
       std::vector<kind>{{std::make_exception_ptr(sw::aborted_error("the fault")), what.passing, what.unrecovered},
                         {std::make_exception_ptr(sw::unavailable_error("the fault")), what.passing, what.unrecovered},
                         {std::make_exception_ptr(sw::out_of_range_error("the fault")), what.end_of_data, what.end_of_data},
                         {std::make_exception_ptr(sw::unknown_error("the fault")), what.other, what.other}}) {
    for (const bool is_loop : {false, true}) {
      if (is_of_source && !is_loop) { continue; }  // single runs have no source
      for (const bool recovers : {true, false}) {
        if (!recovers && (only_anew || what.what.ends_with("in a recovery"))) { continue; }
        if (!only_anew) { check({what, failure, recovers ? recovered : unrecovered, recovers, is_loop, false}, found_in); }
      }
      if (makes_sessions) { check({what, failure, recovered, true, is_loop, true}, found_in); }
    }
  }
}

TEST_CASE("the page about failures shows the table that is tested", "[fault][matrix]") {
  const auto on_page = table_of(file_text(STEPWELL_DOCS "/how_to/when-things-fail.md"));
  REQUIRE(on_page.size() == matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    CAPTURE(matrix[i].what);
    CHECK(on_page[i] == matrix[i]);
  }
}
