// SPDX-License-Identifier: Apache-2.0
#include "support/accumulating_model.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/plain_raw_session.hpp"
#include "support/screen.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/detail/status_region.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::accumulating_model;
using sw::test::adding_model;
using sw::test::screen;

namespace {

sw::progress_state typical_state() {
  return {.session = "digits",
          .step = 1200,
          .last_step = 10'000,
          .epoch = sw::data::epoch_position{1, false},
          .last_epoch = 5,
          .values = {{"loss", 0.1234}, {"accuracy", 0.912}},
          .steps_per_second = 410,
          .batch_size = 128,
          .elapsed = 3s,
          .notes = {{"eval", "accuracy 0.95 at 1000"}, {"saved", "1000"}}};
}

std::string terminal_line(const sw::progress_state& state, int columns) {
  return sw::progress_line(state, {.is_terminal = true, .columns = columns});
}

/// Returns the plain lines of a session that does `runs` of 40 runs, one a second, and shows `watched` every ten seconds.
template<class... Watched>
std::string plain_lines_of(std::int64_t runs, Watched... watched) {
  std::string out;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model,
      sw::progress_hook{{.last_step = 40, .line_every = 10, .is_terminal = false, .output = [&](auto text) { out += text; }}, watched...});
  for (std::int64_t batch = 1; batch <= runs; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
  return out;
}

/// A model that counts its batches.
struct batch_model {
  using result = int;
  int batches = 0;
  int step(const std::vector<std::int64_t>& /*batch*/) { return ++batches; }
  sw::variable_list variables() { return sw::variables({{"batches", batches}}); }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) { all.push_back(line); }
  return all;
}

struct noting_hook {
  void after_run(auto& context, const auto&) { context.show("eval", "loss 0.5 at " + std::to_string(context.global_step())); }
};

}  // namespace

TEST_CASE("a plain progress line says epoch, step, share, values, rates, times and notes", "[hooks][progress]") {
  CHECK(sw::progress_line(typical_state(), {}) ==
        "[digits]  epoch 2/5  step 1200/10000   12%  loss 0.1234  accuracy 0.912  410 steps/s  52480 samples/s  0:03  ETA 0:22  "
        "eval accuracy 0.95 at 1000  saved 1000");
  CHECK(sw::progress_line({.step = 7}, {}) == "step 7  0:00");
}

TEST_CASE("a line on a terminal is never wider than the terminal, and keeps the step longest", "[hooks][progress]") {
  const auto state = typical_state();
  CHECK(terminal_line(state, 60) == "step  1200/10000   12%  loss 0.1234       0:03  ETA 0:22   ");
  CHECK(terminal_line(state, 20) == "step  1200/10000");
  for (int columns = 1; columns < 250; ++columns) {
    INFO(columns);
    CHECK(static_cast<int>(terminal_line(state, columns).size()) < std::max(columns, 2));
  }
  const auto wide = terminal_line(state, 220);
  CHECK(wide.starts_with("[==="));
  for (const std::string part : {"digits", "epoch 2/5", "52.5k samples/s", "0:03", "eval accuracy 0.95 at 1000", "saved 1000"}) {
    INFO(part);
    CHECK(wide.find(part) != std::string::npos);
  }
}

