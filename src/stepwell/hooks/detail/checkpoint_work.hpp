// SPDX-License-Identifier: Apache-2.0
//
// The work of a session for a checkpoint_saver_hook, at boundaries and at the close.
#pragma once

#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/hook/boundary.hpp"
#include "stepwell/hook/session_signals.hpp"
#include "stepwell/hooks/checkpoint_saver_listener.hpp"
#include "stepwell/summary/writer.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {

struct checkpoint_saver_options;

/// A saver with its buffers and listeners, and with the CHECKPOINT events in the event file.
class checkpoint_work final : public boundary_work {
public:
  /// Stores the options; does not lock the directory.
  /// @errors Those of `check_saver_options`.
  explicit checkpoint_work(const checkpoint_saver_options& options);

  /// Locks the directory, unless this object has locked it already.
  /// @errors Those of the constructor of `saver`.
  stepwell::saver& open();
  void begin();
  /// Connects the work to a session: failures and finished saves call `signals->notify()`, and buffers are allocated for
  /// `state_bytes`.
  void attach(std::shared_ptr<session_signals> signals, std::size_t state_bytes);

  [[nodiscard]] stepwell::saver& saver() { return open(); }
  [[nodiscard]] const std::shared_ptr<summary::writer>& events() const noexcept { return events_; }
  /// Returns true if the checkpoint `prefix` belongs to this directory.
  [[nodiscard]] bool holds(const std::string& prefix) const;
  void note_saved(std::int64_t step) noexcept { last_saved_step_ = step; }
  /// Records that the save of `step` is the one at the start of the run.
  void note_first(std::int64_t step) noexcept { first_step_ = step; }
  /// Returns the last step that is saved or being saved. Empty if there is none, or if the latest save failed.
  [[nodiscard]] std::optional<std::int64_t> last_saved_step() const noexcept;
  /// Announces that the session closes at `step`: no save is skipped any more.
  void must_save(std::int64_t step) noexcept { last_step_ = step; }

  bool try_save(const boundary_state& state) override;
  [[nodiscard]] bool wants_last_save(std::int64_t step) const override { return last_saved_step() != step; }
  void wait_ready(const deadline& until) override;
  void process_events() override;
  void drain(const deadline& until) override;
  void flush(const deadline& until) override;
  void detach() override;
  void hold_until_released(const std::shared_ptr<void>& hold) override;
  void report(session_metrics& all) const override;

private:
  [[nodiscard]] bool hand_over(snapshot taken, std::function<void()> wait_for_records);
  void warn_skipped(std::int64_t step);
  void tell_before_save(std::int64_t step);
  void tell_after_save();

  std::vector<std::shared_ptr<checkpoint_saver_listener>> listeners_;
  std::string directory_;
  std::string summary_dir_;
  saver_options saver_options_;
  summary::writer_options event_options_;
  std::optional<snapshot_pool> buffers_;
  std::shared_ptr<session_signals> signals_;
  std::shared_ptr<summary::writer> events_;
  std::optional<std::int64_t> last_saved_step_;
  std::optional<std::int64_t> announced_step_;
  std::optional<std::int64_t> first_step_;
  std::optional<std::int64_t> last_step_;  // set when the session closes cleanly

  mutable std::mutex mutex_;
  std::vector<saved_checkpoint> done_;  // guarded by mutex_: durable, but listeners are not notified yet
  session_metrics counts_;              // guarded by mutex_: only the members about saves are used
  std::atomic<bool> failed_ = false;
  bool is_closed_ = false;                // true if the session is closed
  std::optional<stepwell::saver> saver_;  // empty until `open`; last member, because its thread uses the members above
};

}  // namespace stepwell
