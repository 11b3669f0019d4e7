// SPDX-License-Identifier: Apache-2.0
//
// Threads that make numbered items ahead of one consumer, which takes them in order. The items themselves are stored by the caller.
#pragma once

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace stepwell::data {

/// Options of `prefetch` and `parallel_map`.
struct prefetch_options {
  std::size_t threads = 1;  ///< Number of threads that make batches, above zero.
  std::size_t depth = 4;    ///< Maximum number of batches that are made ahead of the current one, from 1 to 1,000,000.
};

namespace detail {

/// Throws unless both numbers are above zero. `function` is the name for the message.
/// @errors `invalid_argument_error` that names the member.
void check_prefetch(const char* function, const prefetch_options& options);
/// @errors Always throws `invalid_argument_error`: several threads need copies of the source.
[[noreturn]] void throw_not_copyable(std::size_t threads);

/// The work of the threads. Neither function throws.
class read_ahead_work {
public:
  virtual ~read_ahead_work() = default;

  /// Begins the item `number`, to be stored in `slot`. Called by one thread at a time, in the order of the numbers. Returns false if there
  /// is no item after this one: at the end of the data, or after a failure, which the slot contains.
  virtual bool begin(std::size_t worker, std::uint64_t number, std::size_t slot) noexcept = 0;
  /// Completes the item. Called by several threads at a time. Returns false if there is no item after this one.
  virtual bool complete(std::size_t worker, std::uint64_t number, std::size_t slot) noexcept = 0;
};

/// The threads of one source. The items in work or ready, including the one that the consumer uses, are in a ring of slots.
/// @threads `start`, `stop`, `wait_front` and `pop` are called by the consumer, one at a time.
class read_ahead_threads {
public:
  read_ahead_threads() = default;
  read_ahead_threads(const read_ahead_threads&) = delete;
  read_ahead_threads& operator=(const read_ahead_threads&) = delete;
  ~read_ahead_threads() { stop(); }

  [[nodiscard]] bool is_running() const noexcept { return !threads_.empty(); }
  /// Starts the threads, with item number 0 in slot 0. @pre They do not run.
  /// @errors `resource_exhausted_error` if the system cannot start a thread; none is then running.
  /// @lifetime `work` must live until `stop`.
  void start(read_ahead_work& work, const prefetch_options& options);
  /// Lets the threads finish the items in work, and joins them. All items are dropped. Does nothing if the threads do not run.
  void stop() noexcept;

  /// Blocks until the first item that was not popped is complete. Returns its slot. @pre The threads run.
  [[nodiscard]] std::size_t wait_front();
  /// Releases the slot of the first item. @pre `wait_front` was called for it.
  void pop();

private:
  void run(std::size_t worker);
  bool claim(std::size_t worker, std::uint64_t& number);
  void finish(std::uint64_t number, bool goes_on);
  [[nodiscard]] std::size_t slot_of(std::uint64_t number) const noexcept { return static_cast<std::size_t>(number % slots_); }

  static constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

  read_ahead_work* work_ = nullptr;
  std::vector<stepwell::detail::owned_thread> threads_;
  std::size_t slots_ = 1;                  // changed only while no thread runs
  stepwell::detail::checked_mutex order_;  // held by the thread that begins an item
  stepwell::detail::checked_mutex mutex_;
  std::condition_variable room_;
  std::condition_variable ready_;
  std::vector<char> is_ready_ STEPWELL_GUARDED_BY(mutex_);  // by slot
  std::uint64_t front_ STEPWELL_GUARDED_BY(mutex_) = 0;     // number of the first item that was not popped
  std::uint64_t next_ STEPWELL_GUARDED_BY(mutex_) = 0;      // number of the next item to begin
  std::uint64_t end_ STEPWELL_GUARDED_BY(mutex_) = no_end;  // there are no items from this number on
  bool is_stopping_ STEPWELL_GUARDED_BY(mutex_) = false;
};

}  // namespace detail
}  // namespace stepwell::data
