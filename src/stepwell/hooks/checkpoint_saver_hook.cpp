// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/checkpoint_saver_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/hooks/detail/save_budget.hpp"
#include "stepwell/hooks/detail/saver_work.hpp"
#include "stepwell/hooks/detail/writer_work.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <stop_token>
#include <utility>

namespace stepwell {
namespace detail {

/// A saver with its buffers and listeners, and with the CHECKPOINT events in the event file.
class checkpoint_work final : public saver_work {
public:
  /// Stores the options; does not lock the directory.
  /// @errors Those of `check_saver_options`.
  explicit checkpoint_work(checkpoint_saver_options options) : saver_work(options.log_every_secs), options_(std::move(options)) {
    check_saver_options(options_.saver);
    refuse_negative("log_every_secs", options_.log_every_secs);
    options_.checkpoint_dir = value_or_throw(io::absolute_path(options_.checkpoint_dir));
    options_.summary_dir = value_or_throw(io::absolute_path(options_.summary_dir));
  }
  checkpoint_work(const checkpoint_work&) = delete;
  checkpoint_work& operator=(const checkpoint_work&) = delete;
  ~checkpoint_work() override { destroy_saver(); }

  /// Locks the directory, unless this object has locked it already.
  /// @errors Those of the constructor of `saver`.
  stepwell::saver& open() {
    if (!has_saver()) { open_saver(options_.checkpoint_dir, options_.saver); }
    return saver();
  }

  void begin() {
    drop_closed_saver();
    open();
    events_ = summary::writer::shared(options_.summary_dir.empty() ? options_.checkpoint_dir : options_.summary_dir, options_.events);
    for (const auto& listener : options_.listeners) { listener->begin(); }
  }

  /// Connects the work to a session: failures and finished saves notify it. Removes the ending file of an earlier session;
  /// a session that could not be created has left it.
  void attach(const session_requests& session) {
    is_postponed_ = false;
    last_saved_step_ = announced_step_ = first_step_ = last_step_ = std::nullopt;  // of a previous session
    remove_ending_file(files(), options_.checkpoint_dir);
    const auto note_durable = [this](const saved_checkpoint& saved) {
      failed_ = false;
      signals()->note_checkpoint();
      const detail::mutex_lock lock(mutex_);
      done_.push_back(saved);
      ++counts_.saves;
      counts_.bytes_saved += static_cast<std::int64_t>(saved.size_bytes);
      counts_.last_save_time = saved.seconds;
      counts_.total_save_time += saved.seconds;
    };
    const auto note_failed = [this] {
      failed_ = true;
      const detail::mutex_lock lock(mutex_);
      ++counts_.saves_failed;
    };
    constexpr auto unlimited = std::numeric_limits<std::size_t>::max();  // the saver limits the total size
    attach_to(session, unlimited, note_durable, note_failed);
  }

  [[nodiscard]] const std::shared_ptr<summary::writer>& events() const noexcept { return events_; }
  /// Returns true if the checkpoint `prefix` belongs to this directory.
  [[nodiscard]] bool holds(const std::string& prefix) const {
    const auto listed = saver().checkpoints();
    return std::ranges::find(listed, prefix) != listed.end() || io::parent_directory(prefix) == saver().directory();
  }

  /// Records that `step` is saved or being saved, with the stop that belongs to it if `has_stop` is true.
  void note_saved(std::int64_t step, bool has_stop) noexcept {
    last_saved_step_ = step;
    has_saved_stop_ = has_stop;
  }
  /// Records that the save of `step` is the one at the start of the run.
  void note_first(std::int64_t step) noexcept { first_step_ = step; }
  /// Returns true if `step` is the last one that is saved or being saved, unless the latest save failed or lacks the requested stop.
  [[nodiscard]] bool is_saved(std::int64_t step) const {
    return !failed_ && last_saved_step_ == step && (has_saved_stop_ || !signals()->stop_of_step());
  }
  /// Announces that the session closes at `step`: no save is skipped any more.
  void must_save(std::int64_t step) noexcept { last_step_ = step; }