TEST_CASE("the fields of a line stay at their places while numbers change", "[hooks][progress]") {
  auto state = typical_state();
  state.notes.clear();
  for (const int columns : {40, 60, 80, 100, 140}) {
    const auto first = terminal_line(state, columns);
    for (const double value : {-12345.6, 0.5, 1e-9, 99.99, 1e30, 0.0}) {
      for (const double rate : {0.0, 0.01, 9.99, 99.9, 12'345.0, 3e7}) {
        auto other = state;
        other.step = value > 0 ? 9 : 9'999;
        other.values[0].value = value;
        other.steps_per_second = rate;
        other.elapsed = std::chrono::duration<double>(value > 0 ? 1 : 7000);
        const auto line = terminal_line(other, columns);
        INFO(line);
        for (const std::string field : {"epoch", "step", "loss", "accuracy", "steps/s", "samples/s", "ETA"}) {
          CHECK(line.find(field) == first.find(field));
        }
      }
    }
  }
}

TEST_CASE("a note is displayed or not independently of the digits of its number", "[hooks][progress]") {
  for (int columns = 40; columns < 160; ++columns) {
    const auto is_displayed = [columns](const std::string& number) {
      auto state = typical_state();
      state.notes = {{"saved", number}};
      return terminal_line(state, columns).find("saved " + number) != std::string::npos;
    };
    INFO(columns);
    CHECK(is_displayed("0") == is_displayed("10500000"));
  }
}

TEST_CASE("colours and Unicode are used only if wanted", "[hooks][progress]") {
  const auto state = typical_state();
  const auto plain = sw::progress_line(state, {.is_terminal = true, .columns = 140});
  CHECK(plain.find('\x1b') == std::string::npos);
  for (const char letter : plain) { CHECK(static_cast<unsigned char>(letter) < 0x80); }
  const auto rich = sw::progress_line(state, {.is_terminal = true, .columns = 140, .colours = true, .unicode = true});
  CHECK(rich.find("━") != std::string::npos);
  CHECK(rich.find("\x1b[36m") != std::string::npos);
  screen terminal(140);
  terminal.write(rich);
  CHECK_FALSE(terminal.has_wrapped());
}

TEST_CASE("without a terminal, plain lines come at intervals", "[hooks][progress]") {
  const auto out = plain_lines_of(40, &adding_model::result::loss);
  CHECK(out ==
        "step 10/40   25%  loss 55  1 steps/s  0:10  ETA 0:30\n"
        "step 20/40   50%  loss 210  1 steps/s  0:20  ETA 0:20\n"
        "step 30/40   75%  loss 465  1 steps/s  0:30  ETA 0:10\n"
        "step 40/40  100%  loss 820  1 steps/s  0:40\n"
        "finished at step 40: 40 steps in 0:40, loss 820\n");
}

TEST_CASE("without a terminal, a plain line comes every ten seconds unless line_every is given", "[hooks][progress]") {
  std::string out;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model,
                                sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }}});
  for (int i = 0; i < 100; ++i) {
    clock->advance(250ms);
    session.run(std::int64_t{1});
  }
  session.close();
  CHECK(out ==
        "step 40  4 steps/s  0:10\n"
        "step 80  4 steps/s  0:20\n"
        "step 100  4 steps/s  0:25\n"
        "finished at step 100: 100 steps in 0:25\n");
}

TEST_CASE("a session over epochs displays the epoch, the rate of samples, the last evaluation and the best one", "[hooks][progress]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  std::string out;
  const auto clock = std::make_shared<sw::manual_clock>();
  const std::vector<std::int64_t> numbers(12, 1);
  auto batches = sw::data::shuffled_batches(numbers, {.batch_size = 4, .epochs = 2});
  batch_model model;
  const auto tested = sw::evaluate_every(
      sw::epochs(1), [](const batch_model& now) { return 10 - now.batches; }, sw::measure("error", [](int error) { return error; }));
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1000}, .step_counter = {.every_n_steps = sw::none}, .clock = clock},
      tested, sw::best_checkpoint_hook{tested.value("error")},
      sw::progress_hook{{.last_step = 6,
                         .last_epoch = 2,
                         .batch_size = 4,
                         .line_every = 1,
                         .is_terminal = false,
                         .output = [&](auto text) { out += text; }},
                        tested.value("error")});
  clock->advance(500ms);
  for ([[maybe_unused]] const auto& step : session.steps(batches)) { clock->advance(500ms); }
  session.close();
  const auto lines = lines_of(out);
  INFO(out);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("epoch 1/2  step 2/6   33%  2 steps/s  8 samples/s  0:01  ETA 0:02"));
  // The line of an epoch has the result of the evaluation after it.
  CHECK(lines[1].starts_with("epoch 1/2  step 3/6   50%  error 7  2 steps/s  8 samples/s  0:01  ETA 0:02"));
  CHECK_THAT(lines[1], ContainsSubstring("  evaluation error = 7 at 3"));
  CHECK_THAT(lines[1], ContainsSubstring("  best error 7"));
  CHECK(lines[2].starts_with("epoch 2/2  step 5/6   83%  error 7  2 steps/s  8 samples/s  0:02  ETA 0:01"));
  // The final line has the epoch of the last step, and the result of the evaluation after it.
  CHECK(lines[3].starts_with("epoch 2/2  step 6/6  100%  error 4  1.71 steps/s  6.86 samples/s  0:03"));
  CHECK_THAT(lines[3], ContainsSubstring("  evaluation error = 4 at 6"));
  CHECK_THAT(lines[3], ContainsSubstring("  best error 4"));
  CHECK_THAT(lines[3], ContainsSubstring("  saved 6"));
  CHECK_THAT(lines[3], !ContainsSubstring("model.ckpt"));
  CHECK(lines[4].starts_with("finished at step 6 (the source has no more batches): 6 steps in 0:03, error 4, "));
  CHECK_THAT(lines[4], ContainsSubstring(", best error 4, "));
  CHECK_THAT(lines[4], ContainsSubstring(", checkpoint " + directory.path() + "/model.ckpt-6"));
}

