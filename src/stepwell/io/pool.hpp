// SPDX-License-Identifier: Apache-2.0
//
// A thread pool for input and output.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace stepwell::io {

/// A pool of threads that run jobs in an unspecified order. The pool has its own threads and never uses the user's executor: a session that
/// closes on a thread of that executor blocks the thread, and would deadlock.
/// @threads All functions may be called from any thread.
class pool {
public:
  /// Starts the threads.
  /// @errors `resource_exhausted_error` if the system cannot start one of the threads. All threads have then ended.
  explicit pool(std::size_t threads = 2);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  /// Calls `join`. If the destructor runs on a thread of the pool, it does not wait: the threads end after they have run all jobs.
  ~pool();

  /// Queues `job` for one of the threads. After `join`, runs `job` on the calling thread instead. Exceptions of `job` are logged and
  /// dropped. Messages that `job` logs have the name of the caller's `log_scope`.
  void post(std::function<void()> job);

  /// Calls `work` on the calling thread, and at the same time on threads of the pool that are idle. Returns when all calls have returned. Does
  /// not wait for threads that have not begun their call. `work` divides the work among its calls, for example by an atomic counter, and
  /// returns when nothing is left. It must not throw.
  /// @cost Allocates nothing.
  void share(function_ref<void()> work);

  /// Blocks until all posted jobs have run, and ends the threads. The second call does nothing.
  /// @pre The calling thread is not a thread of the pool.
  void join();

  /// Returns true if the calling thread is a thread of the pool.
  [[nodiscard]] bool running_in_this_thread() const noexcept;

  /// Returns the pool of the process, which has two threads and is created by the first call. It is never joined, so code that posts jobs
  /// must wait for them before the process ends.
  /// @errors The errors of the constructor. After an error, the next call tries again.
  [[nodiscard]] static std::shared_ptr<pool> shared();

private:
  struct core;

  std::shared_ptr<core> core_;  // shared with the threads
};

}  // namespace stepwell::io
