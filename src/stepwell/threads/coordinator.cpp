// SPDX-License-Identifier: Apache-2.0
#include "stepwell/threads/coordinator.hpp"

#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <thread>

namespace stepwell {

bool exception_set::contains(const std::exception_ptr& failure) const noexcept try {
  if (says_yes_ && says_yes_(failure)) { return true; }
  const auto kind = kinds_.empty() ? std::nullopt : detail::kind_of(failure);
  return kind && std::ranges::find(kinds_, *kind) != kinds_.end();
} catch (...) { return false; }

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
      const detail::mutex_lock lock(mutex);
      stage.store(thread_stage::ended, std::memory_order_release);
      actions.swap(at_end);
      changed.notify_all();
    }
    for (const auto& action : actions) { action(); }
  }

  const std::string name;
  std::function<void()> body;  // used only by the thread once it runs
  detail::checked_mutex mutex;
  std::condition_variable changed;
  std::atomic<thread_stage> stage;
  std::vector<std::function<void()>> at_end STEPWELL_GUARDED_BY(mutex);
  detail::owned_thread running STEPWELL_GUARDED_BY(mutex);
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
  const detail::mutex_lock lock(record_->mutex);
  if (record_->stage != thread_stage::unstarted) {
    throw failed_precondition_error("could not start the thread \"" + name() + "\": it was started before; make a new one");
  }
  record_->stage = thread_stage::alive;
  auto started = detail::start_thread(name(), [record = record_] { record->run(); });
  if (!started) { record_->stage = thread_stage::unstarted; }
  record_->running = value_or_throw(std::move(started));
}

void coordinated_thread::join() const {
  detail::mutex_lock lock(record_->mutex);
  record_->changed.wait(lock, [this] { return !is_alive(); });
  if (record_->running.joinable()) { record_->running.join(); }  // the thread has ended and no longer needs this mutex
}

void coordinated_thread::on_end(std::function<void()> action) {
  {
    const detail::mutex_lock lock(record_->mutex);
    if (record_->stage != thread_stage::ended) {
      record_->at_end.push_back(std::move(action));
      return;
    }
  }
  action();
}

void coordinated_thread::detach_waiter() const {
  const detail::mutex_lock lock(record_->mutex);
  if (record_->running.joinable()) { record_->running.detach(); }
}

thread_mark::thread_mark(std::string name)
    : record_(std::make_shared<detail::thread_record>(std::move(name), nullptr, thread_stage::alive)) {}

thread_mark::~thread_mark() {
  if (record_) { record_->end(); }
}

namespace {

constexpr clock::time_point forever = clock::time_point::max();

std::string names_of(const std::vector<coordinated_thread>& threads) {
  std::string names;
  for (const auto& thread : threads) { names += (names.empty() ? "" : " ") + thread.name(); }
  return names;
}

bool none_alive(const std::vector<coordinated_thread>& threads) { return std::ranges::none_of(threads, &coordinated_thread::is_alive); }

bool contains(const std::vector<coordinated_thread>& threads, const coordinated_thread& thread) {
  return std::ranges::find(threads, thread) != threads.end();
}

}  // namespace

/// State of a coordinator. The mutex is never held while a thread is joined or user code is called.
/// Notifications are sent with the mutex held, because a woken thread may destroy the coordinator at once.
struct coordinator::state final : std::enable_shared_from_this<state> {
  struct entry {
    std::uint64_t id;  // unique for each registration
    coordinated_thread thread;
  };

  state(std::shared_ptr<clock> source, exception_set given, std::string name)
      : time(std::move(source)), clean_stops(std::move(given)), log_name(std::move(name)) {}

  const std::shared_ptr<clock> time;
  const exception_set clean_stops;
  const std::string log_name;
  std::atomic<bool> stop_requested = false;  // written with the mutex held
  mutable detail::checked_mutex mutex;
  std::condition_variable changed;
  std::stop_source stop STEPWELL_GUARDED_BY(mutex);
  std::uint64_t generation STEPWELL_GUARDED_BY(mutex) = 0;  // number of cleared stops
  std::uint64_t next_id STEPWELL_GUARDED_BY(mutex) = 0;
  bool joined STEPWELL_GUARDED_BY(mutex) = false;
  clock::time_point join_limit STEPWELL_GUARDED_BY(mutex) = forever;  // no `join` waits longer
  std::exception_ptr failure STEPWELL_GUARDED_BY(mutex);
  std::vector<std::exception_ptr> suppressed STEPWELL_GUARDED_BY(mutex);
  std::vector<entry> threads STEPWELL_GUARDED_BY(mutex);

