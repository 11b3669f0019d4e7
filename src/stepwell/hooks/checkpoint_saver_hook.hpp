// SPDX-License-Identifier: Apache-2.0
//
// Saves a checkpoint at the start of a fresh run, at every due boundary, and at the end (contract HOOK-CKPT, D-5).
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

/// `checkpoint_dir` and exactly one of the periods; the rest has defaults.
struct checkpoint_saver_options {
  std::string checkpoint_dir = {};
  setting<seconds_value> save_secs = {};
  setting<std::int64_t> save_steps = {};
  saver_options saver = {};
  std::vector<std::shared_ptr<checkpoint_saver_listener>> listeners = {};
  /// Where CHECKPOINT notes go in event files; empty: `checkpoint_dir`.
  std::string summary_dir = {};
  summary::writer_options events = {};
};

/// Copies the state at a due boundary and lets a task write it; the step does not wait for a disk unless the saver's
/// `when_busy` policy says so. A failed write comes out at the next boundary, as the saver's `on_error` policy says.
/// @cost In steps mode one comparison a run; in seconds mode also one relaxed load. No clock is read.
class checkpoint_saver_hook {
public:
  static constexpr auto phase = hook_phase::persist;

  /// Takes the directory's lock.
  /// @errors `failed_precondition_error` naming who holds the directory; `invalid_argument_error` unless one period is
  ///         above zero; failures of the file system.
  explicit checkpoint_saver_hook(const checkpoint_saver_options& options);

  /// The same, but the directory is taken when the session begins, or with the first call of `saver()`. Makes no call to a file
  /// system: for awaited sessions, which begin on a thread that may block.
  /// @errors `invalid_argument_error` as above, and for saver options that make no sense.
  [[nodiscard]] static checkpoint_saver_hook deferred(const checkpoint_saver_options& options);

  /// A hook that saves nothing, for sessions that may or may not save.
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
    if (origin && work_->holds(*origin)) { return work_->note_saved(session.global_step()); }  // there already (D-5)
    work_->note_first(session.global_step());
    session.request_save(*work_);
  }

  void after_run(auto& context, const auto&) {
    if (timer_.should_trigger_for_step(context.global_step())) [[unlikely]] {
      timer_.update_last_triggered_step(context.global_step());
      context.request_save(*work_);
    }
  }

  /// Asks for a save of the present state at the coming boundary, unless it is saved; false when off.
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

  /// The saver: for pinning, metrics, what is saved so far. @pre `is_on()`.
  [[nodiscard]] stepwell::saver& saver() { return work_->saver(); }

  /// What the session does for it; null when off.
  [[nodiscard]] const std::shared_ptr<checkpoint_work>& work() const noexcept { return work_; }

private:
  checkpoint_saver_hook() = default;

  cadence period_;
  second_or_step_timer timer_;
  std::shared_ptr<checkpoint_work> work_;
};

}  // namespace stepwell
