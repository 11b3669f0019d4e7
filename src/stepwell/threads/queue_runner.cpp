// SPDX-License-Identifier: Apache-2.0
#include "stepwell/threads/queue_runner.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/log.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace stepwell {

struct queue_runner::core {
  core(operations given_queue, std::vector<enqueue_op> given_ops, exception_set closed)
      : queue(std::move(given_queue)), ops(std::move(given_ops)), queue_closed(std::move(closed)) {}

  const operations queue;
  const std::vector<enqueue_op> ops;
  const exception_set queue_closed;

  mutable detail::checked_mutex mutex;
  std::map<session_key, std::size_t> running STEPWELL_GUARDED_BY(mutex);
  std::vector<std::exception_ptr> raised STEPWELL_GUARDED_BY(mutex);
  bool has_closed STEPWELL_GUARDED_BY(mutex) = false;  // this runner closed the queue, which was open before

  /// Closes or cancels the queue. The lock is held, so that no threads are created in the meantime.
  void shut(const std::function<bool()>& close_it) STEPWELL_HOLDS(mutex) {
    try {
      has_closed = close_it() || has_closed;
    } catch (...) { log_debug("Ignored exception: " + detail::text_of(std::current_exception())); }
  }

  /// Records the end of a thread of `session`. If `closing` is true and it is the last thread, closes the queue.
  void leave(session_key session, bool closing) {
    const detail::mutex_lock lock(mutex);
    const auto count = running.find(session);
    if (--count->second > 0) { return; }
    running.erase(count);
    if (closing) { shut(queue.close); }
  }

  void stop() {
    const detail::mutex_lock lock(mutex);
    shut(queue.cancel);
  }

  void raise(std::exception_ptr failure) {
    log_error("Exception in QueueRunner: " + detail::text_of(failure));
    const detail::mutex_lock lock(mutex);
    raised.push_back(std::move(failure));
  }
};

/// The entry of a thread in `core::running`. The destructor releases it, also if the thread was never started.
class queue_runner::turn {
public:
  turn(std::shared_ptr<core> runner, session_key session) : core_(std::move(runner)), session_(session) {}
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  ~turn() { end(false); }

  /// Runs `op` until a stop or the end of the input.
  /// @errors Exceptions of `op` that do not mean the end of the input.
  void run(const enqueue_op& op, const std::stop_token& stop) {
    try {
      while (!stop.stop_requested()) { op.run(stop); }
      end(false);
    } catch (...) {
      const bool is_end = core_->queue_closed.contains(std::current_exception());
      end(is_end);
      if (!is_end) { throw; }
    }
  }

private:
  void end(bool closing) {
    if (const auto runner = std::exchange(core_, nullptr)) { runner->leave(session_, closing); }
  }

  std::shared_ptr<core> core_;
  session_key session_;
};

queue_runner::queue_runner(operations on_queue, std::vector<enqueue_op> ops, queue_runner_options options) {
  if (ops.empty()) { throw invalid_argument_error("the queue runner of \"" + on_queue.name + "\" has no enqueue operations; give it one"); }
  if (!std::ranges::all_of(ops, [](const enqueue_op& op) { return static_cast<bool>(op.run); })) {
    throw invalid_argument_error("the queue runner of \"" + on_queue.name + "\" has an enqueue operation without a function");
  }
  if (options.queue_closed.empty()) {
    throw invalid_argument_error("the queue runner of \"" + on_queue.name +
                                 "\" has an empty queue_closed, so its threads could never end; leave it out, or name an error kind");
  }
  const auto given = [](std::function<void()>& op) { return [op = std::move(op)] { return op(), false; }; };
  if (options.close_op) { on_queue.close = given(options.close_op); }
  if (options.cancel_op) { on_queue.cancel = given(options.cancel_op); }
  core_ = std::make_shared<core>(std::move(on_queue), std::move(ops), std::move(options.queue_closed));
}

std::vector<coordinated_thread> queue_runner::create_threads(session_key session, coordinator* threads, bool start) {
  {
    const detail::mutex_lock lock(core_->mutex);
    if (core_->running.contains(session)) { return {}; }
    if (core_->has_closed) { core_->queue.reopen(); }  // if it throws, nothing has begun, and the call can be repeated
    core_->has_closed = false;
    core_->running[session] = core_->ops.size();
    core_->raised.clear();
  }
  std::vector<coordinated_thread> made;
  for (const auto& op : core_->ops) {
    auto name = "QueueRunnerThread-" + core_->queue.name + "-" + op.name;
    auto mine = std::make_shared<turn>(core_, session);
    if (threads != nullptr) {
      made.push_back(threads->make_thread(std::move(name), [mine, op](const std::stop_token& stop) { mine->run(op, stop); }));
      continue;
    }
    made.emplace_back(std::move(name), [mine, op, runner = core_] {
      try {
        mine->run(op, {});
      } catch (...) { runner->raise(std::current_exception()); }
    });
  }
  if (threads != nullptr) {
    made.push_back(threads->make_thread("QueueRunnerThread-" + core_->queue.name + "-close_on_stop",
                                        [runner = core_, threads](const std::stop_token& stop) {
                                          if (!stop.stop_requested()) { threads->wait_for_stop(); }
                                          runner->stop();
                                        }));
  }
  if (!start) { return made; }
  // In reverse order: with a coordinator, the last thread cancels the others after a stop. So the threads already started end even if
  // a later one cannot be started.
  try {
    for (auto& thread : std::views::reverse(made)) { thread.start(); }
  } catch (...) {
    if (threads == nullptr) { core_->stop(); }
    throw;
  }
  return made;
}

std::size_t queue_runner::running(session_key session) const {
  const detail::mutex_lock lock(core_->mutex);
  const auto count = core_->running.find(session);
  return count == core_->running.end() ? 0 : count->second;
}

std::vector<std::exception_ptr> queue_runner::exceptions_raised() const {
  const detail::mutex_lock lock(core_->mutex);
  return core_->raised;
}

std::optional<std::size_t> queue_runner::depth() const { return core_->queue.depth ? std::optional(core_->queue.depth()) : std::nullopt; }

const std::string& queue_runner::name() const noexcept { return core_->queue.name; }

std::vector<coordinated_thread> start_queue_runners(queue_runner::session_key session, coordinator& threads,
                                                    std::span<const std::shared_ptr<queue_runner>> runners) {
  if (session == nullptr) {
    throw invalid_argument_error("Cannot start queue runners: No default session is registered, and none was given");
  }
  if (runners.empty()) { log_warning("start_queue_runners() was called when no queue runners were defined"); }
  if (std::ranges::find(runners, nullptr) != runners.end()) {
    throw invalid_argument_error("Cannot start queue runners: one of them is null");
  }
  std::vector<coordinated_thread> started;
  for (const auto& runner : runners) { std::ranges::move(runner->create_threads(session, &threads, true), std::back_inserter(started)); }
  return started;
}

}  // namespace stepwell
