// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/pool.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/log.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stepwell::io {
namespace {

thread_local const void* pool_of_this_thread = nullptr;

void run_guarded(const std::function<void()>& job) noexcept {
  try {
    job();
  } catch (...) {
    log_error("a background job ended with an exception, which is dropped: " + stepwell::detail::text_of(std::current_exception()));
  }
}

/// A call of `pool::share`. Guarded by the mutex of the pool.
struct shared_call {
  function_ref<void()> work;
  std::size_t running = 0;  ///< Threads of the pool that run `work`.
  shared_call* next = nullptr;
};

}  // namespace

/// Each thread holds a reference to the core, so that the last job may destroy the pool.
struct pool::core {
  /// Queues `job` for the threads and empties it. Returns false if the pool no longer accepts jobs.
  bool try_post(std::function<void()>& job) {
    const stepwell::detail::mutex_lock lock(mutex);
    if (is_joined) { return false; }
    jobs.push_back(std::move(job));
    changed.notify_one();
    return true;
  }

  /// Makes `try_post` reject further jobs. The threads end after they have run all queued jobs.
  void take_no_more() {
    const stepwell::detail::mutex_lock lock(mutex);
    is_joined = true;
    changed.notify_all();
  }

  void run() {
    pool_of_this_thread = this;
    stepwell::detail::mutex_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this]() STEPWELL_HOLDS(mutex) { return is_joined || !jobs.empty() || calls != nullptr; });
      if (jobs.empty() && calls != nullptr) {
        help(*calls);
        continue;
      }
      if (jobs.empty()) { return; }
      auto job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      run_guarded(job);
      job = nullptr;  // without the lock, because the destructors of the job may call the pool
      lock.lock();
    }
  }

  /// Runs the work of `call` on a thread of the pool.
  void help(shared_call& call) STEPWELL_HOLDS(mutex) {
    ++call.running;
    {
      const stepwell::detail::mutex_unlock unlocked(mutex);
      call.work();
    }
    unlink(call);  // nothing is left to do
    if (--call.running == 0) { helped.notify_all(); }
  }

  void share(function_ref<void()> work) {
    shared_call call{work};
    {
      const stepwell::detail::mutex_lock lock(mutex);
      call.next = std::exchange(calls, &call);
      changed.notify_all();
    }
    work();
    stepwell::detail::mutex_lock lock(mutex);
    unlink(call);
    helped.wait(lock, [&call] { return call.running == 0; });
  }

  /// Removes `call` from the list, if it is there.
  void unlink(const shared_call& call) noexcept STEPWELL_HOLDS(mutex) {
    for (auto** at = &calls; *at != nullptr; at = &(*at)->next) {
      if (*at == &call) {
        *at = call.next;
        return;
      }
    }
  }

  stepwell::detail::checked_mutex mutex;
  std::condition_variable changed;
  std::condition_variable helped;
  shared_call* calls STEPWELL_GUARDED_BY(mutex) = nullptr;  // calls of `share` that idle threads may join
  std::deque<std::function<void()>> jobs STEPWELL_GUARDED_BY(mutex);
  bool is_joined STEPWELL_GUARDED_BY(mutex) = false;
  std::vector<stepwell::detail::owned_thread> threads;  // the pool joins or detaches them
};

pool::pool(std::size_t threads) : core_(std::make_shared<core>()) {
  core_->threads.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    const auto name = "stepwell io " + std::to_string(i);
    auto started = stepwell::detail::start_thread(name, [name, kept = core_] {
      set_thread_name(name);
      kept->run();
    });
    if (!started) { join(); }
    core_->threads.push_back(value_or_throw(std::move(started)));
  }
}

pool::~pool() {
  core_->take_no_more();
  for (auto& thread : core_->threads) { running_in_this_thread() ? thread.detach() : thread.join(); }
  core_->threads.clear();
}

void pool::post(std::function<void()> job) {
  if (!log_name().empty()) {
    job = [name = log_name(), job = std::move(job)] {
      const log_scope named(name);
      job();
    };
  }
  if (!core_->try_post(job)) { run_guarded(job); }
}

void pool::share(function_ref<void()> work) { core_->share(work); }

void pool::join() {
  core_->take_no_more();
  for (auto& thread : core_->threads) { thread.join(); }
  core_->threads.clear();
}

bool pool::running_in_this_thread() const noexcept { return pool_of_this_thread == core_.get(); }

std::shared_ptr<pool> pool::shared() {
  // Never destroyed: its threads may run while static objects are destroyed.
  static const auto* const instance = new std::shared_ptr<pool>(std::make_shared<pool>());
  return *instance;
}

}  // namespace stepwell::io
