// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/data/queue.hpp>
#include <stepwell/protocol/prometheus.hpp>
#include <stepwell/threads/queue_runner.hpp>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::session_rig;

TEST_CASE("metrics count creations, recoveries, and what was saved", "[training][metrics]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.retry.initial_backoff = 0;
  rig.model.before = [fails = true](std::int64_t batch) mutable {
    if (batch == 3 && std::exchange(fails, false)) { throw sw::aborted_error("once"); }
  };
  auto session = sw::monitored_training_session(rig.model, options);
  sw::test::run_until(session, 4);
  sw::test::wait_for_saves(session);
  const auto seen = session.metrics();
  CHECK(seen.global_step == 4);
  CHECK(seen.creations == 2);
  CHECK(seen.recoveries == 1);
  CHECK(seen.rollbacks == 0);
  CHECK(seen.saves == 3);  // at steps 0, 2 and 4
  CHECK(seen.saves_failed == 0);
  CHECK(seen.bytes_saved > 0);
  CHECK(seen.bytes_saved % seen.saves == 0);
  session.close();
}

TEST_CASE("metrics have the step at which a session began, until its first step", "[training][metrics]") {
  const sw::test::log_capture log;
  session_rig rig;
  const auto train_until = [&](std::int64_t first, std::int64_t last) {
    auto session = sw::monitored_training_session(rig.model, rig.options());
    CHECK(session.metrics().global_step == first);
    sw::test::run_until(session, last);
    CHECK(session.metrics().global_step == last);
    session.close();
    CHECK(session.metrics().global_step == last);
  };
  train_until(0, 3);
  train_until(3, 5);
}

TEST_CASE("metrics count failed and skipped saves", "[training][metrics]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.saves.saver.on_error = sw::on_save_error::warn();
  auto session = sw::monitored_training_session(rig.model, options);
  sw::test::wait_for_saves(session);
  rig.files->inject({.kind = sw::test::operation::sync, .path_contains = "model.ckpt-2", .errno_value = EIO});
  sw::test::run_until(session, 2);
  sw::test::wait_for_saves(session);
  CHECK(session.metrics().saves == 1);
  CHECK(session.metrics().saves_failed == 1);
  session.close();
}

TEST_CASE("metrics have the number of elements in the queues of the runners", "[training][metrics]") {
  const sw::test::log_capture log;
  session_rig rig;
  sw::data::fifo_queue<std::int64_t> queue({.capacity = 4, .name = "batches"});
  auto options = rig.options();
  options.queue_runners = {
      std::make_shared<sw::queue_runner>(queue, std::vector{sw::enqueue_from(queue, std::vector<std::int64_t>{1, 2, 3})})};
  auto session = sw::monitored_training_session(rig.model, options);
  std::int64_t steps = 0;
  for ([[maybe_unused]] const auto& step : session.steps(queue)) { ++steps; }
  CHECK(steps == 3);
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  CHECK(session.metrics().queue_depths.at("batches") == 0);
  session.close();
  CHECK(rig.model.sum == 6);
}

TEST_CASE("a stop of the session ends a loop that waits for an empty queue", "[training][queues]") {
  const sw::test::log_capture log;
  session_rig rig;
  sw::data::fifo_queue<std::int64_t> queue({.capacity = 4, .name = "batches"});
  std::atomic<bool> is_waiting = false;
  auto options = rig.options();
  const auto never = [&](std::stop_token stop) {
    is_waiting = true;
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, stop, [] { return false; });
  };
  options.queue_runners = {std::make_shared<sw::queue_runner>(queue, std::vector{sw::enqueue_op{.name = "never", .run = never}})};
  auto session = sw::monitored_training_session(rig.model, options);
  std::thread stopper([&] {
    while (!is_waiting) { std::this_thread::yield(); }
    session.request_stop();
  });
  for ([[maybe_unused]] const auto& step : session.steps(queue)) {}
  stopper.join();
  CHECK(session.should_stop());
  session.close();
}

TEST_CASE("metrics may be read on any thread while the session trains, recovers and closes", "[training][metrics]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.retry.initial_backoff = 0;
  options.saves.save_steps = 1;
  rig.model.before = [fails = true](std::int64_t batch) mutable {
    if (batch == 30 && std::exchange(fails, false)) { throw sw::aborted_error("once"); }
  };
  auto session = sw::monitored_training_session(rig.model, options);
  std::atomic<std::int64_t> reads = 0;
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested() || reads == 0) {
      const auto seen = session.metrics();
      if (sw::prometheus_text(seen, "a").empty()) { std::abort(); }  // Catch2's macros belong to one thread
      ++reads;
    }
  });
  sw::test::run_until(session, 60);
  session.close();
  reader.request_stop();
  reader.join();
  CHECK(reads > 0);
  CHECK(session.metrics().recoveries == 1);
}

TEST_CASE("metrics in the text format of Prometheus", "[training][metrics]") {
  sw::session_metrics metrics;
  metrics.saves = 3;
  metrics.queue_depths["input \"a\""] = 7;
  const auto text = sw::prometheus_text(metrics, "run\n1");
  CHECK(text.find("# TYPE stepwell_saves_total counter\nstepwell_saves_total{session=\"run\\n1\"} 3\n") != std::string::npos);
  CHECK(text.find("stepwell_queue_items{session=\"run\\n1\",queue=\"input \\\"a\\\"\"} 7\n") != std::string::npos);
  CHECK(text.ends_with('\n'));
  CHECK(sw::prometheus_text(metrics).find("\nstepwell_saves_total 3\n") != std::string::npos);
}

TEST_CASE("names that are not UTF-8 are valid in the text for Prometheus, and equal names are an error", "[training][metrics]") {
  CHECK(sw::prometheus_text({}, "a\xff").find("{session=\"a\xef\xbf\xbd\"} ") != std::string::npos);
  CHECK_THROWS_AS(sw::prometheus_text(std::vector<sw::named_metrics>{{"a", {}}, {"b", {}}, {"a", {}}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::prometheus_text(std::vector<sw::named_metrics>{{"\xfe", {}}, {"\xff", {}}}), sw::invalid_argument_error);
}

TEST_CASE("metrics of several sessions have one heading for each number", "[training][metrics]") {
  std::vector<sw::named_metrics> sessions = {{"a", {}}, {"b", {}}};
  sessions[0].metrics.global_step = 12;
  sessions[1].metrics.global_step = 7;
  sessions[1].metrics.queue_depths["input"] = 2;
  const auto text = sw::prometheus_text(sessions);
  CHECK(text.find("# TYPE stepwell_global_step gauge\nstepwell_global_step{session=\"a\"} 12\nstepwell_global_step{session=\"b\"} 7\n") !=
        std::string::npos);
  const std::string heading = "# HELP stepwell_saves_total ";
  CHECK(text.find(heading) == text.rfind(heading));
  CHECK(text.ends_with("# TYPE stepwell_queue_items gauge\nstepwell_queue_items{session=\"b\",queue=\"input\"} 2\n"));
}
