// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/byte_queue.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/owner_process.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <new>
#include <string>

namespace stepwell::io {
namespace {

class file_sink final : public byte_sink {
public:
  file_sink(std::unique_ptr<file> target, std::uint64_t offset) : target_(std::move(target)), offset_(offset), handed_over_(offset) {}

  result<void> write(std::span<const std::byte> bytes) override {
    if (auto written = target_->write_at(offset_, bytes); !written) { return written; }
    offset_ += bytes.size();
    if (offset_ - handed_over_ >= writeback_step) {
      target_->start_writeback(handed_over_, offset_ - handed_over_);
      handed_over_ = offset_;
    }
    return {};
  }
  result<void> sync() override { return target_->sync(); }
  result<void> close() override { return target_->close(); }

private:
  // The disk writes in the background while records are still appended, so that the sync at the end takes less time.
  static constexpr std::uint64_t writeback_step = std::uint64_t{4} << 20;

  std::unique_ptr<file> target_;
  std::uint64_t offset_;
  std::uint64_t handed_over_;  // position up to which writeback has started
};

/// A buffer of uninitialised memory, so that only used pages are touched.
/// @errors `resource_exhausted_error` if there is not enough memory, or if the size exceeds the range of a pointer difference.
struct buffer {
  explicit buffer(std::size_t bytes) : memory(allocate(bytes)), size(bytes) {}

  static std::unique_ptr<std::byte[]> allocate(std::size_t bytes) {
    return stepwell::detail::with_memory("could not create a queue of " + std::to_string(bytes) + " bytes", {}, [bytes] {
      if (!std::in_range<std::ptrdiff_t>(bytes)) { throw std::bad_alloc(); }
      return std::make_unique_for_overwrite<std::byte[]>(bytes);
    });
  }

  std::unique_ptr<std::byte[]> memory;
  std::size_t size;
};

}  // namespace

std::unique_ptr<byte_sink> sink_into(std::unique_ptr<file> target, std::uint64_t offset) {
  return std::make_unique<file_sink>(std::move(target), offset);
}

/// The state of a queue. Positions are numbers of bytes since its creation: synced <= written <= appended. The bytes between written and
/// appended are in the two buffers.
struct byte_queue::core : std::enable_shared_from_this<core> {
  core(std::unique_ptr<byte_sink> to, byte_queue_options given)
      : options(std::move(given)), half(std::max<std::size_t>(options.capacity_bytes / 2, 1)),
        wake_at(std::min(options.write_at_bytes, half)), sink(std::move(to)), filling(half), writing(half) {}

  const byte_queue_options options;
  const std::size_t half;
  const std::size_t wake_at;
  std::unique_ptr<byte_sink> sink;  // used by the task of the writer while it runs, otherwise by `close`; null after it was closed

  stepwell::detail::checked_mutex mutex;
  std::condition_variable changed;
  buffer filling STEPWELL_GUARDED_BY(mutex);
  buffer writing;                                   // changed with the lock; its bytes are used by the task of the writer without the lock
  std::size_t used STEPWELL_GUARDED_BY(mutex) = 0;  // number of used bytes of `filling`
  std::uint64_t appended STEPWELL_GUARDED_BY(mutex) = 0;
  std::uint64_t written STEPWELL_GUARDED_BY(mutex) = 0;
  std::uint64_t synced STEPWELL_GUARDED_BY(mutex) = 0;
  std::uint64_t wanted STEPWELL_GUARDED_BY(mutex) = 0;  // position up to which a sync is requested
  clock::time_point appends_until STEPWELL_GUARDED_BY(mutex) = forever;
  int waiting STEPWELL_GUARDED_BY(mutex) = 0;  // number of threads that wait for `changed`
  int starved STEPWELL_GUARDED_BY(mutex) = 0;  // number of those threads that wait for free memory in the queue
  enum class task { none, posted, running };
  task writer_task STEPWELL_GUARDED_BY(mutex) = task::none;
  bool is_closed STEPWELL_GUARDED_BY(mutex) = false;
  bool closes_in_task STEPWELL_GUARDED_BY(mutex) = false;  // true: the task of the writer closes the sink when it has written the rest
  const stepwell::detail::owner_process owner;
  std::shared_ptr<trace_recorder> asked_to_write STEPWELL_GUARDED_BY(mutex);  // recorder of the last traced append since the last write
  std::shared_ptr<trace_recorder> asked_to_sync
      STEPWELL_GUARDED_BY(mutex);  // recorder of the last traced request of a flush since the last sync
  std::optional<status> failure STEPWELL_GUARDED_BY(mutex);
  std::function<void(const status&)> on_failure STEPWELL_GUARDED_BY(mutex);
  std::atomic<bool> failed_fast = false;

