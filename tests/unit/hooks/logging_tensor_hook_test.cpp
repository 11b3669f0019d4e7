// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/tensor.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_model;

namespace {

using lines = std::vector<std::string>;

lines info_lines(const sw::test::log_capture& log) {
  lines found;
  for (const auto& message : log.messages()) {
    if (message.level == sw::log_level::info) { found.push_back(message.text); }
  }
  return found;
}

/// Returns the lines that a hook logs in `runs` runs with batches 1, 2, 3, ... The clock does not move. With a
/// formatter, or with only one line, the output contains no time.
template<class Hook>
lines lines_of_runs(Hook hook, std::int64_t runs) {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(sw::training_options{.clock = std::make_shared<sw::manual_clock>()}, model, std::move(hook));
  for (std::int64_t batch = 1; batch <= runs; ++batch) { session.run(batch); }
  return info_lines(log);
}

}  // namespace

TEST_CASE("HOOK-LOG-1 exactly one valid period must be given, or logging only at the end", "[hooks][logging]") {
  const auto loss = sw::tag("loss", &adding_model::result::loss);
  CHECK_THROWS_WITH((sw::logging_tensor_hook{{}, loss}),
                    ContainsSubstring("exactly one of every_n_iter and every_n_secs must be provided"));
  CHECK_THROWS_WITH((sw::logging_tensor_hook{{.every_n_iter = 0, .every_n_secs = 1.0}, loss}), ContainsSubstring("exactly one of"));
  CHECK_THROWS_WITH((sw::logging_tensor_hook{{.every_n_iter = 1, .every_n_secs = 1.0, .at_end = true}, loss}),
                    ContainsSubstring("exactly one of"));
  CHECK_THROWS_WITH((sw::logging_tensor_hook{{.every_n_iter = 0}, loss}), ContainsSubstring("invalid every_n_iter=0"));
  CHECK_THROWS_WITH((sw::logging_tensor_hook{{.every_n_iter = -3, .at_end = true}, loss}), ContainsSubstring("invalid every_n_iter=-3"));
  CHECK_THROWS_AS((sw::logging_tensor_hook{{}, loss}), sw::invalid_argument_error);
  CHECK_NOTHROW(sw::logging_tensor_hook{{.at_end = true}, loss});
  CHECK_NOTHROW(sw::logging_tensor_hook{{.every_n_iter = 1, .at_end = true}, loss});
  CHECK_NOTHROW(sw::logging_tensor_hook{{.every_n_secs = 0}, loss});
  CHECK_THROWS_WITH((sw::logging_tensor_hook{{.every_n_secs = -1}, loss}), ContainsSubstring("invalid every_n_secs=-1"));  // D-31
}

TEST_CASE("HOOK-LOG-2 a list is logged in its order, a map in that of its tags", "[hooks][logging]") {
  const auto loss = sw::tag("loss", &adding_model::result::loss);
  const auto batch = sw::tag("batch", &adding_model::result::batch);
  CHECK(lines_of_runs(sw::logging_tensor_hook{{.every_n_iter = 1}, loss, batch}, 1) == lines{"loss = 1, batch = 1"});
  CHECK(lines_of_runs(sw::logging_tensor_hook{{.every_n_iter = 1}, sw::tag_map{loss, batch}}, 1) == lines{"batch = 1, loss = 1"});
  CHECK(lines_of_runs(sw::logging_tensor_hook{{.every_n_iter = 1}, sw::tag_map{loss}}, 1) == lines{"loss = 1"});
  CHECK(lines_of_runs(sw::logging_tensor_hook{{.every_n_iter = 1}, &adding_model::result::loss, batch}, 1) ==
        lines{"value_0 = 1, batch = 1"});
  CHECK_THROWS_WITH((sw::logging_tensor_hook{{.every_n_iter = 1}, sw::tag_map{loss, sw::tag("loss", &adding_model::sum)}}),
                    ContainsSubstring("two values have the tag \"loss\""));
}

TEST_CASE("HOOK-LOG-3 a hook that begins again starts afresh", "[hooks][logging]") {
  sw::test::log_capture log;
  sw::logging_tensor_hook hook{{.every_n_iter = 3}, sw::tag("loss", &adding_model::result::loss)};
  for (int session_number = 0; session_number < 2; ++session_number) {
    log.clear();
    const auto clock = std::make_shared<sw::manual_clock>();
    adding_model model;
    sw::monitored_session session(sw::training_options{.clock = clock}, model, std::ref(hook));
    for (int i = 0; i < 4; ++i) {
      session.run(std::int64_t{1});
      clock->advance(1s);
    }
    session.close();
    CHECK(info_lines(log) == lines{"loss = 1", "loss = 4 (3.000 sec)"});
  }
}

