// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/saver.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/owner_process.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/detail/wait_or_stop.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/detail/checkpoint_writer.hpp"
#include "stepwell/checkpoint/detail/saver_state.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"

#include <fmt/format.h>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace stepwell {
namespace {

using detail::saver_phase;
using detail::text_of;

saver_options completed(saver_options options, const std::string& directory) {
  if (options.max_to_keep.is_default()) { options.max_to_keep = saver_options().max_to_keep; }
  check_saver_options(options);
  options.file_system = detail::with_fence(std::move(options.file_system), directory);
  if (!options.pool) { options.pool = io::pool::shared(); }
  if (!options.clock) { options.clock = system_clock(); }
  return options;
}

/// Returns true if a failure may be transient. A full disk and an invalid call are permanent.
bool may_mend_itself(const std::exception_ptr& failure) noexcept {
  const auto kind = detail::kind_of(failure);
  return kind && kind != errc::resource_exhausted && kind != errc::invalid_argument && kind != errc::internal;
}

/// Returns the number of bytes that a held snapshot of `bytes` bytes counts for. See `saver_options::max_staged_bytes`.
std::size_t staged_size(std::size_t bytes) noexcept {
  constexpr std::size_t least = std::size_t{4} << 20;
  return std::max(bytes, least);
}

/// Result of one save for a caller that waits for it.
struct ticket {
  std::optional<saved_checkpoint> saved;
  std::exception_ptr failure;
};

/// One snapshot to write.
struct save_job {
  std::optional<snapshot> taken;
  std::function<void()> before_commit = nullptr;
  std::function<void(snapshot)> if_failed = nullptr;
  std::shared_ptr<ticket> waiting = nullptr;
  int tries = 0;
  clock::time_point begun = {};  // start of writing; set when the job becomes the current one
};

}  // namespace

void check_saver_options(const saver_options& options) {
  if (options.basename.empty() || options.basename.find('/') != std::string::npos) {
    throw invalid_argument_error("the basename of a saver must be a file name without directories");
  }
  if (options.shards < 1 || options.shards > detail::checkpoint_writer::max_shards) {
    throw invalid_argument_error("shards of a saver must be from 1 to " + std::to_string(detail::checkpoint_writer::max_shards));
  }
  detail::refuse_negative("max_to_keep", options.max_to_keep);
  detail::refuse_negative("keep_every_n_hours", options.keep_every_n_hours);
  detail::refuse_negative("on_error.retries", options.on_error.retries());
  detail::refuse_negative("on_error.first_wait", options.on_error.first_wait());
}

/// The state of a saver, and the tasks on the pool, which keep it alive. One task at a time writes one snapshot.
struct saver::core : std::enable_shared_from_this<saver::core> {
  core(const std::string& path, saver_options given)
      : options(completed(std::move(given), path)), directory(value_or_throw(io::absolute_path(path)), options) {}

  const saver_options options;
  const detail::owner_process owner;
  detail::checkpoint_directory directory;

  detail::checked_mutex mutex;
  std::condition_variable changed;
  std::deque<save_job> queue STEPWELL_GUARDED_BY(mutex);  // queued jobs, oldest first
  std::optional<save_job> current;                        // the job being written or about to be written; its task uses it without the lock
  std::size_t staged STEPWELL_GUARDED_BY(mutex) = 0;      // total `staged_size` of the snapshots that are held
  std::uint64_t accepted STEPWELL_GUARDED_BY(mutex) = 0;  // number of all jobs that were queued
  std::uint64_t ended STEPWELL_GUARDED_BY(mutex) = 0;     // number of those that were written, given up or replaced
  save_outcome next STEPWELL_GUARDED_BY(mutex) =
      save_outcome::queued;  // the outcome of the next save; `coalesced` if a queued snapshot was dropped for it
  detail::saver_state state STEPWELL_GUARDED_BY(mutex);
  std::shared_ptr<void> hold STEPWELL_GUARDED_BY(mutex);  // kept until the directory is released
  alarm retry STEPWELL_GUARDED_BY(mutex);
  std::optional<clock::time_point> retry_at STEPWELL_GUARDED_BY(mutex);  // the time of `retry`, while the current job waits for it
  std::exception_ptr failure STEPWELL_GUARDED_BY(mutex);                 // the first undelivered failure
  std::atomic<bool> has_failure = false;
  std::optional<saved_checkpoint> latest STEPWELL_GUARDED_BY(mutex);