  template<class Done>
  bool wait(stepwell::detail::mutex_lock& lock, clock::time_point until, Done done) STEPWELL_HOLDS(mutex) {
    ++waiting;
    const bool is_done = options.clock->wait_until(lock, changed, until, done);
    --waiting;
    return is_done;
  }

  void notify() STEPWELL_HOLDS(mutex) {
    if (waiting > 0) { changed.notify_all(); }
  }

  /// Posts the task of the writer, unless the queue has failed.
  void start() STEPWELL_HOLDS(mutex) {
    if (!failure) { post_task(); }
  }

  /// Posts the task of the writer. Does nothing if the task is posted or running already.
  /// Releases the lock meanwhile, because waking a thread takes longer than appending a record.
  void post_task() STEPWELL_HOLDS(mutex) {
    if (writer_task != task::none) { return; }
    writer_task = task::posted;
    const stepwell::detail::mutex_unlock unlocked(mutex);
    options.threads->post([self = shared_from_this()] {
      const stepwell::detail::mutex_lock lock(self->mutex);
      self->run_posted();
    });
  }

  /// Runs the task of the writer on this thread if it is posted but has not begun.
  void run_posted() STEPWELL_HOLDS(mutex) {
    if (writer_task == task::posted) { run(); }
  }

  [[nodiscard]] bool must_write() const STEPWELL_HOLDS(mutex) { return used > 0 && (used >= wake_at || starved > 0 || wanted > written); }

  /// Runs the task of the writer: writes and syncs while a write or a sync is due. Then closes the sink if nobody else will close it.
  void run() STEPWELL_HOLDS(mutex) {
    writer_task = task::running;
    while (!failure) {
      if (wanted > synced && written >= wanted) {
        sync();
      } else if (must_write()) {
        write();
      } else {
        break;
      }
    }
    if (closes_in_task && sink) { close_sink(); }
    writer_task = task::none;
    notify();
  }

  /// Calls `action` with the lock released.
  template<class Action>
  auto unlocked(Action action) STEPWELL_HOLDS(mutex) {
    const stepwell::detail::mutex_unlock released(mutex);
    return action();
  }
  /// Calls `work`, a function of the sink. Returns its exceptions as errors, so that the task of the writer can end properly.
  template<class Work>
  static result<void> guarded(Work work) {
    try {
      return work();
    } catch (...) { return status(errc::unknown, stepwell::detail::text_of(std::current_exception())); }
  }
  template<class Work>
  static result<void> traced(const std::shared_ptr<trace_recorder>& trace, Work work) {
    const trace_scope scope(trace);
    return guarded(work);
  }

  void write() STEPWELL_HOLDS(mutex) {
    std::swap(filling, writing);
    const auto count = std::exchange(used, 0);
    const auto trace = std::exchange(asked_to_write, nullptr);
    notify();  // the queue has free memory now
    const auto outcome = unlocked([&] { return traced(trace, [&] { return sink->write({writing.memory.get(), count}); }); });
    if (!outcome) { return fail(outcome.error()); }
    written += count;
    if (writing.size > half) { shrink_writing(); }  // the buffer has grown for one large record
  }

  /// Replaces `writing` by a buffer of normal size. Keeps the large buffer if there is not enough memory.
  void shrink_writing() {
    try {
      writing = buffer(half);
    } catch (const resource_exhausted_error&) {}  // NOLINT(bugprone-empty-catch): the large buffer works as well
  }

  void sync() STEPWELL_HOLDS(mutex) {
    const auto reached = written;
    const auto trace = std::exchange(asked_to_sync, nullptr);
    const auto outcome = unlocked([&] { return traced(trace, [&] { return sink->sync(); }); });
    if (!outcome) { return fail(outcome.error()); }
    synced = reached;
    notify();
  }

  void close_sink() STEPWELL_HOLDS(mutex) {
    auto closing = std::move(sink);
    const auto outcome = unlocked([&] {
      auto closed = guarded([&] { return closing->close(); });
      closing.reset();
      return closed;
    });
    if (!outcome && !failure) { fail(outcome.error()); }
  }

  void fail(status reason) STEPWELL_HOLDS(mutex) {
    failure = std::move(reason);
    failed_fast.store(true, std::memory_order_relaxed);
    used = 0;
    notify();
    if (const auto action = std::exchange(on_failure, nullptr)) {
      const auto told = *failure;
      const stepwell::detail::mutex_unlock unlocked(mutex);
      tell(action, told);
    }
  }

