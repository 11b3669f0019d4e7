// SPDX-License-Identifier: Apache-2.0
//
// All works that hooks have registered with a session, and the operations on all of them. If a work fails, the others are still called.
#pragma once

#include "stepwell/protocol/detail/boundary_work.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace stepwell {

/// The works of one session.
/// @lifetime `signals` must outlive it.
/// @threads The session's thread, except `report`.
class boundary_works {
public:
  explicit boundary_works(session_signals& signals) noexcept : signals_(signals) {}
  boundary_works(const boundary_works&) = delete;
  boundary_works& operator=(const boundary_works&) = delete;

  /// Registers `work`, whose functions the session calls from now on. Does nothing if it is registered.
  void add(std::shared_ptr<boundary_work> work);
  /// Like `add`, for the work of an object at the address `thing`. `make` is called once; the work is kept over recoveries.
  template<class Make>
  void add_for(const void* thing, Make&& make) {
    auto& kept = kept_[thing];
    if (!kept) { kept = std::forward<Make>(make)(); }
    add(kept);
  }
  /// Returns true for the first call with `thing` after each creation of the session.
  [[nodiscard]] bool claim(const void* thing);

  /// Begins a creation of the session: hooks register their works again. Until `end_creation`, the previous works are still drained and
  /// flushed, too. Drops claims.
  void begin_creation();
  void end_creation() noexcept;

  /// Returns the works that were registered since the last creation began, in the order of their registration.
  [[nodiscard]] const std::vector<std::shared_ptr<boundary_work>>& registered() const noexcept { return works_; }

  /// Commits or discards the states that works hold, see `boundary_work::end_body`. Called when the next operation begins.
  void end_body() noexcept {
    if (signals_.take_held()) [[unlikely]] { end_body_of_all(); }
  }
  /// Discards the states that works hold.
  void drop_held() noexcept;

  /// Processes the events of background work. @errors The first failure of the background work.
  void process_events();
  /// Calls `write_records` of all works.
  void write_records() const {
    for (const auto& work : works_) { work->write_records(); }
  }
  /// Starts the flush of all works. Returns a function that blocks until the flush is done; empty if there is nothing to flush.
  /// @see `boundary_work::start_flush`
  [[nodiscard]] std::function<void()> start_flush() const;
  /// Calls `end_trace` of all works. Failures are logged.
  void end_trace() const noexcept;
  /// Blocks until the pending work is done, at most until `until`. A recovery calls this function first, so that no newer checkpoint
  /// appears after it has chosen one.
  /// @errors The first failure of the pending work.
  /// @see D-2
  void drain(const deadline& until);
  /// Waits for all works, writes how the session ended, then flushes all works. Called at the close. If draining fails, the session has
  /// failed, regardless of `ending`.
  /// @errors The first failure.
  void drain_and_flush(const deadline& until, run_ending ending);
  /// Detaches all works, which finish in the background. Called when the session is abandoned. Failures so far are logged.
  void detach() noexcept;
  /// Makes every work keep `hold` until all files that it has locked are released.
  void hold_until_released(const std::shared_ptr<void>& hold) const;

  /// Adds the metrics of all works to `all`. @threads Any.
  void report(session_metrics& all) const;
  /// Returns the values that the works have measured, in the order in which the works were registered.
  [[nodiscard]] std::vector<history_value> history() const;

private:
  void end_body_of_all() noexcept;
  [[nodiscard]] std::vector<std::shared_ptr<boundary_work>> all() const;

  session_signals& signals_;
  mutable std::mutex mutex_;  // other threads read the works; the session's thread locks it to change them
  std::vector<std::shared_ptr<boundary_work>> works_;
  std::vector<std::shared_ptr<boundary_work>> former_;  // of the previous creation, until the next one has ended
  std::map<const void*, std::shared_ptr<boundary_work>> kept_;
  std::vector<const void*> claimed_;
};

}  // namespace stepwell
