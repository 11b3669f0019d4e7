// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/io/fake_disk.hpp"

#include <stepwell/io/detail/byte_queue.hpp>
#include <stepwell/io/detail/read_file.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sw = stepwell;
namespace io = stepwell::io;
using namespace stepwell::test;

TEST_CASE("bytes are written in order, and are durable when flush returns", "[io][byte_queue]") {
  small_queue on;
  CHECK(on.queue.append(bytes("one ")).ok());
  CHECK(on.queue.append(bytes("two")).ok());
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "one two");
  CHECK(on.disk.syncs == 1);
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.syncs == 1);
  CHECK(on.queue.append(bytes("!")).ok());
  CHECK(on.queue.close().ok());
  CHECK(on.disk.text() == "one two!");
  CHECK(on.disk.syncs == 2);
  CHECK(on.disk.closes == 1);
}

TEST_CASE("a record is framed in place and may use less than it asked for", "[io][byte_queue]") {
  small_queue on;
  CHECK(on.queue
            .append(8,
                    [](std::byte* into) {
                      std::memcpy(into, "abc", 3);
                      return std::size_t{3};
                    })
            .ok());
  CHECK(on.queue.append(bytes("de")).ok());
  CHECK(on.queue.append(std::span<const std::byte>()).ok());
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "abcde");
}

TEST_CASE("a frame that throws leaves nothing in the queue", "[io][byte_queue]") {
  small_queue on;
  CHECK_THROWS_AS(on.queue.append(4, [](std::byte*) -> std::size_t { throw std::runtime_error("bad record"); }), std::runtime_error);
  CHECK(on.queue.append(bytes("ok")).ok());
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "ok");
}

TEST_CASE("nothing is written before enough bytes wait or flush is called", "[io][byte_queue]") {
  small_queue on(6);
  CHECK(on.queue.append(bytes("12345")).ok());
  on.threads->join();  // if the writer had been posted, it would have run now
  CHECK(on.disk.writes == 0);
}

TEST_CASE("a full queue blocks until the disk has taken some", "[io][byte_queue]") {
  small_queue on;
  on.disk.is_open = false;
  CHECK(on.queue.append(bytes("first...")).ok());  // taken by the writer, which is blocked
  CHECK(on.queue.append(bytes("second..")).ok());
  std::atomic<bool> is_through = false;
  auto producer = std::async(std::launch::async, [&] {
    auto appended = on.queue.append(bytes("third"));
    is_through = true;
    return appended;
  });
  CHECK(on.time->wait_for_pending(1));
  CHECK_FALSE(is_through);
  on.disk.open_gate();
  CHECK(producer.get().ok());
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "first...second..third");
}

TEST_CASE("a producer may wait until the queue has space, and then append without blocking", "[io][byte_queue]") {
  small_queue on;
  CHECK(on.queue.has_space(100));  // an empty half grows
  on.disk.is_open = false;
  CHECK(on.queue.append(bytes("first...")).ok());  // taken by the writer, which is blocked
  CHECK(on.queue.append(bytes("second")).ok());
  CHECK(on.queue.has_space(2));
  CHECK(on.queue.wait_for_space(2).ok());
  CHECK_FALSE(on.queue.has_space(3));
  auto waited = std::async(std::launch::async, [&] { return on.queue.wait_for_space(3); });
  CHECK(on.time->wait_for_pending(1));
  on.disk.open_gate();
  CHECK(waited.get().ok());
  CHECK(on.queue.has_space(3));
  CHECK(on.queue.close().ok());
  CHECK(on.disk.text() == "first...second");
  CHECK_FALSE(on.queue.has_space(1));
  CHECK(on.queue.wait_for_space(1).error().code == sw::errc::failed_precondition);
}

TEST_CASE("after the limit of its waits a full queue refuses a record, also one that waits already, and goes on when the disk does",
          "[io][byte_queue]") {
  using namespace std::chrono_literals;
  small_queue on;
  on.disk.is_open = false;
  CHECK(on.queue.append(bytes("first...")).ok());  // taken by the writer, which is blocked
  CHECK(on.queue.append(bytes("second..")).ok());
  auto producer = std::async(std::launch::async, [&] { return on.queue.append(bytes("third")); });
  CHECK(on.time->wait_for_pending(1));
  on.queue.limit_waits(on.time->now() + 5s);
  CHECK(on.time->wait_for_pending(1));
  on.time->advance(5s);
  const auto refused = producer.get();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == sw::errc::deadline_exceeded);
  CHECK(on.queue.append(bytes("fourth")).error().code == sw::errc::deadline_exceeded);
  on.disk.open_gate();
  CHECK(on.queue.flush().ok());
  CHECK(on.queue.append(bytes("fifth")).ok());
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "first...second..fifth");
}