  /// Calls `action`. Logs its exceptions, so that the task of the writer can end properly.
  static void tell(const std::function<void(const status&)>& action, const status& reason) noexcept {
    try {
      action(reason);
    } catch (...) {
      log_error("the failure callback of a byte queue has thrown an exception: " + stepwell::detail::text_of(std::current_exception()));
    }
  }

  [[nodiscard]] bool has_space(std::size_t bytes) const STEPWELL_HOLDS(mutex) { return bytes <= filling.size - used || used == 0; }

  [[nodiscard]] std::optional<status> refusal() const STEPWELL_HOLDS(mutex) {
    if (failure) { return failure; }
    if (is_closed) { return status(errc::failed_precondition, "could not append: the queue is closed"); }
    return std::nullopt;
  }

  /// Blocks until the queue has free memory for `bytes`. Returns the error if the queue has failed or is closed, or if it is full at the time
  /// of `limit_waits`.
  std::optional<status> await_space(stepwell::detail::mutex_lock& lock, std::size_t bytes) STEPWELL_HOLDS(mutex) {
    ++starved;
    bool is_in_time = true;
    // Starts the writer again after each wake-up: another producer may have used the free memory, and the writer may have ended.
    while (is_in_time && !refusal() && !has_space(bytes)) {
      start();
      const auto until = appends_until;
      is_in_time = wait(lock, until, [&]() STEPWELL_HOLDS(mutex) {
        return refusal() || has_space(bytes) || writer_task == task::none || appends_until != until;
      });
    }
    --starved;
    return is_in_time ? refusal() : too_late("append a record");
  }

  /// Replaces `filling` by a buffer of `bytes`. Returns the error if there is not enough memory. @pre `filling` is empty.
  [[nodiscard]] std::optional<status> grow(std::size_t bytes) STEPWELL_HOLDS(mutex) {
    try {
      filling = buffer(bytes);
      return std::nullopt;
    } catch (const resource_exhausted_error&) {
      return status(errc::resource_exhausted,
                    "could not queue a record of " + std::to_string(bytes) + " bytes: there is not enough memory; write smaller records");
    }
  }

  void want_all() STEPWELL_HOLDS(mutex) {
    wanted = std::max(wanted, appended);
    if (wanted <= synced) { return; }
    if (auto trace = current_trace()) [[unlikely]] { asked_to_sync = std::move(trace); }
    start();
  }

  result<void> flush(stepwell::detail::mutex_lock& lock, clock::time_point until) STEPWELL_HOLDS(mutex) {
    const auto target = appended;
    want_all();
    return wait_synced(lock, target, until);
  }

  result<void> wait_synced(stepwell::detail::mutex_lock& lock, std::uint64_t target, clock::time_point until,
                           const std::stop_token& stop = {}) STEPWELL_HOLDS(mutex) {
    wait(lock, until, [&]() STEPWELL_HOLDS(mutex) { return synced >= target || failure || stop.stop_requested(); });
    if (synced >= target) { return {}; }
    if (failure) { return *failure; }
    return too_late("flush");
  }

