// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/epoch_mean_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/protocol/prometheus.hpp>
#include <stepwell/protocol/watched_values.hpp>
#include <stepwell/session/any_session.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::session_rig;

namespace {

/// Returns the value as "VALUE at STEP"; "none" if it is not watched.
std::string newest(const std::vector<sw::history_value>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &sw::history_value::name);
  if (found == all.end()) { return "none"; }
  return std::to_string(std::lround(found->value)) + " at " + std::to_string(found->step);
}

sw::progress_options silent() {
  return {.line_every = 1000, .is_terminal = false, .summary = false, .output = [](std::string_view) {}};
}

using result = sw::test::adding_model::result;

double sum_with(const sw::test::adding_model& model, const std::int64_t& batch) {
  return static_cast<double>(model.sum) + static_cast<double>(batch);
}
double own_value(double value) { return value; }
const std::vector<std::int64_t> test_set = {7};

/// Stores the signals of its session.
struct signals_spy {
  std::shared_ptr<sw::session_signals>* signals;
  void after_create_session(auto& session, auto& /*threads*/) { *signals = session.signals(); }
};

}  // namespace

TEST_CASE("a value that a hook watches is read at most one step late", "[training][watched]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto session = sw::monitored_training_session(rig.model, rig.options(), sw::progress_hook(silent(), sw::tag("sum", &result::loss)));
  sw::test::run_until(session, 3);
  CHECK(newest(session.watched(), "sum") == "none");  // no line was due, and nothing was read before
  sw::test::run_until(session, 4);
  CHECK(newest(session.watched(), "sum") == "10 at 4");
  sw::test::run_until(session, 6);
  CHECK(newest(session.watched(), "sum") == "15 at 5");  // the read after step 4 made step 5 fetch it
  session.close();
  CHECK(newest(session.watched(), "sum") == "15 at 5");
}

TEST_CASE("a NaN guard publishes the value that it checks, also NaN", "[training][watched]") {
  const sw::test::log_capture log;
  session_rig rig;
  const auto loss = [&](const result& of) { return of.loss > 5 ? std::numeric_limits<double>::quiet_NaN() : 2.0; };
  auto session =
      sw::monitored_training_session(rig.model, rig.options(), sw::nan_tensor_hook({.fail_on_nan_loss = false}, sw::tag("my loss", loss)));
  static_cast<void>(session.watched());
  sw::test::run_until(session, 2);
  CHECK(newest(session.watched(), "my loss") == "2 at 1");
  sw::test::run_until(session, 3);
  const auto seen = session.watched();
  REQUIRE(seen.size() == 1);
  CHECK(std::isnan(seen.front().value));
  CHECK(seen.front().step == 3);
}

TEST_CASE("values that are logged, written or evaluated are watched under their names", "[training][watched]") {
  const sw::test::log_capture log;
  session_rig rig;
  sw::test::adding_model other;
  auto options = rig.options();
  options.summary_dir = rig.directory.path();
  auto session =
      sw::monitored_training_session(rig.model, options, sw::logging_tensor_hook({.every_n_iter = 2}, sw::tag("logged", &result::loss)),
                                     sw::summary_saver_hook({.save_steps = 2}, sw::summary::scalar("written", &result::loss)),
                                     sw::evaluate_every(2, test_set, &sum_with, sw::measure("sum", &own_value)));
  sw::test::run_until(session, 4);
  const auto all = session.watched();
  CHECK(newest(all, "logged") == "6 at 3");
  CHECK(newest(all, "written") == "6 at 3");
  CHECK(newest(all, "evaluation/sum") == "17 at 4");
  session.close();
}

TEST_CASE("values that were read before a recovery are wanted after it", "[training][watched]") {
  const auto values = std::make_shared<sw::watched_values>();
  sw::value_publisher loss;
  loss.start(values, {"loss"});
  CHECK_FALSE(loss.is_wanted());
  static_cast<void>(values->read());
  CHECK(loss.is_wanted());
  values->clear();
  loss.start(values, {"loss"});
  CHECK(loss.is_wanted());
  loss.publish_one(1, 1);
  CHECK_FALSE(loss.is_wanted());
}