TEST_CASE("a record larger than the queue goes through whole, and others after it", "[io][byte_queue]") {
  small_queue on;
  const std::string large(100, 'L');
  CHECK(on.queue.append(bytes("small")).ok());
  CHECK(on.queue.append(bytes(large)).ok());
  CHECK(on.queue.append(bytes("small")).ok());
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "small" + large + "small");
  CHECK(on.disk.largest_write == 100);
}

TEST_CASE("a record that no memory can hold is refused, and the queue continues", "[io][byte_queue]") {
  small_queue on;
  const auto refused = on.queue.append(std::size_t{1} << 63, [](std::byte*) { return std::size_t{0}; });
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == sw::errc::resource_exhausted);
  CHECK(on.queue.append(bytes("ok")).ok());
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "ok");
}

TEST_CASE("the first failure is kept, reported once, and returned by every later call", "[io][byte_queue]") {
  small_queue on;
  std::vector<std::string> told;
  on.queue.on_failure([&](const sw::status& reason) { told.push_back(reason.message); });
  CHECK_FALSE(on.queue.has_failed());
  on.disk.write_outcome = full;
  CHECK(on.queue.append(bytes("lost")).ok());
  CHECK(on.queue.flush().error().message == "disk full");
  on.disk.write_outcome = {};
  CHECK(on.queue.has_failed());
  CHECK(on.queue.failure()->code == sw::errc::resource_exhausted);
  CHECK(on.queue.append(bytes("more")).error().message == "disk full");
  CHECK(on.queue.flush().error().message == "disk full");
  CHECK(on.queue.close().error().message == "disk full");
  CHECK(on.queue.close().ok());
  CHECK(told == std::vector<std::string>{"disk full"});
  CHECK(on.disk.text().empty());
  CHECK(on.disk.closes == 1);
  on.queue.on_failure([&](const sw::status& reason) { told.push_back("late: " + reason.message); });
  CHECK(told.back() == "late: disk full");
}

TEST_CASE("a listener that throws in on_error blocks no other listener", "[io][byte_queue]") {
  log_capture log;
  small_queue on;
  on.disk.write_outcome = full;
  on.queue.on_failure([](const sw::status&) { throw std::runtime_error("no ears"); });
  CHECK(on.queue.append(bytes("12345678")).ok());
  on.threads->join();
  CHECK(on.queue.close(on.time->now()).error().code == sw::errc::resource_exhausted);
  CHECK(log.contains(sw::log_level::error, "no ears"));
}

TEST_CASE("an exception of a sink is a failure of the queue, which can be closed", "[io][byte_queue]") {
  struct throwing_sink final : io::byte_sink {
    sw::result<void> write(std::span<const std::byte>) override { throw std::runtime_error("no memory"); }
    sw::result<void> sync() override { return {}; }
    sw::result<void> close() override { throw std::runtime_error("no memory to close"); }
  };
  const auto time = std::make_shared<sw::manual_clock>();
  io::byte_queue queue(std::make_unique<throwing_sink>(), {.threads = std::make_shared<io::pool>(1), .clock = time});
  CHECK(queue.append(bytes("x")).ok());
  auto flushed = std::async(std::launch::async, [&] { return queue.flush(time->now() + std::chrono::seconds(1)); });
  if (flushed.wait_for(std::chrono::seconds(10)) != std::future_status::ready) { time->advance(std::chrono::seconds(1)); }
  CHECK(flushed.get().error().message == "no memory");
  CHECK(queue.close(time->now()).error().message == "no memory");
}

TEST_CASE("a failed sync is a failure, and is not tried again", "[io][byte_queue]") {
  small_queue on;
  on.disk.sync_outcome = full;
  CHECK(on.queue.append(bytes("x")).ok());
  CHECK_FALSE(on.queue.flush().ok());
  on.disk.sync_outcome = {};
  CHECK_FALSE(on.queue.flush().ok());
  CHECK(on.disk.syncs == 1);
  CHECK_FALSE(on.queue.close().ok());
}