  [[nodiscard]] status too_late(const std::string& what) const STEPWELL_HOLDS(mutex) {
    return {errc::deadline_exceeded, "could not " + what + " in time: " + std::to_string(appended - synced) +
                                         " bytes are not yet on disk; the disk is slow or hangs, increase the time limit"};
  }
};

byte_queue::byte_queue(std::unique_ptr<byte_sink> sink, byte_queue_options options)
    : core_(std::make_shared<core>(std::move(sink), std::move(options))) {}

byte_queue::~byte_queue() {
  if (const auto closed = close(); !closed) { log_error(closed.error().to_string()); }
}

byte_queue::reservation byte_queue::reserve(std::size_t max_bytes) {
  core& all = *core_;
  reservation reserved{stepwell::detail::mutex_lock(all.mutex), nullptr, std::nullopt};
  std::optional<status> refusal;
  if (all.failure || all.is_closed || !all.has_space(max_bytes)) [[unlikely]] { refusal = all.await_space(reserved.lock, max_bytes); }
  if (!refusal && max_bytes > all.filling.size - all.used) [[unlikely]] { refusal = all.grow(max_bytes); }
  if (refusal) [[unlikely]] {
    reserved.refusal = std::move(refusal);
    return reserved;
  }
  reserved.bytes = all.filling.memory.get() + all.used;
  return reserved;
}

void byte_queue::commit(std::size_t used) {
  core& all = *core_;
  all.used += used;
  all.appended += used;
  if (auto trace = current_trace()) [[unlikely]] { all.asked_to_write = std::move(trace); }
  if (all.used >= all.wake_at && all.writer_task == core::task::none) [[unlikely]] { all.start(); }
}

result<void> byte_queue::append(std::span<const std::byte> record) {
  return append(record.size(), [record](std::byte* into) {
    if (!record.empty()) { std::memcpy(into, record.data(), record.size()); }
    return record.size();
  });
}

bool byte_queue::has_space(std::size_t bytes) const {
  const stepwell::detail::mutex_lock lock(core_->mutex);
  return !core_->refusal() && core_->has_space(bytes);
}

result<void> byte_queue::wait_for_space(std::size_t bytes) {
  stepwell::detail::mutex_lock lock(core_->mutex);
  if (auto refusal = core_->await_space(lock, bytes)) { return std::move(*refusal); }
  return {};
}

void byte_queue::limit_waits(clock::time_point until) {
  const stepwell::detail::mutex_lock lock(core_->mutex);
  core_->appends_until = until;
  core_->notify();
}

void byte_queue::request_flush() { static_cast<void>(start_flush()); }

byte_queue::pending_flush byte_queue::start_flush() {
  stepwell::detail::mutex_lock lock(core_->mutex);
  const auto target = core_->appended;
  core_->want_all();
  return pending_flush(core_, target);
}

byte_queue::pending_flush::pending_flush(std::shared_ptr<core> queue, std::uint64_t target) noexcept
    : queue_(std::move(queue)), target_(target) {}

/// Runs a posted task here, because in the pool it could be queued behind the job that makes this call.
result<void> byte_queue::pending_flush::wait(clock::time_point until, const std::stop_token& stop) const {
  {
    stepwell::detail::mutex_lock lock(queue_->mutex);
    queue_->run_posted();
  }
  return wait_for_pool(until, stop);
}

result<void> byte_queue::pending_flush::wait_for_pool(clock::time_point until, const std::stop_token& stop) const {
  const std::stop_callback wake(stop, [this] {
    { const stepwell::detail::mutex_lock lock(queue_->mutex); }  // so that the notification is not lost
    queue_->changed.notify_all();
  });
  stepwell::detail::mutex_lock lock(queue_->mutex);
  return queue_->wait_synced(lock, target_, until, stop);
}

const clock& byte_queue::pending_flush::time() const noexcept { return *queue_->options.clock; }

result<void> byte_queue::flush(clock::time_point until) {
  stepwell::detail::mutex_lock lock(core_->mutex);
  return core_->flush(lock, until);
}

bool byte_queue::pending_flush::is_all() const {
  const stepwell::detail::mutex_lock lock(queue_->mutex);
  return queue_->appended == target_;
}

void byte_queue::detach() {
  core& all = *core_;
  if (!all.owner.is_this_process()) { return; }  // like `close`
  stepwell::detail::mutex_lock lock(all.mutex);
  if (std::exchange(all.is_closed, true)) { return; }
  all.notify();
  all.closes_in_task = true;
  all.want_all();
  if (all.sink) { all.post_task(); }  // also if no bytes are left, or after a failure
}

result<void> byte_queue::close(clock::time_point until) {
  core& all = *core_;
  if (!all.owner.is_this_process()) { return {}; }  // a child process made by fork: the parent writes the data
  stepwell::detail::mutex_lock lock(all.mutex);
  if (std::exchange(all.is_closed, true)) { return {}; }
  all.notify();
  auto flushed = all.flush(lock, until);
  if (!all.wait(lock, until, [&]() STEPWELL_HOLDS(all.mutex) { return all.writer_task == core::task::none; })) {
    all.closes_in_task = true;
    return all.too_late("close");
  }
  const auto sink = std::move(all.sink);
  lock.unlock();
  auto closed = core::guarded([&] { return sink->close(); });
  return flushed ? std::move(closed) : std::move(flushed);
}

bool byte_queue::has_failed() const noexcept { return core_->failed_fast.load(std::memory_order_relaxed); }

std::optional<status> byte_queue::failure() const {
  const stepwell::detail::mutex_lock lock(core_->mutex);
  return core_->failure;
}

void byte_queue::on_failure(std::function<void(const status&)> action) {
  stepwell::detail::mutex_lock lock(core_->mutex);
  if (core_->failure) {
    const auto told = *core_->failure;
    lock.unlock();
    action(told);
  } else {
    core_->on_failure = std::move(action);
  }
}

}  // namespace stepwell::io