TEST_CASE("after a recovery, values of the lost steps are not watched", "[training][watched]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.retry.initial_backoff = 0;
  rig.model.before = [fails = true](std::int64_t batch) mutable {
    if (batch == 6 && std::exchange(fails, false)) { throw sw::aborted_error("once"); }
  };
  auto session = sw::monitored_training_session(rig.model, options, sw::progress_hook(silent(), sw::tag("sum", &result::loss)));
  static_cast<void>(session.watched());
  sw::test::run_until(session, 5);
  sw::test::wait_for_saves(session);
  CHECK(newest(session.watched(), "sum") == "1 at 1");
  session.run(6);
  CHECK(session.metrics().recoveries == 1);
  CHECK(newest(session.watched(), "sum") == "16 at 5");  // asked for before the recovery, measured after it: 10, restored, and 6
}

TEST_CASE("values that two hooks watch under one name are one value, the newest", "[training][watched]") {
  const auto values = std::make_shared<sw::watched_values>();
  sw::value_publisher one;
  sw::value_publisher other;
  one.start(values, {"loss", "rate"});
  other.start(values, {"loss"});
  one.publish(std::vector<std::optional<double>>{1.0, std::nullopt}, 1);
  other.publish_one(2.0, 2);
  const auto all = values->read();
  REQUIRE(all.size() == 1);
  CHECK(newest(all, "loss") == "2 at 2");
  CHECK(one.is_wanted());
  one.publish(std::vector<std::optional<double>>{std::nullopt, 5.0}, 3);
  CHECK_FALSE(one.is_wanted());
  CHECK(newest(values->read(), "rate") == "5 at 3");
}

TEST_CASE("watched values may be read on any thread while the session trains", "[training][watched]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto made = sw::monitored_training_session(rig.model, rig.options(), sw::progress_hook(silent(), sw::tag("sum", &result::loss)));
  sw::any_session<result, sw::test::counting_source> session(std::move(made));
  std::atomic<bool> has_read = false;
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) { has_read = has_read || newest(session.watched(), "sum") != "none"; }
  });
  sw::test::counting_source source;
  for (const auto& step : session.steps(source)) {
    if (step.global_step >= 200 && has_read) { session.request_stop(); }
  }
  reader.request_stop();
  reader.join();
  session.close();
  CHECK(has_read);
}

TEST_CASE("watched values are metrics for Prometheus, also if they are not finite", "[training][watched]") {
  const auto infinity = std::numeric_limits<double>::infinity();
  const auto text = sw::prometheus_text({}, "a", {{"loss \"1\"", 0.25, 3}, {"up", infinity, 3}, {"nan", infinity - infinity, 3}});
  CHECK(text.find("# TYPE stepwell_watched gauge\nstepwell_watched{session=\"a\",name=\"loss \\\"1\\\"\"} 0.25\n") != std::string::npos);
  CHECK(text.find("stepwell_watched{session=\"a\",name=\"up\"} +Inf\nstepwell_watched{session=\"a\",name=\"nan\"} NaN\n") !=
        std::string::npos);
}

TEST_CASE("a checkpoint that another thread requests is saved at the end of a step", "[training][watched]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.saves.save_steps = 100;
  std::shared_ptr<sw::session_signals> signals;
  auto session = sw::monitored_training_session(rig.model, options, signals_spy{&signals});
  sw::test::run_until(session, 2);
  std::thread([&] { signals->request_checkpoint(); }).join();
  sw::test::run_until(session, 4);
  sw::test::wait_for_saves(session);
  CHECK(rig.steps() == "0 3");
  session.close();
}

TEST_CASE("a listener receives the messages that the sink receives, until it is destroyed", "[training][watched]") {
  const sw::test::log_capture log;
  std::vector<std::string> heard;
  {
    const sw::log_listener listener([&](sw::log_level, std::string_view message) { heard.emplace_back(message); });
    sw::log_info("one");
  }
  sw::log_info("two");
  CHECK(heard == std::vector<std::string>{"one"});
  CHECK(log.contains(sw::log_level::info, "one"));
  CHECK(log.contains(sw::log_level::info, "two"));
}
