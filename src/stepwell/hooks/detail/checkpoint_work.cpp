// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/checkpoint_work.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/hook/detail/error_collector.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <exception>
#include <utility>

namespace stepwell {

checkpoint_work::checkpoint_work(const checkpoint_saver_options& options)
    : listeners_(options.listeners), directory_(options.checkpoint_dir),
      summary_dir_(options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir), saver_options_(options.saver),
      event_options_(options.events) {
  check_saver_options(saver_options_);
}

saver& checkpoint_work::open() {
  if (!saver_) { saver_.emplace(directory_, saver_options_); }
  return *saver_;
}

void checkpoint_work::begin() {
  if (std::exchange(is_closed_, false)) { saver_.reset(); }  // a hook that is used again locks the directory again
  open();
  events_ = summary::writer::shared(summary_dir_, event_options_);
  for (const auto& listener : listeners_) { listener->begin(); }
}

void checkpoint_work::attach(std::shared_ptr<session_signals> signals, std::size_t state_bytes) {
  constexpr std::size_t room_for_ours = 4096;  // hook state and positions; a buffer grows if they need more
  signals_ = std::move(signals);
  last_saved_step_ = announced_step_ = first_step_ = last_step_ = std::nullopt;  // of a previous session
  if (!buffers_) { buffers_.emplace(state_bytes + room_for_ours, saver_->options().max_staged); }
  saver_->on_saved([this](const saved_checkpoint& saved) {
    failed_ = false;
    signals_->note_checkpoint();
    {
      const std::lock_guard lock(mutex_);
      done_.push_back(saved);
      ++counts_.saves;
      counts_.bytes_saved += static_cast<std::int64_t>(saved.size_bytes);
      counts_.last_save_time = saved.seconds;
      counts_.total_save_time += saved.seconds;
    }
    signals_->notify();
  });
  saver_->on_failure([this](const std::exception_ptr&) {
    failed_ = true;
    {
      const std::lock_guard lock(mutex_);
      ++counts_.saves_failed;
    }
    signals_->notify();
  });
}

std::optional<std::int64_t> checkpoint_work::last_saved_step() const noexcept { return failed_ ? std::nullopt : last_saved_step_; }

bool checkpoint_work::holds(const std::string& prefix) const {
  const auto listed = saver_->checkpoints();
  return std::ranges::find(listed, prefix) != listed.end() || io::parent_directory(prefix) == saver_->directory();
}

bool checkpoint_work::try_save(const boundary_state& state) {
  auto buffer = last_step_ ? buffers_->try_acquire() : saver_->try_acquire(*buffers_);
  if (!buffer) {
    if (last_step_ || saver_options_.when_busy != when_busy::skip) { return false; }
    warn_skipped(state.global_step);
    return true;
  }
  tell_before_save(state.global_step);
  if (!hand_over(snapshot::capture(std::move(*buffer), state.variables, state.global_step), state.wait_for_records)) { return false; }
  announced_step_.reset();
  return true;
}

/// Passes a snapshot to the saver. Returns false if the last state must be saved and is not saved yet. The checkpoint is committed after
/// the records up to its step, because a run that continues from it does not write them again.
bool checkpoint_work::hand_over(snapshot taken, std::function<void()> wait_for_records) {
  const auto step = taken.step();
  try {
    if (saver_->save(std::move(taken), std::move(wait_for_records)) == save_outcome::skipped) {
      if (!last_step_) { warn_skipped(step); }
      return !last_step_;
    }
  } catch (...) {
    if (!last_step_) { throw; }
    signals_->report_failure(std::current_exception());  // failure of an earlier save; thrown once everything is closed
    return false;
  }
  last_saved_step_ = step;
  return true;
}

void checkpoint_work::report(session_metrics& all) const {
  all.under_way += saver_->backlog();
  const std::lock_guard lock(mutex_);
  all.saves += counts_.saves;
  all.saves_failed += counts_.saves_failed;
  all.saves_skipped += counts_.saves_skipped;
  all.bytes_saved += counts_.bytes_saved;
  all.last_save_time = counts_.last_save_time;
  all.total_save_time += counts_.total_save_time;
}

void checkpoint_work::warn_skipped(std::int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.saves_skipped;
  }
  log_warning(fmt::format("{}: the disk is slower than the cadence; step {} is not saved", saver_->directory(), step));
}

void checkpoint_work::wait_ready(const deadline& until) {
  auto& time = *saver_->options().clock;
  if (buffers_->acquire_until(time, until.on(time))) { return; }
  throw deadline_exceeded_error(
      "this state cannot be saved because earlier saves have not ended; the disk is too slow, or does not respond", saver_->directory());
}

void checkpoint_work::process_events() {
  detail::error_collector failures;
  failures.attempt([&] { tell_after_save(); });
  failures.attempt([&] { saver_->throw_if_failed(); });
  failures.rethrow();
}

void checkpoint_work::drain(const deadline& until) {
  detail::error_collector failures;
  failures.attempt([&] { saver_->drain(until.on(*saver_->options().clock)); });
  failures.attempt([&] { tell_after_save(); });
  if (last_step_) {
    for (const auto& listener : listeners_) {
      failures.attempt([&] { listener->end(*last_step_); });
    }
  }
  failures.rethrow();
}

/// Releases the directory for the next session, even if this object lives on.
void checkpoint_work::flush(const deadline& /*until*/) {
  is_closed_ = true;
  saver_->close();
}

void checkpoint_work::detach() {
  if (std::exchange(is_closed_, true) || !saver_) { return; }
  saver_->detach();
}

void checkpoint_work::hold_until_released(const std::shared_ptr<void>& hold) {
  if (saver_) { saver_->hold_until_released(hold); }
}

void checkpoint_work::tell_before_save(std::int64_t step) {
  if (std::exchange(announced_step_, step) == step) { return; }  // called again after a wait
  detail::error_collector failures;
  for (const auto& listener : listeners_) {
    failures.attempt([&] { listener->before_save(step); });
  }
  failures.rethrow();
}

void checkpoint_work::tell_after_save() {
  std::vector<saved_checkpoint> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  detail::error_collector failures;
  for (const auto& saved : done) {
    failures.attempt([&] { events_->add_session_log(format::session_status::checkpoint, saved.step, saved.prefix); });
    for (const auto& listener : listeners_) {
      failures.attempt([&] {
        const bool is_asked = listener->after_save(saved);
        if (!is_asked || last_step_ || saved.step == first_step_) { return; }  // contract HOOK-CKPT-13
        signals_->request_stop({stop_cause::requested, "requested by a checkpoint listener after " + saved.prefix});
      });
    }
  }
  failures.rethrow();
}

}  // namespace stepwell