TEST_CASE("bytes that were durable before a failure stay flushed", "[io][byte_queue]") {
  small_queue on;
  CHECK(on.queue.append(bytes("safe")).ok());
  CHECK(on.queue.flush().ok());
  on.disk.write_outcome = full;
  on.queue.request_flush();  // without new data there is nothing to sync
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.syncs == 1);
}

TEST_CASE("a failure wakes those who wait for room and for a flush", "[io][byte_queue]") {
  const log_capture quiet;
  small_queue on;
  on.disk.is_open = false;
  on.disk.write_outcome = full;
  CHECK(on.queue.append(bytes("first...")).ok());
  CHECK(on.queue.append(bytes("second..")).ok());
  auto appended = std::async(std::launch::async, [&] { return on.queue.append(bytes("third")); });
  auto flushed = std::async(std::launch::async, [&] { return on.queue.flush(); });
  CHECK(on.time->wait_for_pending(2));
  on.disk.open_gate();
  CHECK(appended.get().error().message == "disk full");
  CHECK(flushed.get().error().message == "disk full");
}

TEST_CASE("a flush gives up at its deadline, and a later one still succeeds", "[io][byte_queue]") {
  using namespace std::chrono_literals;
  small_queue on;
  on.disk.is_open = false;
  CHECK(on.queue.append(bytes("slow")).ok());
  auto flushed = std::async(std::launch::async, [&] { return on.queue.flush(on.time->now() + 5s); });
  CHECK(on.time->wait_for_pending(1));
  on.time->advance(5s);
  const auto outcome = flushed.get();
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().code == sw::errc::deadline_exceeded);
  CHECK(outcome.error().message.find("4 bytes are not yet on disk") != std::string::npos);
  on.disk.open_gate();
  CHECK(on.queue.flush().ok());
  CHECK(on.disk.text() == "slow");
}

TEST_CASE("a close that gives up leaves the disk to finish alone", "[io][byte_queue]") {
  fake_disk disk;
  disk.is_open = false;
  const auto threads = std::make_shared<io::pool>(1);
  {
    const auto time = std::make_shared<sw::manual_clock>();
    io::byte_queue queue(std::make_unique<fake_sink>(disk), {.threads = threads, .clock = time});
    CHECK(queue.append(bytes("late")).ok());
    CHECK(queue.close(time->now()).error().code == sw::errc::deadline_exceeded);
  }
  disk.open_gate();
  threads->join();
  CHECK(disk.text() == "late");
  CHECK(disk.closes == 1);
}

TEST_CASE("a detached queue writes its bytes, then closes its sink, once", "[io][byte_queue]") {
  fake_disk disk;
  disk.is_open = false;
  const auto threads = std::make_shared<io::pool>(1);
  {
    io::byte_queue queue(std::make_unique<fake_sink>(disk), {.threads = threads, .clock = std::make_shared<sw::manual_clock>()});
    CHECK(queue.append(bytes("late")).ok());
    queue.detach();
    queue.detach();
    CHECK(queue.append(bytes("x")).error().code == sw::errc::failed_precondition);
  }
  disk.open_gate();
  threads->join();
  CHECK(disk.text() == "late");
  CHECK(disk.syncs == 1);
  CHECK(disk.closes == 1);
}

TEST_CASE("a detached queue closes its sink also if no bytes are left to be written, and after a failure", "[io][byte_queue]") {
  const log_capture quiet;
  fake_disk disk;
  const bool fails = GENERATE(false, true);
  if (fails) { disk.write_outcome = full; }
  const auto threads = std::make_shared<io::pool>(1);
  {
    io::byte_queue queue(std::make_unique<fake_sink>(disk), {.threads = threads, .clock = std::make_shared<sw::manual_clock>()});
    CHECK(queue.append(bytes("known")).ok());
    CHECK(queue.flush().ok() != fails);
    queue.detach();
  }
  threads->join();
  CHECK(disk.closes == 1);
}

TEST_CASE("a failure to close the sink in the background is reported", "[io][byte_queue]") {
  using namespace std::chrono_literals;
  small_queue on;
  std::vector<std::string> told;
  on.queue.on_failure([&](const sw::status& reason) { told.push_back(reason.message); });
  on.disk.is_open = false;
  on.disk.close_outcome = full;
  CHECK(on.queue.append(bytes("late")).ok());
  if (GENERATE(false, true)) {
    on.queue.detach();
  } else {
    CHECK(on.queue.close(on.time->now()).error().code == sw::errc::deadline_exceeded);
  }
  on.disk.open_gate();
  on.threads->join();
  CHECK(told == std::vector<std::string>{"disk full"});
  CHECK(on.queue.has_failed());
  CHECK(on.disk.closes == 1);
}