TEST_CASE("HOOK-LOG-3 a session without a run logs no values of an earlier session at its end", "[hooks][logging]") {
  sw::test::log_capture log;
  sw::logging_tensor_hook hook{{.at_end = true}, sw::tag("loss", &adding_model::result::loss)};
  for (const std::int64_t runs : {1, 0}) {
    log.clear();
    adding_model model;
    sw::monitored_session session(model, std::ref(hook));
    for (std::int64_t i = 0; i < runs; ++i) { session.run(std::int64_t{1}); }
    session.close();
    CHECK(info_lines(log).size() == static_cast<std::size_t>(runs));
  }
}

TEST_CASE("HOOK-LOG-4 values are asked for only in the runs that log", "[hooks][logging]") {
  int asked = 0;
  const auto watched = sw::tag("loss", [&asked](const adding_model::result& result) {
    ++asked;
    return result.loss;
  });
  CHECK(lines_of_runs(sw::logging_tensor_hook{{.every_n_iter = 4}, watched}, 6).size() == 2);
  CHECK(asked == 2);
}

TEST_CASE("HOOK-LOG-5 HOOK-LOG-6 the first run logs, then every n-th, with the time between", "[hooks][logging]") {
  sw::test::log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model,
      sw::logging_tensor_hook{
          {.every_n_iter = 3}, sw::tag("loss", &adding_model::result::loss), sw::tag("weights", &adding_model::weights)});
  for (std::int64_t batch = 1; batch <= 7; ++batch) {
    session.run(batch);
    clock->advance(500ms);
  }
  CHECK(info_lines(log) ==
        lines{"loss = 1, weights = [2 3 4]", "loss = 10, weights = [5 6 7] (1.500 sec)", "loss = 28, weights = [8 9 10] (1.500 sec)"});
}

TEST_CASE("seconds between log lines are counted by the session's clock", "[hooks][logging]") {
  sw::test::log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model,
                                sw::logging_tensor_hook{{.every_n_secs = 2}, sw::tag("loss", &adding_model::result::loss)});
  for (std::int64_t batch = 1; batch <= 5; ++batch) {
    session.run(batch);
    clock->advance(1s);
  }
  CHECK(info_lines(log) == lines{"loss = 1", "loss = 6 (2.000 sec)", "loss = 15 (2.000 sec)"});
}

TEST_CASE("HOOK-LOG-6 a formatter gets the values by their tags and makes the whole line", "[hooks][logging]") {
  sw::logging_tensor_options options{.every_n_iter = 2};
  options.formatter = [](const std::map<std::string, sw::logged_value>& values) {
    std::string line;
    for (const auto& [tag, value] : values) {
      line += tag + ":" + value.text + (value.number ? "=" + std::to_string(static_cast<int>(*value.number)) : "") + ";";
    }
    return line;
  };
  sw::logging_tensor_hook hook{options, sw::tag("weights", &adding_model::weights), sw::tag("loss", &adding_model::result::loss)};
  CHECK(lines_of_runs(std::move(hook), 3) == lines{"loss:1=1;weights:[2 3 4];", "loss:6=6;weights:[4 5 6];"});
}

TEST_CASE("HOOK-LOG-7 D-19 at the end the last values are logged, and nothing is run again", "[hooks][logging]") {
  int steps = 0;
  const auto loss = sw::tag("loss", &adding_model::result::loss);
  const auto weights = sw::tag("weights", &adding_model::weights);
  const auto run = [&](auto hook, int runs) {
    sw::test::log_capture log;
    adding_model model;
    steps = 0;
    model.before = [&](std::int64_t) { ++steps; };
    sw::monitored_session session(sw::training_options{.clock = std::make_shared<sw::manual_clock>()}, model, std::move(hook));
    for (std::int64_t batch = 1; batch <= runs; ++batch) { session.run(batch); }
    model.weights = {-1, -1, -1};  // the hook logs the values of the last run, not these
    session.close();
    CHECK(steps == runs);
    return info_lines(log);
  };
  CHECK(run(sw::logging_tensor_hook{{.at_end = true}, loss, weights}, 3) == lines{"loss = 6, weights = [4 5 6]"});
  CHECK(run(sw::logging_tensor_hook{{.at_end = true}, loss}, 0).empty());
  CHECK(run(sw::logging_tensor_hook{{.every_n_iter = 2, .at_end = true}, loss}, 2) == lines{"loss = 1", "loss = 3 (0.000 sec)"});
  CHECK(run(sw::logging_tensor_hook{{.every_n_iter = 2, .at_end = true}, loss}, 3) ==
        lines{"loss = 1", "loss = 6 (0.000 sec)", "loss = 6 (0.000 sec)"});  // also if the last run has just logged
  CHECK(run(sw::logging_tensor_hook{{.every_n_iter = 2}, loss}, 2) == lines{"loss = 1"});
}

