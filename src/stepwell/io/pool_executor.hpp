// SPDX-License-Identifier: Apache-2.0
//
// The pool as an Asio executor, for those who already include Asio.
#pragma once

#include "stepwell/base/thread_name.hpp"
#include "stepwell/io/pool.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace stepwell::io {

struct pool::implementation {
  explicit implementation(std::size_t count) : threads(count) {}

  /// Hands `job` to the threads; false if they will take no more.
  template<class Job>
  bool try_post(Job&& job) {
    const std::lock_guard lock(mutex);
    if (is_joined) { return false; }
    boost::asio::post(threads, [this, job = std::forward<Job>(job)]() mutable {
      name_this_thread();
      job();
    });
    return true;
  }
  /// "stepwell io 0" the first that has a job, then "stepwell io 1", ...
  void name_this_thread() {
    thread_local bool is_named = false;
    if (!std::exchange(is_named, true)) { set_thread_name("stepwell io " + std::to_string(named++)); }
  }
  void join() {
    {
      const std::lock_guard lock(mutex);
      is_joined = true;
    }
    threads.join();
  }

  boost::asio::thread_pool threads;
  std::mutex mutex;
  bool is_joined = false;
  std::atomic<int> named = 0;
};

/// Runs what is given to it on the threads of `threads`.
/// @lifetime As long as the pool.
[[nodiscard]] inline boost::asio::thread_pool::executor_type executor_of(pool& threads) { return threads.native().threads.get_executor(); }

}  // namespace stepwell::io