  std::recursive_mutex callbacks_mutex;  // held while a callback runs; recursive, because it may replace itself
  std::function<void(const saved_checkpoint&)> on_saved;
  std::function<void(std::exception_ptr)> on_failure;

  [[nodiscard]] bool is_idle() const noexcept STEPWELL_HOLDS(mutex) { return !current && queue.empty(); }
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept STEPWELL_HOLDS(mutex) {
    return staged == 0 || (staged <= options.max_staged_bytes && staged_size(bytes) <= options.max_staged_bytes - staged);
  }

  /// Removes and returns the newest queued snapshot, or nothing if the queue is empty or a caller waits for that save.
  [[nodiscard]] std::optional<snapshot> take_waiting() STEPWELL_HOLDS(mutex) {
    if (queue.empty() || queue.back().waiting) { return std::nullopt; }
    auto taken = std::move(queue.back().taken);
    queue.pop_back();
    ++ended;
    staged -= staged_size(taken->size_bytes());
    return taken;
  }
  /// Removes and returns the newest queued snapshots until a snapshot of `bytes` bytes fits.
  [[nodiscard]] std::vector<snapshot> drop_waiting(std::size_t bytes) STEPWELL_HOLDS(mutex) {
    std::vector<snapshot> dropped;
    while (!fits(bytes)) {
      auto taken = take_waiting();
      if (!taken) { break; }
      dropped.push_back(std::move(*taken));
    }
    return dropped;
  }

  /// Makes the oldest queued job the current one, unless there is a current one. Returns true if the caller must post it.
  [[nodiscard]] bool start_next() STEPWELL_HOLDS(mutex) {
    if (current || queue.empty()) { return false; }
    current = std::move(queue.front());
    queue.pop_front();
    current->begun = options.clock->now();
    return true;
  }

  /// Waits until `done()` returns true.
  template<class Done>
  void wait(detail::mutex_lock& lock, Done done) STEPWELL_HOLDS(mutex) {
    const detail::observed_wait here;
    changed.wait(lock, done);
  }

  /// Waits until the snapshot of `job` fits, and queues the job. Releases the mutex meanwhile, because a joined pool runs the job inside this call.
  void enqueue(detail::mutex_lock& lock, save_job job) STEPWELL_HOLDS(mutex) {
    const auto bytes = job.taken->size_bytes();
    wait(lock, [&]() STEPWELL_HOLDS(mutex) { return fits(bytes); });
    ++accepted;
    staged += staged_size(bytes);
    queue.push_back(std::move(job));
    if (start_next()) {
      const detail::mutex_unlock released(mutex);
      post_current();
    }
  }

  /// Returns true once, for the call that must release the directory: the saver was closed without waiting and is idle.
  [[nodiscard]] bool begins_release() noexcept STEPWELL_HOLDS(mutex) {
    const bool begins = state.phase() == saver_phase::detached && is_idle();
    if (begins) { state.to(saver_phase::releasing); }
    return begins;
  }
  /// Returns true if the current job waits for its retry. The caller must post it.
  [[nodiscard]] bool take_retry() noexcept STEPWELL_HOLDS(mutex) { return std::exchange(retry_at, std::nullopt).has_value(); }

  void throw_if_closed() {
    const detail::mutex_lock lock(mutex);
    if (state.is_closed()) { throw failed_precondition_error("could not save: this saver is closed; create a new one", directory.path()); }
  }

  template<class Callback>
  void set(std::function<Callback>& callback, std::function<Callback> value) {
    const std::lock_guard lock(callbacks_mutex);
    callback = std::move(value);
  }
  template<class Callback, class Argument>
  void call(const std::function<Callback>& callback, const Argument& argument) {
    const std::lock_guard lock(callbacks_mutex);
    const auto copy = callback;  // the callback may replace itself
    if (!copy) { return; }
    try {
      copy(argument);
    } catch (...) { log_error("a callback of a saver has thrown: " + text_of(std::current_exception())); }
  }

  /// Posts the current job to the pool. A joined pool runs the job inside this call.
  void post_current() STEPWELL_HOLDS_NOT(mutex) {
    options.pool->post([self = shared_from_this()] { self->run(); });
  }

  void run() {
    std::exception_ptr cause;
    std::optional<saved_checkpoint> saved;
    const auto trace = current->taken->trace();  // trace of the session that requested this save
    try {
      const trace_scope scope(trace);
      current->taken->complete();
      const auto write = [this] { return directory.write(*current->taken, current->before_commit); };  // valid until `finish`
      saved = detail::with_memory("could not save a checkpoint", directory.path(), write);
    } catch (...) { cause = directory.failure_of_fence(std::current_exception()); }
    if (saved) {
      succeed(*saved, trace);
    } else if (!try_again_later(cause)) {
      give_up(std::move(cause));
    }
  }