TEST_CASE("HOOK-LOG-7 a session left by an error logs nothing at its end", "[hooks][logging]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(model, sw::logging_tensor_hook{{.at_end = true}, sw::tag("loss", &adding_model::result::loss)});
  session.run(std::int64_t{1});
  session.abandon(std::make_exception_ptr(sw::aborted_error("gone")));
  CHECK(info_lines(log).empty());
}

TEST_CASE("HOOK-LOG-8 lines are of level info; small numbers have no exponent, long tensors are cut", "[hooks][logging]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(
      model, sw::logging_tensor_hook{{.every_n_iter = 1, .at_end = true}, sw::tag("loss", [](const adding_model&) { return 0.00001234; })});
  session.run(std::int64_t{1});
  session.close();
  CHECK(log.count(sw::log_level::info) == 2);
  CHECK(log.contains(sw::log_level::info, "loss = 0.0000123400"));
  CHECK(sw::value_text(0.25f) == "0.25");
  CHECK(sw::value_text(1234567.0) == "1.23457e+06");
  CHECK(sw::value_text(0.00001234) == "0.0000123400");
  CHECK(sw::value_text(-std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(sw::value_text(true) == "true");
  CHECK(sw::value_text(-7) == "-7");
  CHECK(sw::value_text(std::string("text")) == "text");
  CHECK(sw::value_text(std::vector<int>{1, 2, 3, 4, 5, 6, 7}) == "[1 2 3 4 5 6 ...] of shape [7]");
  CHECK(sw::value_text(std::vector<double>{}) == "[]");
  const std::array<std::uint16_t, 2> halves{0x3c00, 0xc500};
  const std::array<std::uint8_t, 2> bytes{0x38, 0x0f};
  CHECK(sw::tensor_text({sw::dtype::half, {2}, std::as_bytes(std::span(halves))}) == "[1 -5]");
  CHECK(sw::tensor_text({sw::dtype::float8_e4m3fn, {1}, std::as_bytes(std::span(bytes))}) == "[1]");
  CHECK(sw::tensor_text({sw::dtype::int4, {2}, std::as_bytes(std::span(bytes))}) == "[-8 -1]");
}

TEST_CASE("HOOK-LOG-8 a tensor is logged with the type and the shape that it has in that run", "[hooks][logging]") {
  std::vector<sw::tensor> values{sw::tensor::scalar(0.5f), sw::tensor(sw::dtype::float32, {2, 2}), sw::tensor(sw::dtype::int64, {1}),
                                 sw::tensor(sw::dtype::float32, {0}), sw::tensor::scalar(7)};
  sw::test::log_capture log;
  adding_model model;
  std::size_t run = 0;
  sw::monitored_session session(
      sw::training_options{.clock = std::make_shared<sw::manual_clock>()}, model,
      sw::logging_tensor_hook{{.every_n_iter = 1},
                              sw::tag("value", [&](const adding_model&) -> const sw::tensor& { return values[run]; })});
  lines expected;
  for (; run < values.size(); ++run) {
    session.run(std::int64_t{1});
    expected.push_back("value = " + sw::value_text(values[run]) + (run == 0 ? "" : " (0.000 sec)"));
  }
  CHECK(info_lines(log) == expected);
  CHECK(expected.front() == "value = 0.5");
}

TEST_CASE("HOOK-LOG-9 every run of the session counts, and the global step does not", "[hooks][logging]") {
  struct striding_model {
    std::int64_t steps = 40;
    std::int64_t step() { return steps += 10; }
    std::int64_t& global_step() { return steps; }
    sw::variable_list variables() { return {}; }
  };
  sw::test::log_capture log;
  striding_model model;
  sw::monitored_session session(
      sw::training_options{.clock = std::make_shared<sw::manual_clock>()}, model,
      sw::logging_tensor_hook{{.every_n_iter = 3}, sw::tag("step", [](const std::int64_t& step) { return step; })});
  for (int i = 0; i < 5; ++i) { session.run(); }
  CHECK(info_lines(log) == lines{"step = 50", "step = 80 (0.000 sec)"});
}

TEST_CASE("D-39 a whole number is logged without a decimal point", "[hooks][logging]") {
  CHECK(sw::value_text(42.0) == "42");
  CHECK(sw::value_text(0.5) == "0.5");
}