TEST_CASE("each epoch leaves a line, on a terminal, too", "[hooks][progress]") {
  screen terminal(80);
  const auto clock = std::make_shared<sw::manual_clock>();
  const std::vector<std::int64_t> numbers(12, 1);
  auto batches = sw::data::shuffled_batches(numbers, {.batch_size = 4, .epochs = 2});
  const bool has_epoch_lines = GENERATE(true, false);
  batch_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model,
                                sw::progress_hook{{.last_epoch = 2,
                                                   .is_terminal = true,
                                                   .colours = false,
                                                   .columns = 80,
                                                   .epoch_lines = has_epoch_lines,
                                                   .output = [&](auto text) { terminal.write(text); }},
                                                  sw::tag("batches", &batch_model::batches)});
  clock->advance(1s);
  for ([[maybe_unused]] const auto& step : session.steps(batches)) { clock->advance(1s); }
  session.close();
  const auto lines = terminal.lines();
  REQUIRE(lines.size() == (has_epoch_lines ? 4 : 3));
  if (has_epoch_lines) { CHECK(lines[0] == "epoch 1/2  step 3  batches 3  1 steps/s  0:03"); }
  CHECK_THAT(lines[lines.size() - 3], ContainsSubstring("epoch 2/2  step      6  batches 6.0000"));
  CHECK(lines[lines.size() - 2].starts_with("finished at step 6"));
}

TEST_CASE("the elapsed time is rounded down, and the remaining time up", "[hooks][progress]") {
  CHECK(sw::progress_line({.step = 7, .elapsed = 30ms}, {}) == "step 7  0:00");
  const auto line = sw::progress_line({.step = 1, .last_step = 4, .steps_per_second = 2, .elapsed = 1999ms}, {});
  CHECK(line == "step 1/4   25%  2 steps/s  0:01  ETA 0:02");
}

TEST_CASE("the options of a progress hook may be left out", "[hooks][progress]") {
  const sw::progress_hook both{sw::tag("loss", &adding_model::result::loss), &adding_model::result::loss};
  const sw::progress_hook one{&adding_model::result::loss};
  const sw::progress_hook none{};
  const sw::progress_hook with_options{sw::progress_options{}, &adding_model::result::loss};
  CHECK(std::is_same_v<decltype(one), decltype(with_options)>);
  adding_model model;
  sw::monitored_session session(model, sw::progress_hook{&adding_model::result::loss});
  session.run(1);
  session.close();
}

TEST_CASE("the final line has the values of the last step, the last checkpoint, and no remaining time", "[hooks][progress]") {
  const sw::test::temporary_directory directory;
  std::string out;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1000}, .step_counter = {.every_n_steps = sw::none}, .clock = clock},
      sw::progress_hook{{.last_step = 3, .line_every = 100, .is_terminal = false, .output = [&](auto text) { out += text; }},
                        &adding_model::result::loss});
  for (std::int64_t batch = 1; batch <= 3; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
  CHECK(out ==
        "step 3/3  100%  loss 6  1 steps/s  0:03  saved 3\nfinished at step 3: 3 steps in 0:03, loss 6, "
        "saved 3, checkpoint " +
            directory.path() + "/model.ckpt-3\n");
  out.clear();
  auto second = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1000}, .step_counter = {.every_n_steps = sw::none}, .clock = clock},
      sw::progress_hook{
          {.last_step = 9, .line_every = 100, .is_terminal = false, .summary = false, .output = [&](auto text) { out += text; }}});
  clock->advance(1s);
  second.run(std::int64_t{1});
  second.close();
  CHECK(out == "step 4/9   44%  1 steps/s  0:01  saved 4\n");
}