  bool try_save(const boundary_state& state) override {
    size_bytes_ = std::max(snapshot_size(state.variables), taken_bytes_);
    if (!saver().make_room(size_bytes_)) {
      has_waited_ = !leave_out(state);
      return !has_waited_;
    }
    tell_before_save(state.global_step);
    if (state.copy) { state.copy->drop(); }
    held_save taken{state.capture(buffers().acquire(), saver().options().pool.get()), state.has_stop, state.wait_for_records, state.copy};
    taken_bytes_ = taken.taken.size_bytes();
    if (state.precedes_body) {
      held_ = std::move(taken);
      note_saved(state.global_step, state.has_stop);
      signals()->note_held();
    } else if (!hand_over(std::move(taken))) {
      return false;
    }
    note_wait(state.global_step);
    announced_step_.reset();
    is_postponed_ = false;
    if (budget_) { budget_->accept(); }
    return true;
  }
  void measure_with(std::shared_ptr<save_budget> budget) noexcept { budget_ = std::move(budget); }
  void end_body() noexcept override {
    if (!held_) { return; }
    if (signals()->stop_of_step()) { return drop_held(); }  // requested since then
    last_saved_step_.reset();
    try {
      static_cast<void>(hand_over(*std::exchange(held_, std::nullopt)));
    } catch (...) { signals()->report_failure(std::current_exception()); }
  }
  void drop_held() noexcept override {
    auto dropped = std::exchange(held_, std::nullopt);
    if (!dropped) { return; }
    last_saved_step_.reset();
    if (dropped->copy) { dropped->copy->keep(std::move(dropped->taken), false); }
  }
  [[nodiscard]] bool is_save_due() override { return is_postponed_ && saver().make_room(size_bytes_); }
  [[nodiscard]] bool wants_last_save(std::int64_t step) const override { return !is_saved(step); }

  void write_records() override {
    detail::mutex_lock lock(mutex_);
    const std::vector<saved_checkpoint> saved(done_.begin() + static_cast<std::ptrdiff_t>(recorded_), done_.end());
    recorded_ = done_.size();
    lock.unlock();  // the queue of the writer may be full
    for (const auto& one : saved) { write_record(one); }
  }

  void process_events() override {
    error_collector failures;
    failures.attempt([&] { tell_after_save(); });
    failures.attempt([&] { saver().throw_if_failed(); });
    failures.rethrow();
  }

  void drain(const deadline& until) override {
    error_collector failures;
    failures.attempt([&] { wait_for_saves(until); });
    failures.attempt([&] { tell_after_save(); });
    if (last_step_) {
      tell_listeners(failures, [&](auto& listener) { listener.end(*last_step_); });
    }
    failures.rethrow();
  }

  void write_ending(const run_ending& ending) override {
    if (saver().is_in_place()) { write_ending_file(files(), options_.checkpoint_dir, ending); }
    saver_work::write_ending(ending);
    if (!newest_.empty()) { signals()->show("checkpoint", newest_); }
  }

  void report(session_metrics& all) const override {
    saver_work::report(all);
    const detail::mutex_lock lock(mutex_);
    all.saves += counts_.saves;
    all.saves_failed += counts_.saves_failed;
    all.saves_skipped += counts_.saves_skipped;
    all.saves_postponed += counts_.saves_postponed;
    all.saves_waited += counts_.saves_waited;
    all.total_save_wait += counts_.total_save_wait;
    all.bytes_saved += counts_.bytes_saved;
    all.last_save_time = counts_.last_save_time;
    all.total_save_time += counts_.total_save_time;
  }

private:
  [[nodiscard]] bool wait_for_room(clock::time_point until, const std::stop_token& stop) override {
    const auto begin = time().now();
    const bool has_room = saver().wait_for_room(size_bytes_, until, stop);
    waited_ += time().now() - begin;
    return has_room;
  }

  [[nodiscard]] io::file_system& files() const noexcept { return *saver().options().file_system; }

  /// A copy of the state, with the members of its `boundary_state` that a save of it needs.
  struct held_save {
    snapshot taken;
    bool has_stop;
    std::function<void()> wait_for_records;
    std::shared_ptr<recovery_copy> copy;
  };

  /// Passes a snapshot to the saver. Returns false if the last state must be saved and is not saved yet. The checkpoint is committed
  /// after the records up to its step, because a run that continues from it does not write them again.
  [[nodiscard]] bool hand_over(held_save held) {
    const auto step = held.taken.step();
    std::function<void(snapshot)> if_failed;
    if (held.copy) {
      if_failed = [copy = std::move(held.copy)](snapshot unsaved) { copy->keep(std::move(unsaved), false); };
    }
    try {
      if (saver().save(std::move(held.taken), std::move(held.wait_for_records), std::move(if_failed)) == save_outcome::skipped) {
        if (!last_step_) { warn_skipped(step); }
        return !last_step_;
      }
    } catch (...) {
      if (!last_step_) { throw; }
      signals()->report_failure(std::current_exception());  // failure of an earlier save; thrown once everything is closed
      return false;
    }
    note_saved(step, held.has_stop);
    return true;
  }