  /// Releases the snapshot of the current job. The snapshot counts as held until its buffer is free again.
  void release_current(bool has_failed) {
    std::optional<snapshot> done;
    std::function<void()> before_commit;  // destroyed after the mutex is released
    std::function<void(snapshot)> if_failed;
    detail::mutex_lock lock(mutex);
    done.swap(current->taken);
    before_commit.swap(current->before_commit);
    if_failed.swap(current->if_failed);
    const auto size = staged_size(done->size_bytes());
    lock.unlock();
    if (has_failed && if_failed) { if_failed(std::move(*done)); }
    done.reset();
    lock.lock();
    staged -= size;
    changed.notify_all();
  }

  void succeed(const saved_checkpoint& saved, const std::shared_ptr<trace_recorder>& trace) {
    release_current(false);  // before the callbacks
    call(on_saved, saved);
    {
      const detail::mutex_lock lock(mutex);
      latest = saved;
      if (current->waiting) { current->waiting->saved = saved; }
      changed.notify_all();
    }
    {
      const trace_scope scope(trace);
      directory.tidy();  // deleting large files is slow; only the next save waits for it
    }
    finish();
  }

  [[nodiscard]] bool try_again_later(const std::exception_ptr& cause) {
    const detail::mutex_lock lock(mutex);
    const auto& policy = options.on_error;
    if (state.is_closed() || current->tries >= policy.retries() || !may_mend_itself(cause) || directory.is_taken_over()) { return false; }
    const auto wait = policy.first_wait() * (std::int64_t{1} << std::min(current->tries, 20));
    const auto due = options.clock->now() + wait;
    try {
      retry = alarm(options.clock, due, [weak = weak_from_this(), name = log_name()] {
        const auto self = weak.lock();
        if (!self) { return; }
        const log_scope named(name);
        detail::mutex_lock waking(self->mutex);
        const bool is_due = self->take_retry();
        waking.unlock();
        if (is_due) { self->post_current(); }
      });
    } catch (const error& refused) {  // the alarm could not start a thread
      log_warning(std::string("the save of a checkpoint is not retried: ") + refused.what());
      return false;
    }
    retry_at = due;  // set after the alarm: its callback blocks on the mutex
    ++current->tries;
    changed.notify_all();  // `wait_until_idle` may not wait that long
    log_warning(fmt::format("{}; retry {} of {} in {:.1f} s", text_of(cause), current->tries, policy.retries(),
                            std::chrono::duration<double>(wait).count()));
    return true;
  }

  /// Passes the failure to its receiver. The receiver gets the only reference. Two threads must not release the exception at the same
  /// time, because the thread sanitizer does not see the reference counter of the C++ library.
  void give_up(std::exception_ptr cause) {
    const bool is_final = directory.is_taken_over();  // no later save can succeed
    release_current(true);
    call(on_failure, cause);
    {
      const detail::mutex_lock lock(mutex);
      if (current->waiting) {
        current->waiting->failure = std::move(cause);
      } else if ((options.on_error.only_warns() && !is_final) || failure || state.phase() == saver_phase::detached) {
        log_warning(text_of(cause));
      } else {
        failure = std::move(cause);
        has_failure = true;
      }
    }
    finish();
  }

  void finish() {
    detail::mutex_lock lock(mutex);
    current.reset();
    ++ended;
    const bool starts = start_next();
    lock.unlock();
    if (starts) { post_current(); }
    end_task();
  }

  void end_task() {
    detail::mutex_lock lock(mutex);
    const bool is_over = begins_release();
    changed.notify_all();
    lock.unlock();
    if (is_over) { release(); }
  }

  /// Finishes closing: releases the directory and logs an undelivered failure.
  /// @pre The phase is `releasing`.
  void release() noexcept {
    detail::mutex_lock lock(mutex);
    auto last_retry = std::move(retry);
    lock.unlock();
    last_retry.cancel();
    directory.close();
    lock.lock();
    state.to(saver_phase::released);
    const auto held = std::exchange(hold, nullptr);  // destroyed after the mutex is released
    const auto undelivered = std::exchange(failure, nullptr);
    lock.unlock();
    if (undelivered) { log_error(text_of(undelivered)); }
  }
};

