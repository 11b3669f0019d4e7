// SPDX-License-Identifier: Apache-2.0
//
// A byte_queue over a disk in memory that a test can block or make fail.
#pragma once

#include <stepwell/io/detail/byte_queue.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace stepwell::test {

inline std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The state of a disk. A test reads it, blocks the disk, or makes it fail.
struct fake_disk {
  void open_gate() {
    const std::lock_guard lock(mutex);
    is_open = true;
    changed.notify_all();
  }
  std::string text() const {
    const std::lock_guard lock(mutex);
    return content;
  }

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool is_open = true;
  std::string content;
  int writes = 0;
  int syncs = 0;
  int closes = 0;
  std::size_t largest_write = 0;
  result<void> write_outcome;
  result<void> sync_outcome;
  result<void> close_outcome;
};

class fake_sink final : public io::byte_sink {
public:
  explicit fake_sink(fake_disk& disk) : disk_(disk) {}
  result<void> write(std::span<const std::byte> added) override {
    std::unique_lock lock(disk_.mutex);
    disk_.changed.wait(lock, [&] { return disk_.is_open; });
    ++disk_.writes;
    disk_.largest_write = std::max(disk_.largest_write, added.size());
    if (!disk_.write_outcome) { return disk_.write_outcome; }
    disk_.content.append(reinterpret_cast<const char*>(added.data()), added.size());
    return {};
  }
  result<void> sync() override {
    const std::lock_guard lock(disk_.mutex);
    ++disk_.syncs;
    return disk_.sync_outcome;
  }
  result<void> close() override {
    const std::lock_guard lock(disk_.mutex);
    ++disk_.closes;
    return disk_.close_outcome;
  }

private:
  fake_disk& disk_;
};

/// A queue with two halves of eight bytes over a fake disk, with a manual clock.
struct small_queue {
  explicit small_queue(std::size_t write_at = 8, std::size_t capacity = 16)
      : queue(std::make_unique<fake_sink>(disk),
              {.capacity_bytes = capacity, .write_at_bytes = write_at, .threads = threads, .clock = time}) {}

  fake_disk disk;
  std::shared_ptr<io::pool> threads = std::make_shared<io::pool>(1);
  std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>();
  io::byte_queue queue;
};

inline const status full(errc::resource_exhausted, "disk full", "events");

}  // namespace stepwell::test
