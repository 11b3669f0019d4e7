// SPDX-License-Identifier: Apache-2.0
//
// The threads that do the input and output. Asio runs them and stays behind the wall: `pool_executor.hpp` shows it to
// those who want an executor.
#pragma once

#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>

namespace stepwell::io {

/// A few threads that run jobs, in no particular order. Own threads, never the user's executor: whoever closes on the
/// user's thread would else wait for itself.
/// @threads Any.
class pool {
public:
  struct implementation;  ///< an Asio io_context with threads; see pool_executor.hpp

  /// Starts the threads.
  /// @errors `resource_exhausted_error` if the system refuses one of them; then none is left.
  explicit pool(std::size_t threads = 2);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  /// `join`, unless on one of its own threads: then the threads end by themselves once they have no more to do.
  ~pool();

  /// Runs `job` soon on one of the threads; at once on this one if the pool is joined. An exception that leaves it is
  /// logged and dropped.
  void post(std::function<void()> job);

  /// Awaited by a coroutine, goes on with it on one of the threads; on this one if the pool is joined.
  [[nodiscard]] auto schedule() noexcept { return hop(*this); }

  /// Waits until all posted jobs have run, and ends the threads. The second call does nothing.
  /// @pre Not on one of its own threads.
  void join();

  /// True on one of the threads.
  [[nodiscard]] bool running_in_this_thread() const noexcept;

  [[nodiscard]] implementation& native() noexcept { return *threads_; }

  /// The pool of the process, two threads, made at the first call and never joined: whoever has jobs on it must wait
  /// for them before the process ends.
  /// @errors As the constructor; the next call tries again.
  [[nodiscard]] static std::shared_ptr<pool> shared();

private:
  struct hop {
    explicit hop(pool& to) noexcept : to_(&to) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiting) const { return to_->resume_soon(waiting); }
    void await_resume() const noexcept {}
    pool* to_;
  };
  /// False if the pool is joined.
  bool resume_soon(std::coroutine_handle<> waiting);

  std::shared_ptr<implementation> threads_;
};

}  // namespace stepwell::io