TEST_CASE("a closed queue refuses, and one destroyed without close is closed", "[io][byte_queue]") {
  small_queue on;
  CHECK(on.queue.close().ok());
  CHECK(on.queue.append(bytes("x")).error().code == sw::errc::failed_precondition);
  CHECK(on.queue.flush().ok());
  fake_disk disk;
  {
    io::byte_queue dropped(std::make_unique<fake_sink>(disk));
    CHECK(dropped.append(bytes("kept")).ok());
  }
  CHECK(disk.text() == "kept");
  CHECK(disk.closes == 1);
}

TEST_CASE("a failure that was not returned is logged when the queue is destroyed", "[io][byte_queue]") {
  const log_capture log;
  {
    small_queue on;
    on.disk.write_outcome = full;
    CHECK(on.queue.append(bytes("lost")).ok());
  }
  CHECK(log.contains(sw::log_level::error, "disk full"));
}

TEST_CASE("records of many threads are all there, whole, and in each thread's order", "[io][byte_queue]") {
  constexpr int threads = 4;
  constexpr int records = 5'000;
  small_queue on(64, 1024);
  {
    std::vector<std::jthread> producers;
    for (int thread = 0; thread < threads; ++thread) {
      producers.emplace_back([&on, thread] {
        for (std::uint32_t record = 0; record < records; ++record) {
          const auto value = static_cast<std::uint32_t>(thread) << 24 | record;
          static_cast<void>(on.queue.append(std::as_bytes(std::span(&value, 1))));
          if (record % 1000 == 0) { static_cast<void>(on.queue.flush()); }
        }
      });
    }
  }
  CHECK(on.queue.close().ok());
  const auto text = on.disk.text();
  REQUIRE(text.size() == threads * records * 4);
  std::vector<std::uint32_t> next(threads, 0);
  bool is_in_order = true;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t value = 0;
    std::memcpy(&value, text.data() + at, 4);
    is_in_order = is_in_order && (value & 0xFFFFFF) == next[value >> 24]++;
  }
  CHECK(is_in_order);
}

TEST_CASE("a queue into a file keeps what was there, and reports the file's errors", "[io][byte_queue]") {
  const temporary_directory directory;
  fault_file_system files;
  const auto path = directory / "events";
  for (const auto* text : {"first ", "second"}) {
    auto file = files.open(path, io::open_mode::append).value();
    const auto size = file->size().value();
    io::byte_queue queue(io::sink_into(std::move(file), size));
    CHECK(queue.append(bytes(text)).ok());
    CHECK(queue.close().ok());
  }
  CHECK(*io::read_text_file(files, path, 100) == "first second");
  for (const auto kind : {operation::write, operation::sync, operation::close}) {
    files.inject({.kind = kind, .path_contains = "events", .errno_value = ENOSPC});
    io::byte_queue queue(io::sink_into(files.open(path, io::open_mode::overwrite).value()));
    CHECK(queue.append(bytes("x")).ok());
    const auto closed = queue.close();
    REQUIRE_FALSE(closed.ok());
    CHECK(closed.error().code == sw::errc::resource_exhausted);
    CHECK(closed.error().place == path);
  }
}

TEST_CASE("after a loss of power at any instant the file is a prefix of the appended bytes, with all flushed ones", "[io][byte_queue]") {
  const std::string told = "r0;r1;r2;r3;";
  for (std::uint64_t number = 1; number <= 12; ++number) {
    const temporary_directory directory;
    const log_capture quiet;
    fault_file_system files;
    files.lose_power_at(number);
    std::size_t flushed = 0;
    if (auto opened = files.open(directory / "events", io::open_mode::create_new)) {
      io::byte_queue queue(io::sink_into(std::move(opened).value()));
      for (std::size_t record = 0; record < 4; ++record) {
        static_cast<void>(queue.append(bytes(std::string_view(told).substr(record * 3, 3))));
        if (queue.flush()) { flushed = record * 3 + 3; }
      }
      CHECK(queue.close().ok() == (number > 10));
      const auto found = io::read_text_file(*io::posix_file_system(), directory / "events", 100).value();
      CHECK(told.starts_with(found));
      CHECK(found.size() >= flushed);
    } else {
      CHECK(number == 1);
    }
  }
}
