// SPDX-License-Identifier: Apache-2.0
//
// Hooks that fetch a std::optional: an empty one means nothing in this run.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/tensor.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

/// A model that measures its error in every third step.
struct measuring_model {
  struct result {
    float loss;
    std::optional<float> error;
    std::optional<std::vector<float>> sizes;
    std::optional<sw::tensor> picture = std::nullopt;
    std::optional<std::string> words = std::nullopt;
  };
  std::int64_t steps = 0;
  float bad = 0;  // added to each measured error

  result step() {
    ++steps;
    if (steps % 3 != 0) { return {1, std::nullopt, std::nullopt}; }
    const auto error = static_cast<float>(steps) + bad;
    return {1, error, std::vector{error, error}, sw::tensor(sw::dtype::uint8, {2, 2}), "error " + std::to_string(steps)};
  }
  sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
};
using result = measuring_model::result;

void run_steps(auto& session, int count) {
  for (int i = 0; i < count && !session.should_stop(); ++i) { session.run(); }
}

}  // namespace

TEST_CASE("logging_tensor_hook logs an optional value in the next run that has one", "[hooks][optional]") {
  const log_capture log;
  measuring_model model;
  sw::monitored_session session(model, sw::logging_tensor_hook{{.every_n_iter = 4}, sw::tag("error", &result::error)});
  run_steps(session, 10);
  session.close();
  CHECK(log.count(sw::log_level::info) == 2);
  CHECK(log.contains(sw::log_level::info, "error = 3"));
  CHECK(log.contains(sw::log_level::info, "error = 9"));  // due after run 7
}

TEST_CASE("logging_tensor_hook leaves out an empty value beside others, and logs the last one at the end", "[hooks][optional]") {
  const log_capture log;
  measuring_model model;
  sw::monitored_session session(
      model,
      sw::logging_tensor_hook{{.every_n_iter = 100, .at_end = true}, sw::tag("loss", &result::loss), sw::tag("error", &result::error)});
  run_steps(session, 5);
  session.close();
  const auto lines = log.messages();
  REQUIRE(log.count(sw::log_level::info) == 2);
  CHECK(lines.front().text == "loss = 1");
  CHECK_THAT(lines.back().text, ContainsSubstring("loss = 1, error = 3"));
}

TEST_CASE("logging_tensor_hook logs no line at the end if no value ever came", "[hooks][optional]") {
  const log_capture log;
  measuring_model model;
  sw::monitored_session session(model, sw::logging_tensor_hook{{.at_end = true}, &result::error});
  run_steps(session, 2);
  session.close();
  CHECK(log.count(sw::log_level::info) == 0);
}

TEST_CASE("summary_saver_hook writes optional values of every kind in the next run that has one", "[hooks][optional]") {
  const temporary_directory directory;
  measuring_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 4},
                                                              sw::summary::scalar("error", &result::error),
                                                              sw::summary::histogram("sizes", &result::sizes),
                                                              sw::summary::image("picture", &result::picture),
                                                              sw::summary::text("words", &result::words)});
  run_steps(session, 10);
  session.close();
  CHECK(scalars_in(directory.path(), "error") == std::map<std::int64_t, float>{{3, 3}, {9, 9}});
  for (const auto* const tag : {"sizes", "picture/image", "words"}) {
    const auto values = tagged_in(directory.path(), tag);
    INFO(tag);
    REQUIRE(values.size() == 2);
    CHECK(values[0].first == 3);
    CHECK(values[1].first == 9);
  }
}

TEST_CASE("summary_saver_hook writes the values that there are", "[hooks][optional]") {
  const temporary_directory directory;
  measuring_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 2},
                                                              sw::summary::scalar("loss", &result::loss),
                                                              sw::summary::scalar("error", &result::error)});
  run_steps(session, 6);
  session.close();
  CHECK(scalars_in(directory.path(), "loss") == std::map<std::int64_t, float>{{1, 1}, {3, 1}, {5, 1}, {6, 1}});  // 6 is the last step
  CHECK(scalars_in(directory.path(), "error") == std::map<std::int64_t, float>{{3, 3}});
}

TEST_CASE("nan_tensor_hook checks an optional value when there is one", "[hooks][optional]") {
  measuring_model model{.bad = nan_value};
  sw::monitored_session session(model, sw::nan_tensor_hook{&result::error});
  run_steps(session, 2);
  CHECK_THROWS_WITH(session.run(), ContainsSubstring("nan at step 3"));
  measuring_model lists{.bad = nan_value};
  sw::monitored_session other(lists, sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &result::sizes});
  run_steps(other, 5);
  CHECK(other.global_step() == 3);
}

TEST_CASE("rollback_on_nan_hook checks an optional value when there is one", "[hooks][optional]") {
  const log_capture log;
  measuring_model model{.bad = nan_value};
  sw::monitored_session session({.retry = {.initial_backoff = 0}}, model, sw::rollback_on_nan_hook{&result::error, [&] { model.bad = 0; }});
  run_steps(session, 4);
  CHECK(session.metrics().rollbacks == 1);
  CHECK(model.steps == 2);  // runs 3 and 4, from the initial state
}

TEST_CASE("progress_hook displays the last value", "[hooks][optional]") {
  std::string shown;
  measuring_model model;
  const auto time = std::make_shared<sw::manual_clock>();
  sw::monitored_session session(
      {.clock = time}, model,
      sw::progress_hook{{.line_every = 1, .is_terminal = false, .output = [&](std::string_view text) { shown += text; }}, &result::error});
  for (int i = 0; i < 5; ++i) {
    session.run();
    time->advance(std::chrono::seconds(2));
  }
  CHECK_THAT(shown, ContainsSubstring("step 5"));
  CHECK_THAT(shown.substr(shown.rfind("step 5")), ContainsSubstring("loss 3"));
}

TEST_CASE("early_stopping_hook and every_n_steps take optional values", "[hooks][optional]") {
  measuring_model model;
  std::vector<std::optional<float>> seen;
  sw::monitored_session session(
      model, sw::early_stopping_hook{{.patience = 2}, &result::error},
      sw::every_n_steps(2, [&](const std::optional<float>& error) { seen.push_back(error); }, sw::fetch(&result::error)));
  run_steps(session, 100);
  CHECK(session.global_step() == 9);
  CHECK(seen == std::vector<std::optional<float>>{std::nullopt, std::nullopt, 6.0F, std::nullopt});
}
