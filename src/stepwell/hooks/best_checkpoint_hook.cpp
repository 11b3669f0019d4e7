// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/best_checkpoint_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/hooks/detail/saver_work.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <mutex>
#include <vector>

namespace stepwell {
namespace detail {

/// A tensor of a snapshot. As a variable it can only be read.
struct snapshot_element {
  tensor_view view;
};

}  // namespace detail

template<>
struct tensor_adapter<detail::snapshot_element> {
  static constexpr bool is_writable = true;  // required of variables; a capture only reads them
  static constexpr bool is_borrowed = true;

  static tensor_view view(const detail::snapshot_element& value) { return value.view; }
};

namespace detail {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw invalid_argument_error("best_checkpoint_hook: " + why); }

void check(const best_checkpoint_options& options) {
  if (options.keep < 1) { refuse(fmt::format("invalid keep={}; it must be above zero", options.keep)); }
  if (!(options.min_delta >= 0)) { refuse(fmt::format("invalid min_delta={}; it must not be negative", options.min_delta)); }
  if (options.every_n_steps < 1) { refuse(fmt::format("invalid every_n_steps={}; it must be above zero", options.every_n_steps)); }
  if (options.name.empty() || options.name.find('/') != std::string::npos || options.name.starts_with('.')) {
    refuse("invalid name=\"" + options.name + "\"; it must be the name of a directory, without slashes and not beginning with a dot");
  }
  refuse_negative("log_every_secs", options.log_every_secs);
  if (options.saver.pool) { refuse("saver.pool is given; the hook has its own thread, on which other saves can wait for its saves"); }
  check_saver_options(options.saver);
}

saver_options completed(saver_options options, int keep, const std::shared_ptr<clock>& time) {
  options.basename = default_checkpoint_basename;
  options.max_to_keep = keep;
  options.max_staged_bytes = std::numeric_limits<std::size_t>::max();  // the only buffer, and the state of a failed save, which has left it
  options.when_busy = when_busy::wait;
  options.pool = std::make_shared<io::pool>(1);
  if (!options.clock) { options.clock = time; }
  return options;
}

/// References to the variables of a snapshot, with which it can be copied.
struct snapshot_variables {
  explicit snapshot_variables(const snapshot& taken) {
    const auto entries = taken.entries();
    strings.reserve(entries.size());
    for (const auto& entry : entries) {
      if (entry.dtype == dtype::string) {
        strings.push_back(entry.strings);
        all.emplace_back(std::string(entry.name), std::span(strings.back()), tensor_shape(entry.shape));
      } else {
        all.emplace_back(std::string(entry.name), snapshot_element{{entry.dtype, entry.shape, entry.bytes}});
      }
    }
  }
  std::vector<std::vector<std::string>> strings;
  variable_list all;
};

/// The saves of a `best_work` that have been accepted, until they are durable. The saver shares this object.
/// @threads Any.
class best_saves {
public:
  /// A best state. Each accepted state is better than the one before it; the first one has the number 1.
  struct numbered {
    scored_checkpoint checkpoint;
    std::uint64_t number;
  };

  void accept(scored_checkpoint checkpoint) {
    const detail::mutex_lock lock(mutex_);
    failed_.reset();
    in_flight_.push_back({std::move(checkpoint), ++count_});
  }
  /// Returns the number of the last state that was accepted.
  [[nodiscard]] std::uint64_t count() const {
    const detail::mutex_lock lock(mutex_);
    return count_;
  }
  void note_durable(std::int64_t step) {
    const detail::mutex_lock lock(mutex_);
    if (const auto save = find(step); save != in_flight_.end()) { in_flight_.erase(save); }
    if (failed_ && failed_->save.checkpoint.step == step) { failed_.reset(); }
  }
  /// Keeps the state of a failed save, unless a better state has been accepted since.
  void note_failed(snapshot state) {
    const detail::mutex_lock lock(mutex_);
    const auto save = find(state.step());
    if (save == in_flight_.end()) { return; }
    if (save->number == count_) {
      state.leave_pool();
      failed_.emplace(std::move(*save), std::move(state));
    }
    in_flight_.erase(save);
  }
  /// Returns the kept state, whose save begins again. Empty if there is none.
  [[nodiscard]] std::optional<snapshot> take_unsaved() {
    const detail::mutex_lock lock(mutex_);
    if (!failed_ || !failed_->state) { return std::nullopt; }
    in_flight_.push_back(failed_->save);
    return std::exchange(failed_->state, std::nullopt);
  }
  /// Returns the kept state.
  [[nodiscard]] std::optional<numbered> unsaved() const {
    const detail::mutex_lock lock(mutex_);
    return failed_ && failed_->state ? std::optional(failed_->save) : std::nullopt;
  }
  /// Returns the newest state if its save has failed, until it is durable: also while its save runs again.
  [[nodiscard]] std::optional<numbered> failed() const {
    const detail::mutex_lock lock(mutex_);
    return failed_ ? std::optional(failed_->save) : std::nullopt;
  }
  [[nodiscard]] std::size_t held_bytes() const {
    const detail::mutex_lock lock(mutex_);
    return failed_ && failed_->state ? failed_->state->held_bytes() : 0;
  }

private:
  struct failed_save {
    failed_save(numbered of, snapshot kept) : save(std::move(of)), state(std::move(kept)) {}
    numbered save;
    std::optional<snapshot> state;  // empty while it is saved again
  };

