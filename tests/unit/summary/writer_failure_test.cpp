// SPDX-License-Identifier: Apache-2.0
#include "events_of.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/summary/writer.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace sw = stepwell;
namespace summary = stepwell::summary;
namespace test = stepwell::test;

namespace {

struct failing_desk {
  test::temporary_directory directory;
  std::shared_ptr<test::fault_file_system> files = std::make_shared<test::fault_file_system>();
  summary::writer_options options;

  failing_desk() {
    options.file_system = files;
    options.clock = std::make_shared<sw::manual_clock>();
    options.max_queue_bytes = 1'000;
  }

  // Makes every write fail from now on, as on a full disk.
  void fill_up() { files->inject({.kind = test::operation::write, .errno_value = ENOSPC, .from_then_on = true}); }
};

// Adds scalars until the writer throws the failure. The test fails if it does not.
template<class Error>
void add_until_it_throws(summary::writer& writer) {
  for (int step = 0; step < 1'000'000; ++step) {
    try {
      writer.add_scalar("loss", 1, step);
    } catch (const Error&) { return; }
  }
  FAIL("nothing thrown");
}

}  // namespace

TEST_CASE("EVT-7 a full disk is thrown once from the next add, then the writer only warns", "[summary][writer]") {
  failing_desk with;
  summary::writer writer(with.directory.path(), with.options);
  with.fill_up();
  add_until_it_throws<sw::resource_exhausted_error>(writer);
  CHECK(writer.has_failed());
  CHECK(writer.failure()->code == sw::errc::resource_exhausted);
  CHECK(writer.is_closed());
  const test::log_capture log;
  writer.add_scalar("loss", 1, 1);
  CHECK(log.contains(sw::log_level::warning, "after a failed write"));
  CHECK_NOTHROW(writer.flush());
  CHECK_NOTHROW(writer.close());
}

TEST_CASE("EVT-7 a failure that was not thrown yet is thrown by flush or by close", "[summary][writer]") {
  failing_desk with;
  summary::writer flushed(with.directory.path(), with.options);
  summary::writer closed(with.directory.path(), with.options);
  with.fill_up();
  flushed.add_scalar("loss", 1, 1);
  closed.add_scalar("loss", 1, 1);
  CHECK_THROWS_AS(flushed.flush(), sw::resource_exhausted_error);
  CHECK_THROWS_AS(closed.close(), sw::resource_exhausted_error);
  CHECK_NOTHROW(flushed.close());
  CHECK_NOTHROW(closed.close());
}

TEST_CASE("a failure is reported to every waiting caller, also to a late one", "[summary][writer]") {
  failing_desk with;
  summary::writer writer(with.directory.path(), with.options);
  std::atomic<int> told = 0;
  const auto count = [&](const sw::status& why) { told += why.code == sw::errc::resource_exhausted ? 1 : 100; };
  writer.on_failure(count);
  writer.on_failure(count);
  with.fill_up();
  writer.add_scalar("loss", 1, 1);
  CHECK_THROWS_AS(writer.flush(), sw::resource_exhausted_error);
  writer.close();
  CHECK(told == 2);
  writer.on_failure(count);
  CHECK(told == 3);
}

TEST_CASE("EVT-7 a failure wakes a caller that is blocked on the full queue", "[summary][writer]") {
  failing_desk with;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_writing = false;
  bool may_go = false;
  summary::writer writer(with.directory.path(), with.options);
  with.files->before_each([&](const test::event& asked) {
    if (asked.kind != test::operation::write) { return; }
    std::unique_lock lock(mutex);
    is_writing = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_go; });
  });
  with.fill_up();
  bool has_thrown = false;
  std::thread producer([&] {
    try {
      for (int step = 0; step < 1'000; ++step) { writer.add_scalar("loss", 1, step); }
    } catch (const sw::resource_exhausted_error&) { has_thrown = true; }
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_writing; });
    may_go = true;
  }
  changed.notify_all();
  producer.join();
  CHECK(has_thrown);
}

TEST_CASE("EVT-8 a file removed under way is an error at the next flush", "[summary][writer]") {
  failing_desk with;
  summary::writer writer(with.directory.path(), with.options);
  std::filesystem::remove_all(with.directory.path());
  writer.add_scalar("loss", 1, 1);
  CHECK_THROWS_AS(writer.flush(), sw::not_found_error);
  CHECK(writer.failure()->place == writer.path());
}

TEST_CASE("a directory that cannot be written is an error at construction", "[summary][writer]") {
  failing_desk with;
  with.files->inject({.kind = test::operation::open, .errno_value = EACCES});
  CHECK_THROWS_AS(summary::writer(with.directory.path(), with.options), sw::permission_denied_error);
  test::write_file_text(with.directory.path() + "/file", "");
  CHECK_THROWS_AS(summary::writer(with.directory.path() + "/file", with.options), sw::error);
  const test::log_capture log;
  with.fill_up();
  CHECK_THROWS_AS(summary::writer(with.directory.path(), with.options), sw::resource_exhausted_error);
}

TEST_CASE("records that were flushed before a failure are whole", "[summary][writer]") {
  failing_desk with;
  summary::writer writer(with.directory.path(), with.options);
  writer.add_scalar("loss", 1, 1);
  writer.flush();
  with.fill_up();
  writer.add_scalar("loss", 2, 2);
  CHECK_THROWS_AS(writer.flush(), sw::resource_exhausted_error);
  CHECK(test::events_of(writer.path()).size() == 2);
}

TEST_CASE("closing with a deadline on a disk that hangs says so in time", "[summary][writer]") {
  failing_desk with;
  std::mutex mutex;
  std::condition_variable changed;
  bool may_go = false;
  const auto time = std::make_shared<sw::manual_clock>();
  with.options.clock = time;
  with.options.threads = std::make_shared<sw::io::pool>(1);
  summary::writer writer(with.directory.path(), with.options);
  with.files->before_each([&](const test::event& asked) {
    if (asked.kind != test::operation::write) { return; }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return may_go; });
  });
  writer.add_scalar("loss", 1, 1);
  CHECK_THROWS_AS(writer.close(time->now()), sw::deadline_exceeded_error);
  {
    const std::lock_guard lock(mutex);
    may_go = true;
  }
  changed.notify_all();
  with.options.threads->join();
  CHECK(test::events_of(writer.path()).size() == 2);
}
