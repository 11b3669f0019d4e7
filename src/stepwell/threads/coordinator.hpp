// SPDX-License-Identifier: Apache-2.0
//
// The threads of one session, and the coordinator that stops them together and keeps their failures.
// @see contract COORD, LOOP
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// A set of exceptions, given by error kinds of this library or by a predicate. Empty by default.
class exception_set {
public:
  /// Predicate that returns true for exceptions in the set. If it throws, the result counts as false.
  using predicate = std::function<bool(const std::exception_ptr&)>;

  exception_set() = default;
  exception_set(std::initializer_list<errc> kinds) : kinds_(kinds) {}
  explicit exception_set(predicate says_yes) : says_yes_(std::move(says_yes)) {}

  [[nodiscard]] bool empty() const noexcept { return kinds_.empty() && !says_yes_; }
  /// Returns true if the set contains `failure`.
  /// @pre `failure` is not null.
  [[nodiscard]] bool contains(const std::exception_ptr& failure) const noexcept;

private:
  std::vector<errc> kinds_;
  predicate says_yes_;
};

namespace detail {
struct thread_record;
}

/// Handle of a thread with a name. Copies refer to the same thread. Destroying all copies neither stops nor joins the thread.
/// @threads All functions may be called from any thread.
class coordinated_thread {
public:
  /// Creates a thread that runs `body` after `start`. An exception of `body` is logged and ends only this thread.
  /// @errors `invalid_argument_error` if `body` is empty.
  coordinated_thread(std::string name, std::function<void()> body);

  [[nodiscard]] const std::string& name() const noexcept;
  /// Returns true if the thread was started and has not ended. After it returns false, the thread no longer accesses the objects
  /// that `body` uses.
  [[nodiscard]] bool is_alive() const noexcept;

  /// Starts the thread.
  /// @errors `failed_precondition_error` if it was started before. `resource_exhausted_error` if the system cannot create a thread.
  void start();
  /// Blocks without a time limit until the thread has ended. Returns at once if it was never started.
  /// @pre Not called on the thread itself.
  void join() const;
  /// Calls `action` on the thread when the thread ends, or at once if it has ended. `action` must be short and must not throw.
  void on_end(std::function<void()> action);

  friend bool operator==(const coordinated_thread&, const coordinated_thread&) = default;

private:
  friend class coordinator;
  friend class thread_mark;
  explicit coordinated_thread(std::shared_ptr<detail::thread_record> record) noexcept;
  [[nodiscard]] bool has_ended() const noexcept;
  /// Detaches the system's thread, so that it needs no join.
  void detach_waiter() const;

  std::shared_ptr<detail::thread_record> record_;
};

/// Registration of a thread that other code started. The thread owns the mark while it runs. The mark gives the thread a name, and
/// a coordinator can wait for it.
///
///     stepwell::thread_mark mark("reader");
///     threads.register_thread(mark.thread());
///     std::thread reader([mark = std::move(mark), &] { ... });
///
/// The thread counts as alive from the construction of the mark until its destruction. The code that started the thread must still join it.
class thread_mark {
public:
  explicit thread_mark(std::string name);
  thread_mark(thread_mark&&) noexcept = default;
  thread_mark& operator=(thread_mark&&) = delete;
  ~thread_mark();

  /// @pre Not moved from.
  [[nodiscard]] coordinated_thread thread() const { return coordinated_thread(record_); }

private:
  std::shared_ptr<detail::thread_record> record_;
};

/// Options of `coordinator::join`.
struct join_options {
  clock::duration stop_grace_period = std::chrono::seconds(120);  ///< Time after the stop, on the coordinator's clock.
  bool ignore_live_threads = false;                               ///< Whether stragglers are only logged.
  std::vector<coordinated_thread> threads = {};                   ///< Threads to join in addition to the registered ones.
};

/// One stop request for many threads, and the failure that caused it. A hook gets the coordinator in `after_create_session`.
///
///     threads.start_thread("reader", [&](std::stop_token stop) { while (!stop.stop_requested()) read_some(); });
///     ...
///     threads.request_stop();
///     threads.join();  // throws the exception of the reader
///
/// A straggler is a thread that still runs when the grace period of `join` is over. It is named in a log line, detached, and
/// continues to run. The objects it uses must outlive it. Its later failure is only logged; it affects neither this stop nor, after
/// `clear_stop`, the next one.
/// @lifetime The address of a session's coordinator stays the same over recoveries (`clear_stop`).
/// @threads  All functions may be called from any thread.
class coordinator {
public:
  /// Creates a coordinator. Exceptions in `clean_stops` request a stop and are not failures. The coordinator of a session has none.
  /// @see contract COORD-1
  explicit coordinator(std::shared_ptr<clock> source = system_clock(), exception_set clean_stops = {errc::out_of_range});
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;
  /// If threads are still registered, requests a stop and joins them, like `join` with default options. Logs instead of throwing.
  ~coordinator();