saver::saver(std::string directory, saver_options options) : core_(std::make_shared<core>(directory, std::move(options))) {}
saver::saver(saver&&) noexcept = default;
saver::~saver() {
  if (core_) { close(); }
}

std::optional<snapshot_pool::buffer> saver::try_acquire(snapshot_pool& pool) {
  if (auto free = pool.try_acquire()) { return free; }
  if (options().when_busy != when_busy::coalesce) { return std::nullopt; }
  detail::mutex_lock lock(core_->mutex);
  auto taken = core_->take_waiting();
  if (!taken) { return std::nullopt; }
  core_->next = save_outcome::coalesced;
  lock.unlock();
  core_->changed.notify_all();
  return std::move(*taken).release();
}

std::optional<snapshot_pool::buffer> saver::acquire(snapshot_pool& pool) {
  if (auto buffer = try_acquire(pool)) { return buffer; }
  return options().when_busy == when_busy::skip ? std::nullopt : std::optional(pool.acquire());
}

bool saver::make_room(std::size_t bytes) {
  std::vector<snapshot> dropped;  // destroyed after the mutex is released
  detail::mutex_lock lock(core_->mutex);
  if (options().when_busy == when_busy::coalesce) { dropped = core_->drop_waiting(bytes); }
  if (!dropped.empty()) { core_->next = save_outcome::coalesced; }
  const bool fits = core_->fits(bytes);
  lock.unlock();
  if (!dropped.empty()) { core_->changed.notify_all(); }
  return fits;
}

bool saver::wait_for_room(std::size_t bytes, clock::time_point when, const std::stop_token& stop) {
  return detail::wait_or_stop(*options().clock, core_->mutex, core_->changed, when, stop,
                              [&]() STEPWELL_HOLDS(core_->mutex) { return core_->fits(bytes); });
}

save_outcome saver::save(snapshot taken, std::function<void()> before_commit, std::function<void(snapshot)> if_failed) {
  try {
    throw_if_failed();
    core_->throw_if_closed();
  } catch (...) {
    if (if_failed) { if_failed(std::move(taken)); }
    throw;
  }
  const auto bytes = taken.size_bytes();
  std::vector<snapshot> replaced;  // destroyed after the mutex is released: returning a buffer may call a waiting callback
  detail::mutex_lock lock(core_->mutex);
  auto outcome = std::exchange(core_->next, save_outcome::queued);
  if (!core_->fits(bytes)) {
    if (options().when_busy == when_busy::skip) { return save_outcome::skipped; }
    if (options().when_busy == when_busy::coalesce) { replaced = core_->drop_waiting(bytes); }
    if (!replaced.empty()) { outcome = save_outcome::coalesced; }
  }
  core_->enqueue(lock, {.taken = std::move(taken), .before_commit = std::move(before_commit), .if_failed = std::move(if_failed)});
  return outcome;
}

saved_checkpoint saver::save_and_wait(snapshot taken) {
  core_->throw_if_closed();
  const auto waiting = std::make_shared<ticket>();
  detail::mutex_lock lock(core_->mutex);
  core_->enqueue(lock, {.taken = std::move(taken), .waiting = waiting});
  core_->wait(lock, [&] { return waiting->saved || waiting->failure; });
  if (waiting->saved) { return *waiting->saved; }
  const auto failure = std::exchange(waiting->failure, nullptr);
  lock.unlock();
  std::rethrow_exception(failure);
}

void saver::on_saved(std::function<void(const saved_checkpoint&)> callback) { core_->set(core_->on_saved, std::move(callback)); }
void saver::on_failure(std::function<void(std::exception_ptr)> callback) { core_->set(core_->on_failure, std::move(callback)); }

bool saver::has_failure() const noexcept { return core_->has_failure.load(std::memory_order_relaxed); }

void saver::throw_if_failed() {
  if (!has_failure()) { return; }
  detail::mutex_lock lock(core_->mutex);
  core_->has_failure = false;
  auto failure = std::exchange(core_->failure, nullptr);
  lock.unlock();
  if (failure) { std::rethrow_exception(std::move(failure)); }
}

bool saver::busy() const {
  const detail::mutex_lock lock(core_->mutex);
  return !core_->is_idle();
}

save_backlog saver::backlog() const {
  const detail::mutex_lock lock(core_->mutex);
  save_backlog total;
  const auto& current = core_->current;
  if (current && current->taken) { total = {current->taken->size_bytes(), options().clock->now() - current->begun, 0}; }
  for (const auto& waiting : core_->queue) { total.waiting_bytes += waiting.taken->size_bytes(); }
  return total;
}