  [[nodiscard]] std::vector<numbered>::iterator find(std::int64_t step) STEPWELL_HOLDS(mutex_) {
    return std::ranges::find(in_flight_, step, [](const numbered& save) { return save.checkpoint.step; });
  }

  mutable detail::checked_mutex mutex_;
  std::uint64_t count_ STEPWELL_GUARDED_BY(mutex_) = 0;
  std::vector<numbered> in_flight_ STEPWELL_GUARDED_BY(mutex_);    // oldest first
  std::optional<failed_save> failed_ STEPWELL_GUARDED_BY(mutex_);  // its save has failed, and has not succeeded since
};

}  // namespace

/// The saver of the best checkpoints.
class best_work final : public saver_work {
public:
  best_work(std::string what, const best_checkpoint_options& options)
      : saver_work(options.log_every_secs), what_(std::move(what)), options_(options) {}

  /// Locks the directory, unless this object has locked it already.
  void open(const session_requests& session) {
    drop_closed_saver();
    if (has_saver()) { return; }
    const auto& directory = options_.directory.empty() ? session.directory() : options_.directory;
    if (directory.empty()) {
      throw failed_precondition_error(
          "best_checkpoint_hook: this session has no directory; give it a checkpoint_dir, or give the hook a directory. A worker has none: "
          "give the hook to the chief, see chief_only");
    }
    auto saver_settings = completed(options_.saver, options_.keep, session.time());
    if (!saver_settings.file_system && directory == session.directory()) { saver_settings.file_system = session.file_system(); }
    open_saver(io::join_path(directory, options_.name), saver_settings);
    best_ = best_checkpoint(directory, options_.name, saver().options().file_system);
    lost_.reset();
    {
      const std::lock_guard lock(saves_mutex_);
      saves_ = std::make_shared<best_saves>();
    }
    if (best_ && !session.restored_from()) {
      log_warning(
          fmt::format("{}: this training begins anew, and the directory holds the best state of an earlier start, with {} = {} at step "
                      "{}; only a better state replaces it. This is right if that start was killed before its first checkpoint. If it was "
                      "another training, choose another directory",
                      saver().directory(), what_, number_text(best_->value), best_->step));
    }
  }

  /// Clears the record of an earlier session.
  void begin() noexcept { recorded_ = {}; }
  /// Compares the best state that the restored checkpoint records with the best state that exists.
  void check_recorded(const session_requests& session) {
    const auto& origin = session.restored_from();
    if (!origin || io::parent_directory(*origin) != session.directory()) { recorded_ = {}; }  // of another run
    if (recorded_.step < 0 || (best_ && !is_better_than(recorded_.value, best_->value, 0))) { return; }
    best_ = lost_ = scored_checkpoint{prefix_of(recorded_.step), recorded_.step, recorded_.value};
    log_warning(loss_text(*lost_));
  }
  [[nodiscard]] variable_list variables() { return stepwell::variables({{"value", recorded_.value}, {"step", recorded_.step}}); }
  /// Begins the close: from now on, a best state that cannot be saved is an error with every policy.
  void begin_close() noexcept { is_closing_ = true; }
  /// @errors `data_loss_error` if the best state of an earlier run is lost, and no better state was found.
  void throw_if_lost() const {
    if (lost_) { throw data_loss_error(loss_text(*lost_)); }
  }

  void attach(const session_requests& session) {
    is_closing_ = false;
    wanted_.reset();
    attach_to(session, 1, [saves = saves_](const saved_checkpoint& saved) { saves->note_durable(saved.step); }, nullptr);
  }

  [[nodiscard]] const std::optional<scored_checkpoint>& best() const noexcept { return best_; }
  [[nodiscard]] bool has_value() const noexcept { return has_value_; }
  [[nodiscard]] const std::string& what() const noexcept { return what_; }

