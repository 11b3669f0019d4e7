// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/saver.hpp>

#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/saver_rig.hpp"

#include <stepwell/base/error.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

namespace sw = stepwell;
using sw::test::names_in;
using sw::test::save_and_settle;
using sw::test::toy_at;
using sw::test::toy_in;
using sw::test::toy_snapshot;
using sw::test::workshop;
using namespace std::chrono_literals;

TEST_CASE("a failed save is delivered once, of its own kind, and the one before is intact", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make();
  save_and_settle(saver, toy_snapshot(1));
  int told = 0;
  saver.on_failure([&](std::exception_ptr) { ++told; });
  shop.files->inject({.kind = sw::test::operation::write, .path_contains = ".data-", .errno_value = ENOSPC, .bytes_written = 10});
  saver.save(toy_snapshot(2));
  CHECK_THROWS_AS(saver.drain(), sw::resource_exhausted_error);
  CHECK_FALSE(saver.has_failure());
  CHECK_NOTHROW(saver.drain());
  CHECK(told == 1);
  CHECK(names_in(shop.directory.path()) == "checkpoint model.ckpt-1.data-00000-of-00001 model.ckpt-1.index");
  CHECK(toy_in(*saver.restore_newest()) == toy_at(1));
  save_and_settle(saver, toy_snapshot(3));
  CHECK(shop.steps() == "1 3");
}

TEST_CASE("a failure is delivered at the next save, or when asked for", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make();
  const auto fail_once = [&](std::int64_t step) {
    std::atomic<bool> done = false;
    saver.on_failure([&](std::exception_ptr) { done = true; });
    shop.files->inject({.kind = sw::test::operation::sync, .errno_value = EIO});
    saver.save(toy_snapshot(step));
    while (saver.busy()) { std::this_thread::yield(); }
    CHECK(done);
    saver.on_failure(nullptr);
  };
  fail_once(1);
  CHECK(saver.has_failure());
  CHECK_THROWS_WITH(saver.save(toy_snapshot(2)), ContainsSubstring("model.ckpt-1") && ContainsSubstring("could not save"));
  fail_once(3);
  CHECK_THROWS_AS(saver.throw_if_failed(), sw::data_loss_error);
  CHECK_NOTHROW(saver.throw_if_failed());
  CHECK(shop.steps().empty());
}

TEST_CASE("save_and_wait throws its own failure and leaves none behind", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make();
  shop.files->inject({.kind = sw::test::operation::rename, .path_contains = ".index", .errno_value = EROFS});
  CHECK_THROWS_AS(saver.save_and_wait(toy_snapshot(1)), sw::permission_denied_error);
  CHECK_FALSE(saver.has_failure());
  CHECK(names_in(shop.directory.path()).empty());
}

TEST_CASE("under warn a failure is logged, and the session is not stopped", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  auto saver = shop.make({.on_error = sw::on_save_error::warn()});
  shop.files->inject({.kind = sw::test::operation::sync, .errno_value = EIO});
  saver.save(toy_snapshot(1));
  CHECK_NOTHROW(saver.drain());
  CHECK(log.contains(sw::log_level::warning, "model.ckpt-1"));
}

TEST_CASE("a passing failure is tried again after a wait that doubles", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  auto saver = shop.make({.on_error = sw::on_save_error::retry(2, 10s)});
  const auto fail_next = [&] { shop.files->inject({.kind = sw::test::operation::sync, .errno_value = EIO}); };
  fail_next();
  saver.save(toy_snapshot(1));
  REQUIRE(shop.clock->wait_for_pending(1));
  CHECK(saver.busy());
  fail_next();
  shop.clock->advance(10s);
  REQUIRE(shop.clock->wait_for_pending(1));
  shop.clock->advance(19s);
  CHECK(saver.busy());
  shop.clock->advance(1s);
  saver.drain();
  CHECK(shop.steps() == "1");
  CHECK(log.contains(sw::log_level::warning, "try 2 of 2 in 20.0 s"));
}