std::function<bool(clock::time_point, const std::stop_token&)> saver::waits_for_accepted() const {
  return [core = core_](clock::time_point when, const std::stop_token& stop) {
    std::optional<std::uint64_t> last;
    return detail::wait_or_stop(*core->options.clock, core->mutex, core->changed, when, stop, [&]() STEPWELL_HOLDS(core->mutex) {
      if (!last) { last = core->accepted; }
      return core->ended >= *last;
    });
  };
}

bool saver::wait_until_idle(clock::time_point when, const std::stop_token& stop) const {
  for (;;) {
    alarm too_late;  // the alarm of a retry that is made at once; cancelled after the mutex is released
    bool retries = false;
    const auto has_changed = [&]() STEPWELL_HOLDS(core_->mutex) {
      if (core_->is_idle()) { return true; }
      if (core_->retry_at >= when && core_->take_retry()) {
        too_late = std::move(core_->retry);
        retries = true;
      }
      return retries;
    };
    if (!detail::wait_or_stop(*options().clock, core_->mutex, core_->changed, when, stop, has_changed)) { return false; }
    if (!retries) { return true; }
    too_late.cancel();
    core_->post_current();
  }
}

void saver::drain() {
  detail::mutex_lock lock(core_->mutex);
  core_->wait(lock, [this]() STEPWELL_HOLDS(core_->mutex) { return core_->is_idle(); });
  core_->state.note_drain(true);
  lock.unlock();
  throw_if_failed();
}

void saver::drain(clock::time_point deadline) {
  const bool is_idle = wait_until_idle(deadline);
  {
    const detail::mutex_lock lock(core_->mutex);
    core_->state.note_drain(is_idle);
  }
  if (!is_idle) {
    throw deadline_exceeded_error("checkpoints are still being written; the disk is slow or no longer available", directory());
  }
  throw_if_failed();
}

void saver::close() noexcept {
  if (!core_->owner.is_this_process()) { return; }  // a child process made by fork: the parent saves
  detail::mutex_lock lock(core_->mutex);
  if (core_->state.is_closed()) { return; }
  const bool is_late = core_->state.phase() == saver_phase::late;
  core_->state.to(saver_phase::closing);
  if (core_->take_retry()) {
    lock.unlock();
    core_->post_current();
    lock.lock();
  }
  if (is_late && !core_->is_idle()) {
    core_->state.to(saver_phase::detached);
    lock.unlock();
    on_saved(nullptr);
    on_failure(nullptr);
    return log_error(directory() +
                     ": a checkpoint is still being written in the background; the directory stays locked until the write ends");
  }
  core_->wait(lock, [this]() STEPWELL_HOLDS(core_->mutex) { return core_->is_idle(); });
  core_->state.to(saver_phase::releasing);
  lock.unlock();
  core_->release();
}

void saver::detach() noexcept {
  detail::mutex_lock lock(core_->mutex);
  if (core_->state.is_closed()) { return; }
  core_->state.to(saver_phase::detached);
  const bool is_over = core_->begins_release();
  const bool retries = core_->take_retry();
  lock.unlock();
  on_saved(nullptr);
  on_failure(nullptr);
  if (retries) { core_->post_current(); }
  if (is_over) { return core_->release(); }
  log_info(directory() + ": a checkpoint is still being written; the directory is released when the write ends");
}

void saver::hold_until_released(std::shared_ptr<void> hold) {
  const detail::mutex_lock lock(core_->mutex);
  if (core_->state.phase() != saver_phase::released) { core_->hold.swap(hold); }
}

std::optional<checkpoint_reader> saver::restore_newest() { return core_->directory.restore_newest(); }

std::optional<checkpoint_reader> saver::open_newest() { return core_->directory.open_newest(core_); }

std::optional<saved_checkpoint> saver::latest() const {
  const detail::mutex_lock lock(core_->mutex);
  return core_->latest;
}

std::vector<std::string> saver::checkpoints() const { return core_->directory.checkpoints(); }
void saver::pin(const std::string& checkpoint) { core_->directory.pin(checkpoint); }

bool saver::is_in_place() const noexcept { return core_->directory.is_in_place(); }

const std::string& saver::directory() const noexcept { return core_->directory.path(); }
const saver_options& saver::options() const noexcept { return core_->options; }

}  // namespace stepwell