  /// Applies the policy to a state for which there is no room. Returns false if the session must wait for earlier saves.
  [[nodiscard]] bool leave_out(const boundary_state& state) {
    const auto policy = options_.saver.when_busy;
    if (last_step_) { return false; }
    if (policy == when_busy::skip) { return warn_skipped(state.global_step), true; }
    if (policy != when_busy::postpone || state.is_last) { return false; }
    is_postponed_ = true;
    const detail::mutex_lock lock(mutex_);
    ++counts_.saves_postponed;
    return true;
  }

  void warn_skipped(std::int64_t step) {
    {
      const detail::mutex_lock lock(mutex_);
      ++counts_.saves_skipped;
    }
    log_warning(fmt::format("{}: the disk is slower than the cadence; step {} is not saved", saver().directory(), step));
  }

  /// Counts the wait before the save of `step`, if there was one. Logs the first wait of a second or more.
  void note_wait(std::int64_t step) {
    if (!std::exchange(has_waited_, false)) { return; }
    const std::chrono::duration<double> waited = std::exchange(waited_, {});
    {
      const detail::mutex_lock lock(mutex_);
      ++counts_.saves_waited;
      counts_.total_save_wait += waited;
    }
    if (waited.count() < 1 || std::exchange(is_wait_logged_, true)) { return; }
    log_warning(
        fmt::format("{}: the disk is slower than the cadence; the save of step {} waited {:.1f} s for earlier saves, and training "
                    "with it. Save less often, or see when_busy",
                    saver().directory(), step, waited.count()));
  }

  void tell_listeners(error_collector& failures, const auto& call) const {
    for (const auto& listener : options_.listeners) {
      failures.attempt([&] { call(*listener); });
    }
  }

  void tell_before_save(std::int64_t step) {
    if (std::exchange(announced_step_, step) == step) { return; }  // called again after a wait
    error_collector failures;
    tell_listeners(failures, [&](auto& listener) { listener.before_save(step); });
    failures.rethrow();
  }

  void tell_after_save() {
    std::vector<saved_checkpoint> done;
    std::size_t recorded = 0;
    {
      const detail::mutex_lock lock(mutex_);
      done.swap(done_);
      std::swap(recorded, recorded_);
    }
    error_collector failures;
    if (!done.empty()) { log_saved(done.back()); }
    for (const auto& saved : done) {
      if (recorded == 0) {
        failures.attempt([&] { write_record(saved); });
      } else {
        --recorded;
      }
      tell_listeners(failures, [&](auto& listener) {
        const bool is_asked = listener.after_save(saved);
        if (!is_asked || last_step_ || saved.step == first_step_) { return; }  // contract HOOK-CKPT-13
        signals()->request_stop({stop_cause::requested, "requested by a checkpoint listener after " + saved.prefix});
      });
    }
    failures.rethrow();
  }

  void write_record(const saved_checkpoint& saved) {
    events_->add_session_log(format::session_status::checkpoint, saved.step, saved.prefix);
  }

  /// Logs a durable checkpoint, at most once in a while, and displays it in the progress of the session.
  void log_saved(const saved_checkpoint& saved) {
    signals()->show("saved", std::to_string(saved.step));
    newest_ = saved.prefix;
    log(fmt::format("saved {}, {} in {}", saved.prefix, size_text(static_cast<double>(saved.size_bytes)), time_text(saved.seconds)));
  }
  static std::string size_text(double bytes) {
    constexpr std::pair<double, const char*> units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    for (const auto& [size, unit] : units) {
      if (bytes >= size) { return fmt::format("{:.1f} {}", bytes / size, unit); }
    }
    return fmt::format("{:.0f} B", bytes);
  }
  static std::string time_text(std::chrono::duration<double> time) {
    return time.count() < 1 ? fmt::format("{:.0f} ms", time.count() * 1e3) : fmt::format("{:.1f} s", time.count());
  }

