// SPDX-License-Identifier: Apache-2.0
//
// A hook that saves a checkpoint at the start of a fresh run, at every due boundary, and at the end; and the interface of listeners,
// which are notified of each save.
// @see contract HOOK-CKPT, D-5
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/run_context.hpp"
#include "stepwell/summary/writer.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {

namespace detail {
class checkpoint_work;
class save_budget;
}  // namespace detail

/// A listener; override the functions that you need. An exception of a listener is thrown at the boundary, after all other listeners were
/// notified.
/// @threads The session's thread.
class checkpoint_saver_listener {
public:
  virtual ~checkpoint_saver_listener() = default;

  /// Called once, before the session exists.
  virtual void begin() {}
  /// Called before the state of `step` is copied; not called for a save that is skipped. The state may be read, but not changed.
  /// `after_save` does not follow if the save fails or is replaced by a newer one.
  virtual void before_save(std::int64_t /*step*/) {}
  /// Called at the first boundary at which the checkpoint is durable. Returns true to request a stop of the session. The request is ignored
  /// for the checkpoint at the start of a fresh run, and for the checkpoints that a closing session waits for.
  virtual bool after_save(const saved_checkpoint& /*saved*/) { return false; }
  /// Called at a clean close, after the last checkpoint.
  virtual void end(std::int64_t /*step*/) {}
};

/// Options of `checkpoint_saver_hook`. `checkpoint_dir` is required, and either one of the periods or `save_overhead`.
struct checkpoint_saver_options {
  std::string checkpoint_dir = {};
  setting<seconds_value> save_secs = {};
  setting<std::int64_t> save_steps = {};
  /// Share of the training time that saving may cost, for example 0.02. The hook measures the cost of each save: the time for which it
  /// stops training, and the time by which steps are slower until it has ended. Time between steps counts as part of the steps. From the
  /// mean cost it chooses the interval to the next save, within `save_interval`, and logs it. An interval is never longer than
  /// `max_interval`, even if saving then exceeds its share, but a save does not begin before the previous one has ended. A process that
  /// resumes measures anew, and begins with `min_interval`. A recovery keeps the measurements.
  setting<double> save_overhead = {};
  interval_bounds save_interval = {};
  saver_options saver = {};
  std::vector<std::shared_ptr<checkpoint_saver_listener>> listeners = {};
  /// The directory of the event file to which CHECKPOINT events are written. Empty: `checkpoint_dir`.
  std::string summary_dir = {};
  summary::writer_options events = {};
};

/// Copies the state at a due boundary and writes it in a background task. The step does not block on a disk, unless the `when_busy` policy
/// of the saver requires it: by default, a save that is due while another one is written is made at the first boundary after that one has
/// ended, and the period still counts from the step at which it was due. A failed write is reported at the next boundary, according to the
/// saver's `on_error` policy.
/// @cost Memory: one copy of the variables for each save in flight, at most `saver.max_staged`. It is kept between saves that are less
///       than a minute apart.
///       In steps mode one comparison for each run; in seconds mode also one relaxed load. No clock is read. With `save_overhead` also one
///       call of `saver::busy` for each run while a save is in flight.
class checkpoint_saver_hook {
public:
  static constexpr auto phase = hook_phase::persist;

  /// Locks the directory.
  /// @errors `failed_precondition_error` that names the owner of the directory if it is locked; `invalid_argument_error` unless either a
  ///   period or `save_overhead` is above zero, if `checkpoint_dir` is empty, or if the saver options are invalid; failures of the file
  ///   system.
  explicit checkpoint_saver_hook(const checkpoint_saver_options& options);

  /// Returns a hook that locks the directory when the session begins, or at the first call of `saver()`. Makes no call to a file system.
  /// For asynchronous sessions, which begin on a thread that may block.
  /// @errors `invalid_argument_error`, as for the constructor.
  [[nodiscard]] static checkpoint_saver_hook deferred(const checkpoint_saver_options& options);

  /// Returns a hook that saves nothing, for sessions in which saving is optional.
  [[nodiscard]] static checkpoint_saver_hook off() { return checkpoint_saver_hook(); }
  [[nodiscard]] bool is_on() const noexcept { return work_ != nullptr; }

  void begin();

  void after_create_session(auto& session, auto& /*threads*/) {
    if (work_) { start(session, session.global_step()); }
  }

  void after_run(auto& context, const auto&) {
    if (timer_.should_trigger_for_step(context.global_step())) [[unlikely]] { act(context, context.global_step()); }
  }

  /// Requests a save of the current state at the next boundary, unless it is saved already. Returns false if the hook is off.
  bool save_now(auto& session) {
    if (work_ && !is_saved(session.global_step())) { request_save(session, session.global_step()); }
    return is_on();
  }

  void end(auto& session) {
    if (work_) { request_last_save(session, session.global_step()); }
  }

  /// Returns the saver, for pinning, metrics, and the list of checkpoints.
  /// @pre `is_on()`.
  [[nodiscard]] stepwell::saver& saver();

  /// Returns a function that opens the newest checkpoint of the directory, without verifying it. The session reads it once, or an older
  /// one if it is damaged, and the saver then keeps that one. For `session_settings::find_checkpoint`. The function may outlive this hook.
  /// @pre `is_on()`.
  [[nodiscard]] std::function<std::optional<checkpoint_reader>()> checkpoint_finder() const;

private:
  checkpoint_saver_hook() = default;
  void start(const session_requests& session, std::int64_t step);
  [[nodiscard]] bool is_saved(std::int64_t step) const noexcept;
  void act(const session_requests& session, std::int64_t step);
  void request_save(const session_requests& session, std::int64_t step);
  void act_after(std::chrono::duration<double> wait, const session_requests& session, std::int64_t step);
  void request_last_save(const session_requests& session, std::int64_t step) const;

  cadence period_;  // unused if there is a budget
  second_or_step_timer timer_;
  std::shared_ptr<detail::checkpoint_work> work_;  // null if the hook is off
  std::shared_ptr<detail::save_budget> budget_;    // null if the period is fixed; shared with the work
};

}  // namespace stepwell