TEST_CASE("the final line has the values that were displayed last, with their step, and members of the model as they are at the close",
          "[hooks][progress]") {
  const auto loss = sw::tag("loss", [](const adding_model::result& result) { return result.loss; });
  const auto out = plain_lines_of(12, loss, sw::tag("sum", &adding_model::sum));
  CHECK(out ==
        "step 10/40   25%  loss 55  sum 55  1 steps/s  0:10  ETA 0:30\n"
        "step 12/40   30%  loss 55  sum 78  1 steps/s  0:12  loss of step 10\n"
        "finished at step 12: 12 steps in 0:12, loss 55, sum 78, loss of step 10\n");
}

TEST_CASE("the final line has the numbers of the last step, also if no line was due before it", "[hooks][progress]") {
  CHECK(plain_lines_of(3, &adding_model::result::loss) ==
        "step 3/40    7%  loss 6  1 steps/s  0:03\nfinished at step 3: 3 steps in 0:03, loss 6\n");
  CHECK(plain_lines_of(12, sw::tag("sum", &adding_model::sum), sw::tag("error", &adding_model::result::loss))
            .ends_with("step 12/40   30%  sum 78  error 78  1 steps/s  0:12\nfinished at step 12: 12 steps in 0:12, sum 78, error 78\n"));
}

TEST_CASE("a value that is computed is displayed in the step that is known to be the last one", "[hooks][progress]") {
  std::string out;
  adding_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::stop_at_step(4),
                                sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }},
                                                  sw::tag("twice", [](const adding_model::result& result) { return 2 * result.loss; })});
  for (std::int64_t batch = 1; batch <= 4; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
  CHECK(out == "step 4  twice 20  1 steps/s  0:04\nfinished at step 4 (step 4 is done): 4 steps in 0:04, twice 20\n");
}

TEST_CASE("a model with several runs in a step has no line for each run of the step before the last one", "[hooks][progress]") {
  std::string out;
  accumulating_model model;
  sw::monitored_session session(
      sw::training_options{.clock = std::make_shared<sw::manual_clock>()}, model, sw::stop_at_step(2),
      sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }}, &accumulating_model::result::loss});
  session.run_all();
  session.close();
  CHECK(out == "step 2  loss 8  0:00\nfinished at step 2 (step 2 is done): 2 steps in 0:00, loss 8\n");
}

TEST_CASE("a session that reads an optional where a member is a number can display it", "[hooks][progress]") {
  struct device_session : sw::test::plain_raw_session {
    using plain_raw_session::read;
    std::optional<double> read(const outcome_type& /*done*/, double device_session::* member) const { return this->*member; }
    double loss = 0.5;
  };
  std::string out;
  sw::monitored_session session(
      sw::session_setup{.options = {.clock = std::make_shared<sw::manual_clock>()}}, device_session(),
      sw::progress_hook{{.line_every = 1, .is_terminal = false, .output = [&](auto text) { out += text; }}, &device_session::loss});
  session.run();
  session.close();
  CHECK_THAT(out, ContainsSubstring("loss 0.5"));
}

TEST_CASE("the final line comes at the close, also if the last step is known only to the session", "[hooks][progress]") {
  std::string out;
  adding_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model, sw::stop_at_step(2),
      sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }}, sw::tag("sum", &adding_model::sum)});
  for (int i = 0; i < 2; ++i) {
    clock->advance(1s);
    session.run(std::int64_t{1});
  }
  CHECK(out.empty());
  model.sum = 9;
  session.close();
  CHECK_THAT(out, ContainsSubstring("step 2  sum 9  1 steps/s  0:02\n"));
}

TEST_CASE("a line that was displayed in a step is newer than an earlier value of this step", "[hooks][progress]") {
  struct slow_model {
    struct result {
      double loss;
    };
    int runs = 0;
    std::int64_t steps = 0;
    result step() {
      steps = ++runs / 2;
      return {static_cast<double>(runs)};
    }
    std::int64_t& global_step() { return steps; }
    sw::variable_list variables() { return sw::variables({{"runs", runs}}); }
  };
  std::string out;
  slow_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model,
      sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }}, &slow_model::result::loss});
  for (int i = 0; i < 3; ++i) {
    clock->advance(i == 2 ? 10s : 1s);
    session.run();
  }
  session.close();
  CHECK_THAT(out, ContainsSubstring("finished at step 1: 1 steps in 0:12, loss 3\n"));
}

