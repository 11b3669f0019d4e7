// SPDX-License-Identifier: Apache-2.0
//
// Handle of a thread: its name and whether it still runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace stepwell {

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
/// The thread counts as alive from the construction of the mark until its destruction. The code that started the thread must still
/// join it.
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

}  // namespace stepwell