TEST_CASE("after the last try the failure is delivered; a full disk is not tried again", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  auto saver = shop.make({.on_error = sw::on_save_error::retry(1, 10s)});
  shop.files->inject({.kind = sw::test::operation::sync, .errno_value = EIO, .from_then_on = true});
  saver.save(toy_snapshot(1));
  REQUIRE(shop.clock->wait_for_pending(1));
  shop.clock->advance(10s);
  CHECK_THROWS_AS(saver.drain(), sw::data_loss_error);
  shop.files->inject({.kind = sw::test::operation::write, .errno_value = ENOSPC});
  saver.save(toy_snapshot(2));
  CHECK_THROWS_AS(saver.drain(), sw::resource_exhausted_error);
  CHECK(shop.clock->pending() == 0);
}

namespace {

/// A clock that cannot start a thread for its alarms.
class clock_without_thread final : public sw::clock {
public:
  [[nodiscard]] time_point now() const override { return held_.now(); }
  [[nodiscard]] wall_time wall_now() const override { return held_.wall_now(); }
  alarm_id call_at(time_point /*when*/, std::function<void()> /*action*/) override { throw sw::resource_exhausted_error("no thread"); }
  void cancel(alarm_id /*id*/) override {}
  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) override {
    return held_.wait_until(lock, condition, when);
  }

private:
  sw::manual_clock held_;
};

}  // namespace

TEST_CASE("a save that cannot be tried again for lack of a thread fails at once", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  auto options = shop.with({.on_error = sw::on_save_error::retry(2, 10s)});
  options.clock = std::make_shared<clock_without_thread>();
  sw::saver saver(shop.directory.path(), std::move(options));
  shop.files->inject({.kind = sw::test::operation::sync, .errno_value = EIO});
  saver.save(toy_snapshot(1));
  CHECK_THROWS_AS(saver.drain(), sw::data_loss_error);
  CHECK(log.contains(sw::log_level::warning, "is not retried"));
}

TEST_CASE("a saver that is destroyed does not wait for the next attempt, and logs failures that were not reported", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  {
    auto saver = shop.make({.on_error = sw::on_save_error::retry(5, 1000s)});
    shop.files->inject({.kind = sw::test::operation::sync, .errno_value = EIO});
    saver.save(toy_snapshot(1));
    REQUIRE(shop.clock->wait_for_pending(1));
  }
  CHECK(shop.steps() == "1");
  CHECK(log.count(sw::log_level::error) == 0);
  {
    auto saver = shop.make();
    shop.files->inject({.kind = sw::test::operation::sync, .errno_value = EIO});
    saver.save(toy_snapshot(2));
  }
  CHECK(log.contains(sw::log_level::error, "model.ckpt-2"));
}

TEST_CASE("a callback that throws is logged; one may replace itself", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  int second = 0;
  auto saver = shop.make();
  saver.on_saved([&](const sw::saved_checkpoint&) {
    saver.on_saved([&](const sw::saved_checkpoint&) { ++second; });
    throw std::runtime_error("from the callback");
  });
  save_and_settle(saver, toy_snapshot(1));
  save_and_settle(saver, toy_snapshot(2));
  CHECK(log.contains(sw::log_level::error, "from the callback"));
  CHECK(second == 1);
}

TEST_CASE("CKPT-3 a directory removed under way is a clear error", "[checkpoint][saver]") {
  workshop shop;
  sw::saver saver(shop.directory / "run", shop.with({}));
  save_and_settle(saver, toy_snapshot(1));
  std::filesystem::remove_all(shop.directory / "run");
  CHECK_THROWS_AS(saver.save_and_wait(toy_snapshot(2)), sw::not_found_error);
  CHECK_THROWS_WITH(saver.save_and_wait(toy_snapshot(2)),
                    ContainsSubstring("Parent directory of model.ckpt-2 doesn't exist, can't save") && ContainsSubstring("was removed"));
}