TEST_CASE("steps and time count from the beginning of a session, also after a recovery", "[hooks][progress]") {
  const sw::test::temporary_directory directory;
  const sw::test::log_capture log;
  std::string out;
  adding_model model;
  int failures = 0;
  model.before = [&](std::int64_t batch) {
    if (batch == 6 && failures++ == 0) { throw sw::unavailable_error("a test"); }
  };
  const auto clock = std::make_shared<sw::manual_clock>();
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory.path(),
       .saves = {.save_steps = 4},
       .step_counter = {.every_n_steps = sw::none},
       .retry = {.initial_backoff = 0},
       .clock = clock},
      sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }}, &adding_model::result::loss});
  for (std::int64_t batch = 1; batch <= 7; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
  CHECK(failures == 2);
  CHECK_THAT(out, ContainsSubstring("finished at step 6: 6 steps in 0:07, loss 23, "));  // step 5 is repeated with batch 6
}

TEST_CASE("on a terminal the line is drawn over itself, and text is printed above it", "[hooks][progress]") {
  screen terminal(60);
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(sw::training_options{.name = "a", .clock = clock}, model,
                                sw::progress_hook{{.last_step = 3,
                                                   .bar_every = 1,
                                                   .is_terminal = true,
                                                   .colours = true,
                                                   .unicode = false,
                                                   .columns = 60,
                                                   .output = [&](auto text) { terminal.write(text); }},
                                                  sw::tag("sum", &adding_model::result::loss)});
  using hook = sw::progress_hook<sw::tagged<decltype(&adding_model::result::loss)>>;
  clock->advance(1s);
  session.run(std::int64_t{1});
  CHECK(terminal.lines() == std::vector<std::string>{"a  step 1/3   33%  sum 1.0000     1.00 steps/s  ETA 0:02"});
  session.hook<hook>().print("my own output");
  clock->advance(1s);
  session.run(std::int64_t{1});
  const auto lines = terminal.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "my own output");
  CHECK(lines[1] == "a  step 2/3   66%  sum 2.0000     1.00 steps/s  ETA 0:01");
  session.close();
  terminal.write("$");
  CHECK(terminal.lines().size() == 4);
  CHECK(terminal.lines()[2] == "[a]  finished at step 2: 2 steps in 0:02, sum 2");
  CHECK(terminal.lines()[3] == "$");  // on a line of its own
  CHECK_FALSE(terminal.has_wrapped());
}

TEST_CASE("the line is ended before the message of an error", "[hooks][progress]") {
  screen terminal(80);
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  {
    sw::monitored_session session(
        sw::training_options{.clock = clock}, model,
        sw::progress_hook{{.bar_every = 1, .is_terminal = true, .columns = 80, .output = [&](auto text) { terminal.write(text); }}});
    clock->advance(1s);
    session.run(std::int64_t{1});
    try {
      sw::with(session, [](auto&) { throw std::runtime_error("boom"); });
    } catch (const std::runtime_error& failure) { terminal.write(failure.what()); }
  }
  CHECK(terminal.lines().back() == "boom");
}

TEST_CASE("the line shows the notes of hooks", "[hooks][progress]") {
  std::string out;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, noting_hook{},
                                sw::progress_hook{{.line_every = 1, .is_terminal = false, .output = [&](auto text) { out += text; }}});
  for (int i = 0; i < 2; ++i) {
    clock->advance(1s);
    session.run(std::int64_t{1});
  }
  session.close();
  CHECK(out.find("eval loss 0.5 at 1\n") != std::string::npos);
}

TEST_CASE("a session without a step shows no progress", "[hooks][progress]") {
  std::string out;
  adding_model model;
  sw::monitored_session session(model, sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }}});
  session.close();
  CHECK(out.empty());
}

TEST_CASE("several lines share one region, and each leaves its text above when it ends", "[hooks][progress]") {
  screen terminal(40);
  const auto region = std::make_shared<sw::detail::status_region>([&](auto text) { terminal.write(text); });
  sw::detail::status_line outer(region);
  outer.set("outer 1");
  {
    sw::detail::status_line inner(region);
    inner.set("inner 1");
    CHECK(terminal.lines() == std::vector<std::string>{"outer 1", "inner 1"});
    region->print("a message\n");
    outer.set("outer 2");
    CHECK(terminal.lines() == std::vector<std::string>{"a message", "outer 2", "inner 1"});
    inner.set("inner 2");
  }
  CHECK(terminal.lines() == std::vector<std::string>{"a message", "inner 2", "outer 2"});
  outer.set("o");
  CHECK(terminal.lines().back() == "o");
}
