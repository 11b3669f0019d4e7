// SPDX-License-Identifier: Apache-2.0
//
// Threads for work that would block an event loop: disk access, long copies, and waits for other threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace stepwell::coro {

/// A set of threads for jobs that may block. Threads are started as needed, at most `limit`, and are kept. A job that waits for code
/// that may itself need a job must run on its own thread (`post_apart`). Otherwise many such jobs could occupy all threads and deadlock.
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

  /// Returns the threads shared by the process, at most 16. They are never joined, so code that posts a job must wait for it before the
  /// process ends.
  [[nodiscard]] static helper_threads& shared();

private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace stepwell::coro
