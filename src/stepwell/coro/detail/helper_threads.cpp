// SPDX-License-Identifier: Apache-2.0
#include "stepwell/coro/detail/helper_threads.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"

#include <condition_variable>
#include <deque>
#include <new>
#include <string>
#include <utility>

namespace stepwell::coro {

struct helper_threads::state final : std::enable_shared_from_this<state>, stepwell::detail::wait_observer {
  explicit state(std::size_t given) : limit(given) {}

  void work() {
    stepwell::detail::observe_waits_of_this_thread(*this);
    stepwell::detail::mutex_lock lock(mutex);
    set_thread_name("stepwell aside " + std::to_string(named++));
    for (;;) {
      if (running > limit) { break; }  // another thread took the place of this thread during a wait
      ++idle;
      // Waits without a `clock`, because a clock may be destroyed before these threads end.
      changed.wait(lock, [this]() STEPWELL_HOLDS(mutex) { return is_over || !jobs.empty(); });
      --idle;
      if (is_over) { break; }
      auto job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
    }
    --running;
    --threads;
  }

  /// Starts a thread if there are more jobs than idle threads, and fewer running threads than the limit.
  result<void> start_if_needed(std::size_t count) STEPWELL_HOLDS(mutex) {
    if (idle >= count || running >= limit) { return {}; }
    auto started = stepwell::detail::start_thread("stepwell aside", [kept = shared_from_this()] { kept->work(); });
    if (!started) { return std::move(started).error(); }
    started->detach();
    ++running;
    ++threads;
    return {};
  }

  void begin_wait() noexcept override {
    const stepwell::detail::mutex_lock lock(mutex);
    --running;
    try {
      static_cast<void>(start_if_needed(jobs.size()));  // without another thread, the jobs run after the wait
    } catch (const std::bad_alloc&) {}                  // NOLINT(bugprone-empty-catch): like a thread that cannot be started
  }
  void end_wait() noexcept override {
    const stepwell::detail::mutex_lock lock(mutex);
    ++running;
  }

  const std::size_t limit;
  stepwell::detail::checked_mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs STEPWELL_GUARDED_BY(mutex);
  std::size_t threads STEPWELL_GUARDED_BY(mutex) = 0;
  std::size_t running STEPWELL_GUARDED_BY(mutex) =
      0;  // number of those threads that are not in an observed wait; includes the idle threads
  std::size_t idle STEPWELL_GUARDED_BY(mutex) = 0;
  int named STEPWELL_GUARDED_BY(mutex) = 0;
  bool is_over STEPWELL_GUARDED_BY(mutex) = false;
};

helper_threads::helper_threads(std::size_t limit) : state_(std::make_shared<state>(limit)) {}

helper_threads::~helper_threads() {
  {
    const stepwell::detail::mutex_lock lock(state_->mutex);
    state_->is_over = true;
  }
  state_->changed.notify_all();
}

void helper_threads::post(std::function<void()> job) {
  const stepwell::detail::mutex_lock lock(state_->mutex);
  auto started = state_->start_if_needed(state_->jobs.size() + 1);
  if (!started && state_->threads == 0) { throw_status(std::move(started).error()); }
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

helper_threads& helper_threads::for_copies() {
  static auto* const instance = new helper_threads(16);  // never destroyed, as above
  return *instance;
}

}  // namespace stepwell::coro
