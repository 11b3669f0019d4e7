// SPDX-License-Identifier: Apache-2.0
//
// Threads for work that would block an event loop: disk access, long copies, and waits for other threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace stepwell::coro {

/// A set of threads for jobs that may block. Threads are started as needed, and at most `limit` are kept. At most `limit` jobs run at a
/// time, not counting those that are in an `observed_wait` (see base/detail/thread.hpp): while a job waits, another thread takes its place,
/// unless the system cannot start one. A job that waits in another way for code that may itself need a job must run on its own thread
/// (`post_apart`). Otherwise many such jobs could occupy all threads and deadlock.
/// @threads All functions may be called from any thread.
class helper_threads {
public:
  explicit helper_threads(std::size_t limit);
  helper_threads(const helper_threads&) = delete;
  helper_threads& operator=(const helper_threads&) = delete;
  /// Discards the jobs that have not begun. Does not wait for the threads; each thread ends after its current job.
  ~helper_threads();

  /// Runs `job` on one of the threads, as soon as a thread is free. `job` must not throw.
  /// @errors `resource_exhausted_error` if there is no thread yet and the system cannot start one.
  void post(std::function<void()> job);
  /// Runs `job` on a new thread that ends with the job. `job` must not throw.
  /// @errors `resource_exhausted_error` if the system cannot start another thread.
  void post_apart(std::function<void()> job);

  /// Returns the threads of the process for work that may call a file system, with a limit of 16. They are never joined, so code that
  /// posts a job must wait for it before the process ends.
  [[nodiscard]] static helper_threads& shared();
  /// Like `shared`, but returns other threads, for work that calls no file system, such as copies. It is not delayed by a slow disk.
  [[nodiscard]] static helper_threads& for_copies();

private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace stepwell::coro
