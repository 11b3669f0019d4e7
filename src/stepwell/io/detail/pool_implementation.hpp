// SPDX-License-Identifier: Apache-2.0
//
// The implementation of a pool, with Asio.
#pragma once

#include "stepwell/io/pool.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stepwell::io {

/// The implementation of a pool. Asio's `thread_pool` is unsuitable: its constructor waits forever if the system fails to start a thread.
/// Each thread holds a shared pointer to the implementation, so that the last job may destroy the pool.
struct pool::implementation {
  explicit implementation(std::size_t count) : context(static_cast<int>(count)), work(context.get_executor()) {}

  /// Queues `job` for the threads. Returns false if the pool no longer accepts jobs.
  template<class Job>
  bool try_post(Job&& job) {
    const std::lock_guard lock(mutex);
    if (is_joined) { return false; }
    boost::asio::post(context, std::forward<Job>(job));
    return true;
  }
  /// Makes `try_post` reject further jobs. The threads end after they have run all queued jobs.
  void take_no_more() {
    const std::lock_guard lock(mutex);
    is_joined = true;
    work.reset();
  }

  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::mutex mutex;
  bool is_joined = false;
  std::vector<std::thread> threads;  // the pool joins or detaches them
};

}  // namespace stepwell::io
