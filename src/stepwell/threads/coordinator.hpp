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
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// A set of exceptions, given by error kinds of stepwell (`errc`) or by a predicate. Empty by default.
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

/// Handle of a thread with a name. Copies of a handle refer to the same thread. If all handles are destroyed, the thread continues to run.
/// @threads All functions may be called from any thread.
class coordinated_thread {
public:
  /// Creates a thread that runs `body` after `start`. An exception of `body` is logged and ends only this thread.
  /// @errors `invalid_argument_error` if `body` is empty.
  coordinated_thread(std::string name, std::function<void()> body);

  [[nodiscard]] const std::string& name() const noexcept;
  /// Returns true if the thread was started and has not ended. When the thread has ended, it no longer accesses the objects that `body`
  /// uses.
  [[nodiscard]] bool is_alive() const noexcept;

  /// Starts the thread.
  /// @errors `failed_precondition_error` if it was started before. `resource_exhausted_error` if the system cannot create a thread.
  void start();
  /// Blocks without a time limit until the thread has ended. Returns at once if the thread was never started.
  /// @pre Not called on the thread itself.
  void join() const;
  /// Calls `action` on the thread when the thread ends. If the thread has already ended, calls `action` at once, on the calling thread.
  /// `action` must be short and must not throw.
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

/// Registration of a thread that other code started. The mark gives the thread a name, and lets a coordinator wait for the thread. The
/// thread owns the mark while it runs.
///
///     stepwell::thread_mark mark("reader");
///     threads.register_thread(mark.thread());
///     std::thread reader([mark = std::move(mark), &] { ... });
///
/// The thread counts as alive from the construction of the mark until the destruction of the mark. The coordinator does not call
/// `std::thread::join`: the code that started the thread must do so.
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
  /// Maximum time to wait for threads after the stop, on the coordinator's clock. If the stop was requested before `join`, the time counts
  /// from the call of `join`.
  clock::duration stop_grace_period = std::chrono::seconds(120);
  bool ignore_live_threads = false;              ///< If true, threads that still run after this time are logged, and are not an error.
  std::vector<coordinated_thread> threads = {};  ///< Threads to join in addition to the registered threads.
};

/// Stops several threads together, and keeps the failure that caused the stop. A hook gets the coordinator of its session in
/// `after_create_session`.
///
///     threads.start_thread("reader", [&](std::stop_token stop) { while (!stop.stop_requested()) read_some(); });
///     ...
///     threads.request_stop();
///     threads.join();  // throws the exception of the reader
///
/// A straggler is a thread that still runs when the grace period of `join` is over. `join` detaches the straggler, and throws an error with
/// its name or logs its name. The straggler continues to run. The objects that it uses must exist until it ends. A later failure of the
/// straggler is only logged: the failure affects neither this stop nor a stop after `clear_stop`.
/// @lifetime A session uses the same coordinator object before and after a recovery, so a hook may keep a reference to the coordinator.
/// @threads  All functions may be called from any thread.
class coordinator {
public:
  /// Creates a coordinator. Exceptions in the set `clean_stops` request a stop and are not failures. For the coordinator of a session, this
  /// set is empty. All messages of the coordinator and of the threads that it makes are logged with the name `log_name`, if it is not
  /// empty; see `log_scope`.
  /// @see contract COORD-1
  explicit coordinator(std::shared_ptr<clock> source = system_clock(), exception_set clean_stops = {errc::out_of_range},
                       std::string log_name = {});
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;
  /// If threads are still registered, requests a stop and joins them, like `join` with default options, but logs instead of throwing.
  ~coordinator();

  /// Requests a stop of all threads. A null `failure` requests a clean stop. The coordinator keeps all failures, including those after a
  /// clean stop: `failure()` returns the first failure, and `suppressed()` returns the later failures.
  /// @errors After `join`, throws the exception `failure`, because no later call would report it.
  /// @see    contract COORD-2, decision D-16
  void request_stop(std::exception_ptr failure = nullptr);
  /// Requests a stop with the current exception. Call it in a `catch` block. Without a current exception, the failure is an
  /// `invalid_argument_error`, so that this mistake does not look like a clean stop.
  /// @errors Like `request_stop`.
  /// @see    contract COORD-10
  void request_stop_on_current_exception();
  /// Returns true if a stop was requested.
  /// @cost One atomic load.
  [[nodiscard]] bool should_stop() const noexcept { return stop_requested_->load(std::memory_order_acquire); }
  /// Returns a token that reports a stop, whether the stop was requested before this call or is requested later. After `clear_stop`, the
  /// token still reports the earlier stop. To observe a later stop, get a new token after `clear_stop`.
  [[nodiscard]] std::stop_token get_token() const;

  /// Blocks until a stop is requested, or until `clear_stop` is called.
  /// @see contract COORD-3
  void wait_for_stop();
  /// Like `wait_for_stop()`, but blocks no longer than until `deadline`. Returns false if the deadline is reached before one of these
  /// events.
  bool wait_for_stop(clock::time_point deadline);

  /// Resets the coordinator for a recovered session: there is no stop and no failure, and `joined()` returns false. Threads stay
  /// registered. Tokens from before this call still report the earlier stop.
  /// @see contract COORD-4
  void clear_stop();

  /// Calls `fn`. If `fn` throws, requests a stop with the exception and returns normally.
  /// @errors After `join`, the exception of `fn`.
  /// @see    contract COORD-2, COORD-9
  template<class Function>
  void stop_on_exception(Function&& fn) {
    try {
      std::invoke(std::forward<Function>(fn));
    } catch (...) { request_stop_on_current_exception(); }
  }

  /// Creates and registers a thread without starting it. The thread calls `fn` with the token that `get_token` returns now. An exception of
  /// `fn` requests a stop, as in `stop_on_exception`. If `fn` throws a `cancelled_error` after a stop was requested, it is not a failure.
  /// @lifetime Objects that `fn` uses must exist until `join` of this coordinator has returned. If the thread is a straggler, these objects
  ///           must exist until the thread ends.
  [[nodiscard]] coordinated_thread make_thread(std::string name, std::function<void(std::stop_token)> fn);
  /// Creates, registers and starts a thread, like `make_thread`.
  /// @errors `resource_exhausted_error` if the system cannot create a thread.
  coordinated_thread start_thread(std::string name, std::function<void(std::stop_token)> fn);
  /// Registers a thread of a `thread_mark`, or a `coordinated_thread` that was not made by this coordinator. A later `join` waits for the
  /// thread. A `join` that has already begun does not wait for it.
  /// @see contract COORD-5
  void register_thread(coordinated_thread thread);

  /// Blocks until no thread is alive or a stop is requested. Then waits for the threads that are still alive, but not longer than the grace
  /// period. `join` itself never requests a stop. Time is measured on the coordinator's clock. Threads that were never started are ignored.
  /// When `join` returns or throws, the threads for which it waited are no longer registered.
  /// @errors The failure that `failure()` returns, if there is one; later calls of `join` throw it again. `deadline_exceeded_error`
  ///         "Coordinator stopped with threads still running: names", if there is no failure, but there are stragglers, and
  ///         `ignore_live_threads` is false.
  /// @see    contract COORD-6, COORD-7
  void join(join_options options = {});
  /// Ends the grace period of each `join` at `until` at the latest, also of a `join` that is waiting.
  /// @threads Any.
  void limit_joins(clock::time_point until);
  /// Returns true after `join`, until `clear_stop`.
  [[nodiscard]] bool joined() const;

  /// Returns the first reported failure, or null.
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

}  // namespace stepwell