  /// Adds a value. Returns true if the state of `step` should be saved.
  [[nodiscard]] bool add(double value, std::int64_t step) {
    has_value_ = true;
    wanted_.reset();
    if (!is_better(value)) { return false; }
    wanted_ = candidate{step, value};
    return true;
  }
  /// Adds a value of a state that is no longer the current one, and saves the state if it is the best. Blocks while an earlier state is
  /// written, until a stop ends the wait; then one more copy is in memory.
  void add_snapshot(double value, const snapshot& evaluated) {
    if (!add(value, evaluated.step())) { return; }
    std::optional<snapshot_pool::buffer> buffer;
    signals()->wait_with_stop([&] { return session().end_of_waits(); },
                              [&](const deadline& until, const std::stop_token& stop) {
                                buffer = buffers().acquire_until(time(), until.on(time()), stop);
                                return buffer.has_value();
                              });
    save(snapshot_variables(evaluated).all, evaluated.step(), buffer ? std::move(*buffer) : one_more(), nullptr);
  }

  bool try_save(const boundary_state& state) override {
    if (!wanted_ || wanted_->step > state.global_step) { return true; }
    auto buffer = buffers().try_acquire();
    if (!buffer && signals()->end_of_process()) { buffer = one_more(); }
    if (!buffer) { return false; }
    // The step is later than that of `wanted_` if workers have stepped the model since the run.
    save(state.variables, state.global_step, std::move(*buffer), state.fence);
    return true;
  }
  /// Begins the save of a kept state again. A checkpoint of the session is committed after the best states before it are durable. With the
  /// policy `warn`, a failed save does not prevent the commit. A slow save does not prevent it if the process is about to end.
  std::function<void()> start_flush() override {
    if (!saver().busy() && !saver().has_failure()) { save_again(); }
    const auto known = saves_->count() + (wanted_ ? 1 : 0);
    return [wait = saver().waits_for_accepted(), saves = saves_, known, warns = options_.saver.on_error.only_warns(), what = what_,
            signals = signals(), session_time = session().time(), time = saver().options().clock] {
      const auto until = [&] { return deadline(*session_time, signals->end_of_commit_waits()).on(*time); };
      if (!signals->wait_with_stop(until, wait)) {
        log_warning(
            fmt::format("best_checkpoint_hook: a checkpoint with the best {} is still being written; the process is about to end, "
                        "so the checkpoint of the session is committed before it",
                        what));
      }
      if (saves->count() < known) {
        throw unavailable_error("this checkpoint is not committed, because the best state could not be copied");
      }
      const auto failed = saves->failed();  // its save may run again since the wait has ended
      if (!failed || failed->number > known || warns) { return; }
      throw unavailable_error(fmt::format("this checkpoint is not committed, because the best state ({} = {} at step {}) is not saved",
                                          what, number_text(failed->checkpoint.value), failed->checkpoint.step),
                              failed->checkpoint.prefix);
    };
  }

  /// Also saves the state of a failed save again.
  void drain(const deadline& until) override {
    error_collector failures;
    failures.attempt([&] { wait_for_saves(until); });
    if (!saver().busy()) {
      failures.attempt([&] {
        save_again();
        wait_for_saves(until);
      });
    }
    failures.attempt([&] { process_events(); });
    if (const auto unsaved = saves_->unsaved(); unsaved && is_closing_) {
      failures.attempt([&] { throw unavailable_error(loss_text(unsaved->checkpoint)); });
    }
    failures.rethrow();
  }
  void flush(const deadline& until) override {
    if (const auto unsaved = saves_->unsaved(); unsaved && !is_closing_) { log_error(loss_text(unsaved->checkpoint)); }
    saver_work::flush(until);
    destroy_saver();  // and its thread
  }
  void report(session_metrics& all) const override {
    saver_work::report(all);
    const std::lock_guard lock(saves_mutex_);
    all.snapshot_bytes += saves_->held_bytes();
  }

private:
  [[nodiscard]] bool wait_for_room(clock::time_point until, const std::stop_token& stop) override {
    return buffers().acquire_until(time(), until, stop).has_value();
  }

  /// A value, and the step of the state that has it.
  struct candidate {
    std::int64_t step = -1;
    double value = 0;
  };

  /// Returns true if `value` is better than `other` by more than `delta`.
  [[nodiscard]] bool is_better_than(double value, double other, double delta) const noexcept {
    return options_.mode == metric_mode::minimize ? value < other - delta : value > other + delta;
  }
  [[nodiscard]] bool is_better(double value) const noexcept {
    return !std::isnan(value) && (!best_ || is_better_than(value, best_->value, options_.min_delta));
  }
  [[nodiscard]] std::string prefix_of(std::int64_t step) const {
    return io::join_path(saver().directory(), fmt::format("{}-{}", default_checkpoint_basename, step));
  }
  [[nodiscard]] std::string loss_text(const scored_checkpoint& lost) const {
    return fmt::format(
        "best_checkpoint_hook: the best state ({} = {} at step {}) is lost: its checkpoint is not in {}; the best checkpoint there "
        "has a worse state, if there is one. Continue from an earlier checkpoint to find the best state again, or train until "
        "a better one",
        what_, number_text(lost.value), lost.step, saver().directory());
  }