  checkpoint_saver_options options_;
  std::shared_ptr<save_budget> budget_;  // null if the period is fixed
  std::shared_ptr<summary::writer> events_;
  std::optional<held_save> held_;  // until the body of the loop has handled its step
  std::optional<std::int64_t> last_saved_step_;
  bool has_saved_stop_ = false;  // the state of `last_saved_step_` has the stop that belongs to it
  std::optional<std::int64_t> announced_step_;
  std::string newest_;           // prefix of the newest checkpoint that this session has saved
  std::size_t size_bytes_ = 0;   // expected size of the last state to save
  std::size_t taken_bytes_ = 0;  // size of the last copy, with strings, whose lengths are not known before the copy
  bool is_postponed_ = false;    // a save is due, and there was no room
  bool has_waited_ = false;      // the session has waited for room since the last save
  clock::duration waited_{};
  bool is_wait_logged_ = false;
  std::optional<std::int64_t> first_step_;
  std::optional<std::int64_t> last_step_;  // set when the session closes cleanly

  mutable detail::checked_mutex mutex_;
  std::vector<saved_checkpoint> done_ STEPWELL_GUARDED_BY(mutex_);  // durable, but listeners are not notified yet
  std::size_t recorded_ STEPWELL_GUARDED_BY(mutex_) = 0;            // number of the first elements of `done_` whose records are written
  session_metrics counts_ STEPWELL_GUARDED_BY(mutex_);              // only the members about saves are used
  std::atomic<bool> failed_ = false;
};

}  // namespace detail

checkpoint_saver_hook::checkpoint_saver_hook(const checkpoint_saver_options& options) : checkpoint_saver_hook(deferred(options)) {
  work_->open();
}

checkpoint_saver_hook checkpoint_saver_hook::deferred(const checkpoint_saver_options& options) {
  const auto when = detail::choose_saves({{"save_steps", options.save_steps, "save_secs", options.save_secs},
                                          "save_overhead",
                                          options.save_overhead,
                                          "save_interval",
                                          options.save_interval},
                                         std::nullopt);
  if (!when) {
    throw invalid_argument_error("checkpoint_saver_hook: one of save_secs, save_steps and save_overhead must be given and above zero");
  }
  return checkpoint_saver_hook(options, *when);
}

checkpoint_saver_hook::checkpoint_saver_hook(const checkpoint_saver_options& options, const detail::save_schedule& when)
    : period_(when.period) {
  if (options.checkpoint_dir.empty()) { throw invalid_argument_error("checkpoint_saver_hook: checkpoint_dir is empty"); }
  work_ = std::make_shared<detail::checkpoint_work>(options);
  if (!when.share) { return; }
  budget_ = std::make_shared<detail::save_budget>(*when.share, when.bounds, options.checkpoint_dir);
  work_->measure_with(budget_);
}

void checkpoint_saver_hook::begin() {
  if (work_) { work_->begin(); }
}

void checkpoint_saver_hook::start(const session_requests& session, std::int64_t step) {
  if (budget_) {
    budget_->start(session.time(), session.name());
    act_after(budget_->interval(), session, step);
  } else {
    timer_ = second_or_step_timer(period_, session.time());
    timer_.update_last_triggered_step(step);
  }
  work_->attach(session);
  session.add_work(work_);
  watch_writer(session, work_->events());
  const auto& origin = session.restored_from();
  if (origin && work_->holds(*origin)) { return work_->note_saved(step, session.restored_stop()); }  // saved already; contract D-5
  work_->note_first(step);
  request_save(session, step);
}

bool checkpoint_saver_hook::is_saved(std::int64_t step) const noexcept { return work_->is_saved(step); }

void checkpoint_saver_hook::act(const session_requests& session, std::int64_t step) {
  if (!budget_ || !budget_->is_saving()) { return request_save(session, step); }
  if (!saver().busy()) { act_after(budget_->end(step), session, step); }
}

void checkpoint_saver_hook::request_save(const session_requests& session, std::int64_t step) {
  if (budget_) {
    budget_->begin(step);
    act_after(std::chrono::seconds(0), session, step);  // from the next step on, each step looks whether the save has ended
  } else {
    timer_.update_last_triggered_step(step);
  }
  session.request_save(*work_);
}

void checkpoint_saver_hook::act_after(std::chrono::duration<double> wait, const session_requests& session, std::int64_t step) {
  timer_ = second_or_step_timer({.every_secs = wait}, session.time());
  timer_.update_last_triggered_step(step);
}

void checkpoint_saver_hook::request_last_save(const session_requests& session, std::int64_t step) const {
  work_->must_save(step);
  if (!work_->is_saved(step)) { session.request_save(*work_); }
}

saver& checkpoint_saver_hook::saver() {
  work_->end_body();
  return work_->open();
}

std::function<std::optional<checkpoint_reader>()> checkpoint_saver_hook::checkpoint_finder() const {
  return [work = work_] { return work->open().open_newest(); };
}

}  // namespace stepwell
