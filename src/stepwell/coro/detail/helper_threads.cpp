// SPDX-License-Identifier: Apache-2.0
#include "stepwell/coro/detail/helper_threads.hpp"

#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace stepwell::coro {

struct helper_threads::state {
  explicit state(std::size_t given) : limit(given) {}

  void work() {
    std::unique_lock lock(mutex);
    set_thread_name("stepwell aside " + std::to_string(named++));
    for (;;) {
      ++idle;
      // Waits without a `clock`, because a clock may be destroyed before these threads end.
      changed.wait(lock, [this] { return is_over || !jobs.empty(); });
      --idle;
      if (is_over) { return; }
      auto job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
    }
  }

  const std::size_t limit;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  std::size_t threads = 0;
  std::size_t idle = 0;
  int named = 0;
  bool is_over = false;
};

helper_threads::helper_threads(std::size_t limit) : state_(std::make_shared<state>(limit)) {}

helper_threads::~helper_threads() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_over = true;
  }
  state_->changed.notify_all();
}

void helper_threads::post(std::function<void()> job) {
  const std::lock_guard lock(state_->mutex);
  if (state_->idle <= state_->jobs.size() && state_->threads < state_->limit) {
    auto started = stepwell::detail::start_thread("stepwell aside", [kept = state_] { kept->work(); });
    if (started) {
      started->detach();
      ++state_->threads;
    } else if (state_->threads == 0) {
      throw_status(std::move(started).error());
    }
  }
  state_->jobs.push_back(std::move(job));
  state_->changed.notify_one();
}

void helper_threads::post_apart(std::function<void()> job) {
  const auto run = [kept = std::move(job)] {
    set_thread_name("stepwell apart");
    kept();
  };
  value_or_throw(stepwell::detail::start_thread("stepwell apart", run)).detach();
}

helper_threads& helper_threads::shared() {
  static auto* const instance = new helper_threads(16);  // never destroyed: its threads may run while static objects are destroyed
  return *instance;
}

}  // namespace stepwell::coro
