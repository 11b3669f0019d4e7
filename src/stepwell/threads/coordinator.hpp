// SPDX-License-Identifier: Apache-2.0
//
// Lets threads that serve one session stop together (contract COORD).
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/threads/coordinated_thread.hpp"
#include "stepwell/threads/exception_set.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// How `coordinator::join` waits.
struct join_options {
  clock::duration stop_grace_period = std::chrono::seconds(120);  ///< From the stop on, on the coordinator's clock.
  bool ignore_live_threads = false;                               ///< Stragglers are only logged.
  std::vector<coordinated_thread> threads = {};                   ///< To be joined besides the registered ones.
};

/// One stop for many threads, and the failure that caused it. A hook gets it in `after_create_session`.
///
///     threads.start_thread("reader", [&](std::stop_token stop) { while (!stop.stop_requested()) read_some(); });
///     ...
///     threads.request_stop();
///     threads.join();  // throws what the reader threw
///
/// Stragglers: a thread that still runs when the grace period of `join` is over is named in a log line and left running,
/// detached. What it uses must outlive it; its later failure is logged, and reaches neither this stop nor, after
/// `clear_stop`, the next one.
/// @lifetime Its address stays the same over recoveries (`clear_stop`).
/// @threads  All functions may be called from any thread.
class coordinator {
public:
  /// `clean_stops` are exceptions that ask for a stop and are no failures (COORD-1). A session's has none.
  explicit coordinator(std::shared_ptr<clock> source = system_clock(), exception_set clean_stops = {errc::out_of_range});
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;
  /// Asks for a stop and joins threads that nobody has joined, as `join` with its defaults does. Throws nothing.
  ~coordinator();

  /// Asks all to stop. The first failure is the error, later ones are kept as suppressed: a clean stop does not hide
  /// a later failure (COORD-2, D-16).
  /// @errors After `join`, `failure` itself: nobody else would hear of it.
  void request_stop(std::exception_ptr failure = nullptr);
  /// The same in a `catch`, with the exception at hand. Where there is none, an `invalid_argument_error` is the failure:
  /// whoever meant to report one must not be taken for a clean stop (COORD-10).
  void request_stop_on_current_exception();
  /// @cost One atomic load.
  [[nodiscard]] bool should_stop() const noexcept { return stop_requested_->load(std::memory_order_acquire); }
  /// Reports the present stop; after `clear_stop` it still does, and a new one must be asked for.
  [[nodiscard]] std::stop_token get_token() const;

  /// Waits for a stop (COORD-3).
  void wait_for_stop();
  /// Waits for a stop, at most until `deadline`; whether there was one.
  bool wait_for_stop(clock::time_point deadline);

  /// Makes it as new, so that a recovered session can go on with it: no stop, no failure, not joined. Threads stay
  /// registered, but tokens given out before go on reporting their stop (COORD-4).
  void clear_stop();

  /// Calls `fn`. What it throws asks for a stop and goes no further (COORD-9).
  /// @errors After `join`, what `fn` throws (COORD-2).
  template<class Function>
  void stop_on_exception(Function&& fn) {
    try {
      std::invoke(std::forward<Function>(fn));
    } catch (...) { request_stop_on_current_exception(); }
  }

  /// A registered thread of our own, not yet started: runs `fn` as in `stop_on_exception`, with the present token. A
  /// `cancelled_error` that ends it once a stop was requested is the answer to that, and no failure.
  /// @lifetime What `fn` uses must outlive the `join` of this coordinator, and stragglers.
  [[nodiscard]] coordinated_thread make_thread(std::string name, std::function<void(std::stop_token)> fn);
  /// The same, started.
  /// @errors `resource_exhausted_error` if the system has no more threads.
  coordinated_thread start_thread(std::string name, std::function<void(std::stop_token)> fn);
  /// Has a later `join` wait for `thread` too: one that somebody else started and gave a `thread_mark`. Those registered
  /// after a `join` began are left to the next one (COORD-5).
  void register_thread(coordinated_thread thread);

  /// Waits until no thread is alive, or a stop is requested, which it never does itself; then at most the grace period
  /// for those still alive, in time as the clock shows it. Threads that were never started are not waited for. Then the
  /// threads are registered no more, and the failure, if there is one, is thrown, also by later calls (COORD-6, COORD-7).
  /// @errors The failure; else, if there are stragglers that are not to be ignored, `deadline_exceeded_error`:
  ///         "Coordinator stopped with threads still running: names".
  void join(join_options options = {});
  [[nodiscard]] bool joined() const;

  /// The error: the first failure reported, else null.
  [[nodiscard]] std::exception_ptr failure() const;
  /// Those that came after it, in their order.
  [[nodiscard]] std::vector<std::exception_ptr> suppressed() const;
  /// Throws the failure, if there is one (COORD-8).
  void raise_requested_exception() const;

  /// What its waits go through.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept;

private:
  struct state;

  std::shared_ptr<state> state_;  // shared with the threads: a straggler may outlive us
  const std::atomic<bool>* stop_requested_;
};

}  // namespace stepwell