  void save(variable_list variables, std::int64_t step, snapshot_pool::buffer memory, update_fence* fence) {
    saver().throw_if_failed();
    recorded_ = {step, std::exchange(wanted_, std::nullopt)->value};
    variables.push_back(variable_ref(std::string(best_value_name), recorded_.value).early());
    auto taken = fence != nullptr ? snapshot::capture(std::move(memory), variables, step, *fence)
                                  : snapshot::capture(std::move(memory), variables, step);
    best_ = scored_checkpoint{prefix_of(step), step, recorded_.value};
    lost_.reset();
    saves_->accept(*best_);
    announce(*best_);
    pass_on(std::move(taken));
  }
  /// Returns memory for a state that cannot wait for `buffers_`.
  [[nodiscard]] snapshot_pool::buffer one_more() const { return snapshot_pool::on_demand(1, saver().options().clock).acquire(); }
  /// Passes the state of a failed save to the saver again.
  void save_again() {
    if (auto state = saves_->take_unsaved()) { pass_on(std::move(*state)); }
  }
  void pass_on(snapshot state) {
    saver().save(std::move(state), nullptr, [saves = saves_](snapshot unsaved) { saves->note_failed(std::move(unsaved)); });
  }

  /// Displays and logs a new best value. Its checkpoint is not durable yet: at that time, the disk's speed would decide the lines of the log.
  void announce(const scored_checkpoint& checkpoint) {
    const auto value = fmt::format("{} {}", what_, number_text(checkpoint.value));
    signals()->show(options_.name, value);
    log(fmt::format("{}: {} at step {}", options_.name, value, checkpoint.step));
  }

  std::string what_;
  best_checkpoint_options options_;
  std::optional<scored_checkpoint> best_;  // saved or being saved, or `lost_`
  std::optional<scored_checkpoint> lost_;  // recorded in the restored checkpoint, but not in the directory
  std::optional<candidate> wanted_;        // better than `best_`; saved at the next boundary
  candidate recorded_;                     // the saved state of the hook: the last best state that was accepted for saving
  bool has_value_ = false;
  bool is_closing_ = false;
  mutable std::mutex saves_mutex_;  // held while `saves_` is replaced, because `report` runs on any thread
  std::shared_ptr<best_saves> saves_ = std::make_shared<best_saves>();
};

best_checkpoints::best_checkpoints(std::string what, best_checkpoint_options options) : options_(std::move(options)) {
  check(options_);
  options_.directory = value_or_throw(io::absolute_path(options_.directory));
  work_ = std::make_shared<best_work>(std::move(what), options_);
}

std::optional<scored_checkpoint> best_checkpoints::best() const { return work_->best(); }

void best_checkpoints::start(const session_requests& session) {
  work_->open(session);
  work_->attach(session);
  work_->check_recorded(session);
  session.add_work(work_);
}

void best_checkpoints::begin() noexcept { work_->begin(); }
variable_list best_checkpoints::variables() { return work_->variables(); }
const std::string& best_checkpoints::state_name() const noexcept { return options_.name; }

void best_checkpoints::take(const session_requests& session, const number_of_step& value) {
  if (work_->add(value.number, value.step)) { session.request_save(*work_); }
}

std::function<void(double, const snapshot&)> best_checkpoints::taker_of_snapshots() const {
  return [work = std::weak_ptr(work_)](double value, const snapshot& evaluated) {
    if (const auto held = work.lock()) { held->add_snapshot(value, evaluated); }
  };
}

void best_checkpoints::finish(const session_requests& session) const {
  const bool was_interrupted = ending_after(session.signals()->why().cause) == session_ending::interrupted;
  work_->begin_close();
  if (was_interrupted) { return; }
  work_->throw_if_lost();
  if (!has_run_ || work_->best()) { return; }
  const auto why = work_->has_value()
                       ? "was NaN in every run, so no checkpoint was saved as the best; check the learning rate and the data, or "
                         "add a nan_tensor_hook, which ends such a training at its first NaN"
                       : "never had a value, so no checkpoint was saved as the best; train until the first evaluation, or check "
                         "that the watched value is not always empty";
  throw failed_precondition_error(fmt::format("best_checkpoint_hook: {} {}", work_->what(), why));
}

}  // namespace detail
}  // namespace stepwell
