// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library: their start, the names and ids that logs and timelines show, and their waits.
#pragma once

#include "stepwell/base/detail/owner_process.hpp"
#include "stepwell/base/error.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace stepwell {

namespace detail {

/// A thread of the library.
class owned_thread {
public:
  owned_thread() noexcept = default;
  explicit owned_thread(std::thread running) noexcept : thread_(std::move(running)) {}

  [[nodiscard]] bool joinable() const noexcept { return thread_.joinable(); }
  [[nodiscard]] std::thread::id get_id() const noexcept { return thread_.get_id(); }
  /// Blocks until the thread has ended. Returns at once in a child process made by `fork`, in which the thread does not exist.
  void join() {
    if (owner_.is_this_process()) { return thread_.join(); }
    [[maybe_unused]] const auto* const left = new std::thread(std::move(thread_));  // can be neither joined nor detached there
  }  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): lost on purpose
  void detach() { thread_.detach(); }

private:
  std::thread thread_;
  owner_process owner_;
};

/// Starts a thread that calls `body`. `name` is used in the error message only.
/// @errors `resource_exhausted` if the system cannot start another thread.
[[nodiscard]] result<owned_thread> start_thread(std::string_view name, std::function<void()> body);

/// Receives the waits of the threads that have it as their observer, so that other threads can do other work meanwhile.
/// @threads Each function is called on the thread that waits, which may hold locks.
class wait_observer {
public:
  wait_observer() = default;
  wait_observer(const wait_observer&) = delete;
  wait_observer& operator=(const wait_observer&) = delete;

  virtual void begin_wait() noexcept = 0;
  virtual void end_wait() noexcept = 0;

protected:
  ~wait_observer() = default;
};

/// Sets the observer of this thread. @lifetime `observer` must outlive the thread.
void observe_waits_of_this_thread(wait_observer& observer) noexcept;

/// A guard for a wait that may be long: a wait for a disk, or for another thread or session. Notifies the observer of the thread, if it has
/// one. The waits of a `clock` have a guard.
class observed_wait {
public:
  observed_wait() noexcept;
  observed_wait(const observed_wait&) = delete;
  observed_wait& operator=(const observed_wait&) = delete;
  ~observed_wait();
};

/// Calls `action` in a thread of its own and waits for its end, at most `limit`. Returns false if it still runs then. The thread goes on,
/// so `action` must own everything that it uses. If no thread can be started, calls it in this thread, without a limit. `name` is used in
/// error messages only.
/// @pre `action` does not throw.
[[nodiscard]] bool ends_within(std::chrono::milliseconds limit, std::string_view name, std::function<void()> action);

}  // namespace detail

/// Sets the name of this thread. The name is valid until the next call or the end of the thread. Does not change the name that the
/// operating system shows.
void set_thread_name(std::string_view name);

/// Returns the name set by `set_thread_name`, or a name made from the id, such as "thread 3".
[[nodiscard]] std::string current_thread_name();

/// Returns the id of this thread: a small number, unique among all past and present threads of this process. The first thread that calls
/// this function gets 1, the next 2, and so on.
[[nodiscard]] std::uint32_t current_thread_id() noexcept;

}  // namespace stepwell
