// SPDX-License-Identifier: Apache-2.0
//
// A thread pool for input and output.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace stepwell::io {

/// A pool of threads that run jobs in an unspecified order. The pool has its own threads and never runs jobs on an executor of the program.
/// The reason: a session may be closed on a thread of that executor, and blocks this thread until its jobs have run. It would deadlock if
/// the jobs needed the same thread.
/// @threads All functions may be called from any thread.
class pool {
public:
  /// Starts the threads.
  /// @errors `resource_exhausted_error` if the system cannot start one of the threads. All threads have then ended.
  explicit pool(std::size_t threads = 2);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  /// Like `join`. But if the destructor runs on a thread of the pool, it does not wait for this thread, which ends after all jobs have run.
  ~pool();

  /// Queues `job` for one of the threads. After `join`, runs `job` on the calling thread instead. Exceptions of `job` are logged and
  /// dropped. Messages that `job` logs have the name of the `log_scope` in which `post` was called.
  void post(std::function<void()> job);

  /// Calls `work` on the calling thread, and at the same time on threads of the pool that are idle. Returns when all calls that have begun
  /// have returned; no further call begins then. Each call of `work` takes a share of the work, for example by an atomic counter, and
  /// returns when no work is left. `work` must not throw.
  /// @cost Allocates nothing.
  void share(function_ref<void()> work);

  /// Blocks until all posted jobs have run, and ends the threads. The second call does nothing.
  /// @pre The calling thread is not a thread of the pool.
  void join();

  /// Returns true if the calling thread is a thread of the pool.
  [[nodiscard]] bool running_in_this_thread() const noexcept;

  /// Returns the pool of the process, which has two threads and is created by the first call. This pool is never joined, so code that posts
  /// jobs to it must wait for these jobs before the process ends.
  /// @errors The errors of the constructor. After an error, the next call tries again.
  [[nodiscard]] static std::shared_ptr<pool> shared();

private:
  struct core;

  std::shared_ptr<core> core_;  // shared with the threads
};

}  // namespace stepwell::io
