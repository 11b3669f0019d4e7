// SPDX-License-Identifier: Apache-2.0
//
// A thread as others see it: what it is called, and whether it still runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace stepwell {

namespace detail {
struct thread_record;
}

/// A thread with a name. Copies stand for the same thread; dropping them all neither stops nor waits for it.
/// @threads All functions may be called from any thread.
class coordinated_thread {
public:
  /// A thread that runs `body` once it is started. What `body` throws is logged, and ends this thread only.
  /// @errors `invalid_argument_error` if there is no body.
  coordinated_thread(std::string name, std::function<void()> body);

  [[nodiscard]] const std::string& name() const noexcept;
  /// Started, and not yet at its end. What the body refers to is not touched once this is false.
  [[nodiscard]] bool is_alive() const noexcept;

  /// @errors `failed_precondition_error` if it was started before; `resource_exhausted_error` if the system has no more.
  void start();
  /// Waits, for as long as it takes, until it is not alive; at once if it was never started.
  /// @pre Not called on the thread itself.
  void join() const;
  /// Calls `action` at the end of the thread, on it; at once if it has ended. It must be short and must not throw.
  void on_end(std::function<void()> action);

  friend bool operator==(const coordinated_thread&, const coordinated_thread&) = default;

private:
  friend class coordinator;
  friend class thread_mark;
  explicit coordinated_thread(std::shared_ptr<detail::thread_record> record) noexcept;
  [[nodiscard]] bool has_ended() const noexcept;
  /// Nobody will wait for the system's thread any more: it cleans up after itself.
  void leave_behind() const;

  std::shared_ptr<detail::thread_record> record_;
};

/// Held by a thread that somebody else started, for as long as it runs: gives it a name by which a coordinator can wait.
///
///     stepwell::thread_mark mark("reader");
///     threads.register_thread(mark.thread());
///     std::thread reader([mark = std::move(mark), &] { ... });
///
/// The thread counts as alive from here on, until the mark is destroyed. Who started it still joins it.
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
