// SPDX-License-Identifier: Apache-2.0
//
// A hook that saves a checkpoint at the start of a fresh run, at every due boundary, and at the end.
// @see contract HOOK-CKPT, D-5
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hooks/checkpoint_saver_listener.hpp"
#include "stepwell/hooks/detail/checkpoint_work.hpp"
#include "stepwell/hooks/detail/writer_work.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// Options of `checkpoint_saver_hook`. `checkpoint_dir` and exactly one of the periods are required.
struct checkpoint_saver_options {
  std::string checkpoint_dir = {};
  setting<seconds_value> save_secs = {};
  setting<std::int64_t> save_steps = {};
  saver_options saver = {};
  std::vector<std::shared_ptr<checkpoint_saver_listener>> listeners = {};
  /// The directory of the event file to which CHECKPOINT events are written. Empty: `checkpoint_dir`.
  std::string summary_dir = {};
  summary::writer_options events = {};
};

/// Copies the state at a due boundary and writes it in a background task. The step does not block on a disk, unless the `when_busy` policy
/// of the saver requires it. A failed write is reported at the next boundary, according to the saver's `on_error` policy.
/// @cost In steps mode one comparison for each run; in seconds mode also one relaxed load. No clock is read.
class checkpoint_saver_hook {
public:
  static constexpr auto phase = hook_phase::persist;

  /// Locks the directory.
  /// @errors `failed_precondition_error` that names the owner of the directory if it is locked; `invalid_argument_error` unless exactly one
  ///   period is above zero, if `checkpoint_dir` is empty, or if the saver options are invalid; failures of the file system.
  explicit checkpoint_saver_hook(const checkpoint_saver_options& options);

  /// Returns a hook that locks the directory when the session begins, or at the first call of `saver()`. Makes no call to a file system.
  /// For asynchronous sessions, which begin on a thread that may block.
  /// @errors `invalid_argument_error`, as for the constructor.
  [[nodiscard]] static checkpoint_saver_hook deferred(const checkpoint_saver_options& options);

  /// Returns a hook that saves nothing, for sessions in which saving is optional.
  [[nodiscard]] static checkpoint_saver_hook off() { return checkpoint_saver_hook(); }
  [[nodiscard]] bool is_on() const noexcept { return work_ != nullptr; }

  void begin() {
    if (work_) { work_->begin(); }
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (!work_) { return; }
    timer_ = second_or_step_timer(period_, session.time());
    timer_.update_last_triggered_step(session.global_step());
    work_->attach(session.signals(), snapshot_size(session.raw_session().variables()));
    session.add_work(work_);
    stepwell::watch_writer(session, work_->events());
    const auto& origin = session.restored_from();
    if (origin && work_->holds(*origin)) { return work_->note_saved(session.global_step()); }  // saved already; contract D-5
    work_->note_first(session.global_step());
    session.request_save(*work_);
  }

  void after_run(auto& context, const auto&) {
    if (timer_.should_trigger_for_step(context.global_step())) [[unlikely]] {
      timer_.update_last_triggered_step(context.global_step());
      context.request_save(*work_);
    }
  }

  /// Requests a save of the current state at the next boundary, unless it is saved already. Returns false if the hook is off.
  bool save_now(auto& session) {
    if (!work_) { return false; }
    if (work_->last_saved_step() == session.global_step()) { return true; }
    timer_.update_last_triggered_step(session.global_step());
    session.request_save(*work_);
    return true;
  }

  void end(auto& session) {
    if (!work_) { return; }
    work_->must_save(session.global_step());
    if (work_->last_saved_step() != session.global_step()) { session.request_save(*work_); }
  }

  /// Returns the saver, for pinning, metrics, and the list of checkpoints.
  /// @pre `is_on()`.
  [[nodiscard]] stepwell::saver& saver() { return work_->saver(); }

  /// Returns the work that the session does for this hook. Null if the hook is off.
  [[nodiscard]] const std::shared_ptr<checkpoint_work>& work() const noexcept { return work_; }

private:
  checkpoint_saver_hook() = default;

  cadence period_;
  second_or_step_timer timer_;
  std::shared_ptr<checkpoint_work> work_;
};

}  // namespace stepwell
