// SPDX-License-Identifier: Apache-2.0
#include "stepwell/data/detail/read_ahead.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace stepwell::data::detail {

namespace {
constexpr std::size_t greatest_depth = 1'000'000;
}

void check_prefetch(const char* function, const prefetch_options& options) {
  if (options.threads == 0) { throw invalid_argument_error(fmt::format("{}: threads is 0; give it at least 1", function)); }
  if (options.depth == 0) { throw invalid_argument_error(fmt::format("{}: depth is 0; give it at least 1", function)); }
  if (options.depth > greatest_depth) {
    throw invalid_argument_error(fmt::format("{}: depth is {}; give it at most {}", function, options.depth, greatest_depth));
  }
}

void throw_not_copyable(std::size_t threads) {
  throw invalid_argument_error(
      fmt::format("prefetch: threads is {}, but several threads need a seekable source that can be copied; set threads to 1, or move the "
                  "slow part into the function of parallel_map",
                  threads));
}

void read_ahead_threads::start(read_ahead_work& work, const prefetch_options& options) {
  work_ = &work;
  slots_ = options.depth + 1;
  {
    const stepwell::detail::mutex_lock lock(mutex_);
    is_ready_.assign(slots_, 0);
    front_ = next_ = 0;
    end_ = no_end;
    is_stopping_ = false;
  }
  try {
    for (std::size_t worker = 0; worker < options.threads; ++worker) {
      threads_.push_back(value_or_throw(stepwell::detail::start_thread("stepwell prefetch", [this, worker] { run(worker); })));
    }
  } catch (...) {
    stop();
    throw;
  }
}

void read_ahead_threads::stop() noexcept {
  {
    const stepwell::detail::mutex_lock lock(mutex_);
    is_stopping_ = true;
  }
  room_.notify_all();
  for (auto& thread : threads_) { thread.join(); }
  threads_.clear();
}

void read_ahead_threads::run(std::size_t worker) {
  set_thread_name("stepwell prefetch");
  std::uint64_t number = 0;
  while (claim(worker, number)) { finish(number, work_->complete(worker, number, slot_of(number))); }
}

/// Waits for a free slot and begins the next item. Returns false if there is none, or if the threads stop.
bool read_ahead_threads::claim(std::size_t worker, std::uint64_t& number) {
  const stepwell::detail::mutex_lock in_order(order_);
  {
    stepwell::detail::mutex_lock lock(mutex_);
    system_clock()->wait_until(lock, room_, clock::time_point::max(),
                               [this]() STEPWELL_HOLDS(mutex_) { return is_stopping_ || next_ >= end_ || next_ - front_ < slots_; });
    if (is_stopping_ || next_ >= end_) { return false; }
    number = next_++;
  }
  if (work_->begin(worker, number, slot_of(number))) { return true; }
  finish(number, false);
  return false;
}

void read_ahead_threads::finish(std::uint64_t number, bool goes_on) {
  {
    const stepwell::detail::mutex_lock lock(mutex_);
    if (!goes_on) { end_ = std::min(end_, number + 1); }
    is_ready_[slot_of(number)] = 1;
  }
  ready_.notify_one();
  if (!goes_on) { room_.notify_all(); }
}

std::size_t read_ahead_threads::wait_front() {
  stepwell::detail::mutex_lock lock(mutex_);
  const auto slot = slot_of(front_);
  system_clock()->wait_until(lock, ready_, clock::time_point::max(), [&]() STEPWELL_HOLDS(mutex_) { return is_ready_[slot] != 0; });
  return slot;
}

void read_ahead_threads::pop() {
  {
    const stepwell::detail::mutex_lock lock(mutex_);
    is_ready_[slot_of(front_)] = 0;
    ++front_;
  }
  room_.notify_one();
}

}  // namespace stepwell::data::detail