  /// Records the stop and returns the stop source. The caller must call its `request_stop` without the mutex, because that runs
  /// callbacks of users.
  std::stop_source mark_stopped(std::exception_ptr reported) STEPWELL_HOLDS(mutex) {
    if (reported && failure) {
      suppressed.push_back(std::move(reported));
    } else if (reported) {
      failure = std::move(reported);
    }
    stop_requested.store(true, std::memory_order_release);
    changed.notify_all();
    return stop;
  }

  void request_stop(std::exception_ptr reported) {
    const log_scope named(log_name);
    if (reported && clean_stops.contains(reported)) { reported = nullptr; }
    std::stop_source told(std::nostopstate);
    {
      const detail::mutex_lock lock(mutex);
      if (reported && joined) { std::rethrow_exception(reported); }
      told = mark_stopped(reported);
    }
    if (reported) { log_info("Error reported to Coordinator: " + detail::text_of(reported)); }
    told.request_stop();
  }

  /// Handles the exception that ended thread number `id` of this coordinator. There is no caller to throw it to.
  void report(std::uint64_t id, const std::string& name, const std::exception_ptr& thrown) {
    const bool is_answer = detail::kind_of(thrown) == errc::cancelled;
    const bool is_clean = clean_stops.contains(thrown);
    std::optional<std::stop_source> told;
    {
      const detail::mutex_lock lock(mutex);
      const bool is_late = joined || std::ranges::find(threads, id, &entry::id) == threads.end();
      if (is_answer && (is_late || stop_requested)) { return; }
      if (!is_late) { told = mark_stopped(is_clean ? nullptr : thrown); }
    }
    if (!is_clean && told) { log_info("Error reported to Coordinator: " + detail::text_of(thrown)); }
    if (!is_clean && !told) { log_error("after the join, the thread \"" + name + "\" ended with: " + detail::text_of(thrown)); }
    if (told) { told->request_stop(); }
  }

  bool wait_for_stop(clock::time_point deadline) {
    detail::mutex_lock lock(mutex);
    const auto since = generation;
    return time->wait_until(lock, changed, deadline, [&]() STEPWELL_HOLDS(mutex) { return stop_requested || generation != since; });
  }

  /// Notifies waiting calls when `thread` ends.
  void watch(coordinated_thread& thread) {
    thread.on_end([weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        const detail::mutex_lock lock(self->mutex);
        self->changed.notify_all();
      }
    });
  }

  void add(std::uint64_t id, coordinated_thread thread) {
    watch(thread);
    const detail::mutex_lock lock(mutex);
    threads.push_back({id, std::move(thread)});
  }

  std::uint64_t new_id() {
    const detail::mutex_lock lock(mutex);
    return next_id++;
  }

  /// Removes and joins threads that have ended, so that a long run with many short threads does not accumulate them.
  void forget_ended() {
    std::vector<coordinated_thread> ended;
    {
      const detail::mutex_lock lock(mutex);
      for (const auto& each : threads) {
        if (each.thread.has_ended()) { ended.push_back(each.thread); }
      }
      std::erase_if(threads, [&](const entry& each) { return contains(ended, each.thread); });
    }
    for (const auto& thread : ended) { thread.join(); }
  }

  /// Returns the registered threads and `given`, without duplicates. Appends the ids of the registered threads to `ids`.
  std::vector<coordinated_thread> threads_and(std::vector<coordinated_thread> given, std::vector<std::uint64_t>& ids) {
    for (auto& thread : given) { watch(thread); }
    std::vector<coordinated_thread> all;
    const detail::mutex_lock lock(mutex);
    for (const auto& each : threads) {
      ids.push_back(each.id);
      if (!contains(all, each.thread)) { all.push_back(each.thread); }
    }
    for (auto& thread : given) {
      if (!contains(all, thread)) { all.push_back(std::move(thread)); }
    }
    return all;
  }

  /// Waits for the threads and the grace period as `join` documents. Returns the threads of `waited` that are still alive.
  /// @see contract COORD-6, steps 2 to 4
  std::vector<coordinated_thread> wait_for(const std::vector<coordinated_thread>& waited, const std::vector<std::uint64_t>& ids,
                                           clock::duration grace) {
    detail::mutex_lock lock(mutex);
    time->wait_until(lock, changed, forever, [&] { return stop_requested || none_alive(waited); });
    const auto now = time->now();
    auto until = std::min(join_limit, grace < forever - now ? now + grace : forever);
    const auto is_over = [&]() STEPWELL_HOLDS(mutex) { return none_alive(waited) || join_limit < until; };
    while (time->wait_until(lock, changed, until, is_over) && !none_alive(waited)) { until = join_limit; }
    std::vector<coordinated_thread> stragglers;
    std::ranges::copy_if(waited, std::back_inserter(stragglers), &coordinated_thread::is_alive);
    joined = true;
    std::erase_if(threads, [&](const entry& each) { return std::ranges::find(ids, each.id) != ids.end(); });
    return stragglers;
  }
};

