// SPDX-License-Identifier: Apache-2.0
#include "stepwell/threads/coordinated_thread.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/start_thread.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stepwell {

namespace detail {

enum class thread_stage { unstarted, alive, ended };

/// State of a thread. A running thread owns a reference to it. `mutex` is never held during calls of user code.
struct thread_record {
  thread_record(std::string given_name, std::function<void()> given_body, thread_stage given_stage)
      : name(std::move(given_name)), body(std::move(given_body)), stage(given_stage) {}
  // The last reference may be released on the thread itself, which cannot join itself.
  ~thread_record() {
    if (running.joinable()) { running.detach(); }
  }

  void run() {
    try {
      body();
    } catch (...) { log_error("the thread \"" + name + "\" ended with: " + text_of(std::current_exception())); }
    body = nullptr;  // before the end is announced
    end();
  }

  void end() {
    std::vector<std::function<void()>> actions;
    {
      const std::lock_guard lock(mutex);
      stage.store(thread_stage::ended, std::memory_order_release);
      actions.swap(at_end);
      changed.notify_all();
    }
    for (const auto& action : actions) { action(); }
  }

  const std::string name;
  std::function<void()> body;  // used only by the thread once it runs
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<thread_stage> stage;
  std::vector<std::function<void()>> at_end;
  std::thread running;
};

}  // namespace detail

using detail::thread_stage;

coordinated_thread::coordinated_thread(std::shared_ptr<detail::thread_record> record) noexcept : record_(std::move(record)) {}

coordinated_thread::coordinated_thread(std::string name, std::function<void()> body) {
  if (!body) { throw invalid_argument_error("the thread \"" + name + "\" has no function to run; give it a function"); }
  record_ = std::make_shared<detail::thread_record>(std::move(name), std::move(body), thread_stage::unstarted);
}

const std::string& coordinated_thread::name() const noexcept { return record_->name; }

bool coordinated_thread::is_alive() const noexcept { return record_->stage.load(std::memory_order_acquire) == thread_stage::alive; }

bool coordinated_thread::has_ended() const noexcept { return record_->stage.load(std::memory_order_acquire) == thread_stage::ended; }

void coordinated_thread::start() {
  const std::lock_guard lock(record_->mutex);
  if (record_->stage != thread_stage::unstarted) {
    throw failed_precondition_error("could not start the thread \"" + name() + "\": it was started before; make a new one");
  }
  record_->stage = thread_stage::alive;
  auto started = detail::start_thread(name(), [record = record_] { record->run(); });
  if (!started) { record_->stage = thread_stage::unstarted; }
  record_->running = value_or_throw(std::move(started));
}

void coordinated_thread::join() const {
  std::unique_lock lock(record_->mutex);
  record_->changed.wait(lock, [this] { return !is_alive(); });
  if (record_->running.joinable()) { record_->running.join(); }  // the thread has ended and no longer needs this mutex
}

void coordinated_thread::on_end(std::function<void()> action) {
  {
    const std::lock_guard lock(record_->mutex);
    if (record_->stage != thread_stage::ended) {
      record_->at_end.push_back(std::move(action));
      return;
    }
  }
  action();
}

void coordinated_thread::detach_waiter() const {
  const std::lock_guard lock(record_->mutex);
  if (record_->running.joinable()) { record_->running.detach(); }
}

thread_mark::thread_mark(std::string name)
    : record_(std::make_shared<detail::thread_record>(std::move(name), nullptr, thread_stage::alive)) {}

thread_mark::~thread_mark() {
  if (record_) { record_->end(); }
}

}  // namespace stepwell