  /// Requests a stop of all threads. The first failure is kept as the error; later failures are kept as suppressed. A clean stop
  /// does not hide a later failure.
  /// @errors After `join`, throws `failure` itself, because no later call would report it.
  /// @see    contract COORD-2, decision D-16
  void request_stop(std::exception_ptr failure = nullptr);
  /// Requests a stop with the current exception; for use in a `catch` block. If there is no current exception, the failure is an
  /// `invalid_argument_error`, so that this mistake is not taken for a clean stop.
  /// @errors Like `request_stop`.
  /// @see    contract COORD-10
  void request_stop_on_current_exception();
  /// Returns true if a stop was requested.
  /// @cost One atomic load.
  [[nodiscard]] bool should_stop() const noexcept { return stop_requested_->load(std::memory_order_acquire); }
  /// Returns a token for the current stop. After `clear_stop` the token still reports that stop; a new token is needed for the next one.
  [[nodiscard]] std::stop_token get_token() const;

  /// Blocks until a stop is requested or cleared.
  /// @see contract COORD-3
  void wait_for_stop();
  /// Like `wait_for_stop()`, but blocks no longer than until `deadline`. Returns false if the deadline was reached first.
  bool wait_for_stop(clock::time_point deadline);

  /// Resets the coordinator for a recovered session: no stop, no failure, not joined. Threads stay registered. Tokens returned
  /// before still report their stop.
  /// @see contract COORD-4
  void clear_stop();

  /// Calls `fn`. An exception of `fn` requests a stop and is not passed on.
  /// @errors After `join`, the exception of `fn`.
  /// @see    contract COORD-2, COORD-9
  template<class Function>
  void stop_on_exception(Function&& fn) {
    try {
      std::invoke(std::forward<Function>(fn));
    } catch (...) { request_stop_on_current_exception(); }
  }

  /// Creates and registers a thread without starting it. The thread calls `fn` with the current token; an exception requests a
  /// stop, as in `stop_on_exception`. A `cancelled_error` after a stop was requested is not a failure.
  /// @lifetime Objects that `fn` uses must outlive the `join` of this coordinator, and any straggler.
  [[nodiscard]] coordinated_thread make_thread(std::string name, std::function<void(std::stop_token)> fn);
  /// Creates, registers and starts a thread, like `make_thread`.
  /// @errors `resource_exhausted_error` if the system cannot create a thread.
  coordinated_thread start_thread(std::string name, std::function<void(std::stop_token)> fn);
  /// Registers a thread that other code started and that has a `thread_mark`. A later `join` waits for it. A `join` that has
  /// already begun does not.
  /// @see contract COORD-5
  void register_thread(coordinated_thread thread);

  /// Blocks until no thread is alive or a stop is requested, then waits at most the grace period for the threads that are still
  /// alive. `join` itself never requests a stop. Time is measured on the coordinator's clock. Threads that were never started are
  /// not waited for. Afterwards the threads are no longer registered. Throws the failure, if any; later calls throw it again.
  /// @errors The failure. If there is none and stragglers are not ignored, `deadline_exceeded_error`: "Coordinator stopped with
  ///         threads still running: names".
  /// @see    contract COORD-6, COORD-7
  void join(join_options options = {});
  /// Returns true after `join`, until `clear_stop`.
  [[nodiscard]] bool joined() const;

  /// Returns the error, which is the first reported failure, or null.
  [[nodiscard]] std::exception_ptr failure() const;
  /// Returns the failures after the first one, in order.
  [[nodiscard]] std::vector<std::exception_ptr> suppressed() const;
  /// Throws the failure, if any.
  /// @see contract COORD-8
  void raise_requested_exception() const;

  /// Returns the clock used for waiting.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept;

private:
  struct state;

  std::shared_ptr<state> state_;  // shared with the threads: a straggler may outlive the coordinator
  const std::atomic<bool>* stop_requested_;
};

/// Options of a `looper_thread`.
struct looper_options {
  std::string name = "LooperThread";
  std::function<void()> start_loop = nullptr;  ///< Called once on the thread, before the first call.
  std::function<void()> stop_loop = nullptr;   ///< Called once on the thread, after the last call; not after a failure.
};

/// Calls a function until its coordinator is stopped. The first call is made at once, later calls at start + k * interval on the
/// coordinator's clock. A late call does not shift the others; overdue calls are made one after the other. Without an interval the
/// function is called in a loop without pause. An exception of the function requests a stop.
///
///     auto looper = stepwell::looper_thread::loop(threads, 10s, [&] { report(); });
/// @lifetime The coordinator must outlive the thread; its `join` waits for the thread.
/// @see      contract LOOP-1
class looper_thread {
public:
  /// Creates and registers the thread without starting it.
  /// @errors `invalid_argument_error` if there is no function or the interval is negative.
  looper_thread(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop, looper_options options = {});

  /// Starts the thread.
  /// @errors Like `coordinated_thread::start`.
  void start() { thread_.start(); }
  /// Creates a looper and starts it.
  static looper_thread loop(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop,
                            looper_options options = {});

  [[nodiscard]] const coordinated_thread& thread() const noexcept { return thread_; }

private:
  coordinated_thread thread_;
};

}  // namespace stepwell