coordinator::coordinator(std::shared_ptr<clock> source, exception_set clean_stops, std::string log_name)
    : state_(std::make_shared<state>(std::move(source), std::move(clean_stops), std::move(log_name))),
      stop_requested_(&state_->stop_requested) {}

coordinator::~coordinator() {
  {
    const detail::mutex_lock lock(state_->mutex);
    if (state_->threads.empty()) { return; }
  }
  try {
    request_stop();
    join({.ignore_live_threads = true});
  } catch (...) {  // already logged when it was reported
  }
}

void coordinator::request_stop(std::exception_ptr failure) { state_->request_stop(std::move(failure)); }

void coordinator::request_stop_on_current_exception() {
  auto failure = std::current_exception();
  if (!failure) {
    failure = std::make_exception_ptr(
        invalid_argument_error("request_stop_on_current_exception: no exception is being handled; call it inside a catch block only"));
  }
  request_stop(std::move(failure));
}

std::stop_token coordinator::get_token() const {
  const detail::mutex_lock lock(state_->mutex);
  return state_->stop.get_token();
}

void coordinator::wait_for_stop() { wait_for_stop(forever); }

bool coordinator::wait_for_stop(clock::time_point deadline) {
  const auto kept = state_;  // keeps the state: a straggler may wait here while the coordinator is destroyed
  return kept->wait_for_stop(deadline);
}

void coordinator::clear_stop() {
  const detail::mutex_lock lock(state_->mutex);
  state_->stop_requested = false;
  state_->stop = std::stop_source();
  ++state_->generation;
  state_->joined = false;
  state_->failure = nullptr;
  state_->suppressed.clear();
  state_->changed.notify_all();
}

coordinated_thread coordinator::make_thread(std::string name, std::function<void(std::stop_token)> fn) {
  if (!fn) { throw invalid_argument_error("the thread \"" + name + "\" has no function to run; give it a function"); }
  state_->forget_ended();
  const auto id = state_->new_id();
  coordinated_thread thread(name, [kept = state_, id, name, fn = std::move(fn), token = get_token()] {
    const log_scope named(kept->log_name);
    try {
      fn(token);
    } catch (...) { kept->report(id, name, std::current_exception()); }
  });
  state_->add(id, thread);
  return thread;
}

coordinated_thread coordinator::start_thread(std::string name, std::function<void(std::stop_token)> fn) {
  auto thread = make_thread(std::move(name), std::move(fn));
  thread.start();
  return thread;
}

void coordinator::register_thread(coordinated_thread thread) {
  state_->forget_ended();
  state_->add(state_->new_id(), std::move(thread));
}

void coordinator::join(join_options options) {
  std::vector<std::uint64_t> ids;
  const auto waited = state_->threads_and(std::move(options.threads), ids);
  const auto stragglers = state_->wait_for(waited, ids, options.stop_grace_period);
  for (const auto& thread : waited) {
    if (contains(stragglers, thread)) {
      thread.detach_waiter();
    } else {
      thread.join();
    }
  }
  const auto failed = failure();
  if (!stragglers.empty()) {
    auto text = "Coordinator stopped with threads still running: " + names_of(stragglers);
    if (!failed && !options.ignore_live_threads) { throw deadline_exceeded_error(std::move(text)); }
    const log_scope named(state_->log_name);
    log_warning(text);
  }
  if (failed) { std::rethrow_exception(failed); }
}

void coordinator::limit_joins(clock::time_point until) {
  const detail::mutex_lock lock(state_->mutex);
  state_->join_limit = until;
  state_->changed.notify_all();
}

bool coordinator::joined() const {
  const detail::mutex_lock lock(state_->mutex);
  return state_->joined;
}

std::exception_ptr coordinator::failure() const {
  const detail::mutex_lock lock(state_->mutex);
  return state_->failure;
}

std::vector<std::exception_ptr> coordinator::suppressed() const {
  const detail::mutex_lock lock(state_->mutex);
  return state_->suppressed;
}

void coordinator::raise_requested_exception() const {
  if (const auto failed = failure()) { std::rethrow_exception(failed); }
}

const std::shared_ptr<clock>& coordinator::time() const noexcept { return state_->time; }

}  // namespace stepwell
