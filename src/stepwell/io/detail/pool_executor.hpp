// SPDX-License-Identifier: Apache-2.0
//
// The pool as an Asio executor, for those who already include Asio.
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

/// Not Asio's `thread_pool`, whose constructor waits for ever if the system refuses one of its threads. Each thread holds a
/// reference to this, so that the last job may drop the pool.
struct pool::implementation {
  explicit implementation(std::size_t count) : context(static_cast<int>(count)), work(context.get_executor()) {}

  /// Hands `job` to the threads; false if they will take no more.
  template<class Job>
  bool try_post(Job&& job) {
    const std::lock_guard lock(mutex);
    if (is_joined) { return false; }
    boost::asio::post(context, std::forward<Job>(job));
    return true;
  }
  /// The threads end once they have run all jobs; no more are taken.
  void take_no_more() {
    const std::lock_guard lock(mutex);
    is_joined = true;
    work.reset();
  }

  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::mutex mutex;
  bool is_joined = false;
  std::vector<std::thread> threads;  // joined or detached by the pool
};

/// Runs what is given to it on the threads of `threads`.
/// @lifetime As long as the pool.
[[nodiscard]] inline boost::asio::io_context::executor_type executor_of(pool& threads) { return threads.native().context.get_executor(); }

}  // namespace stepwell::io
