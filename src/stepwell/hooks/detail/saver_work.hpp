// SPDX-License-Identifier: Apache-2.0
//
// The part that the works of the saving hooks share: a saver and the memory for its snapshots, from the begin of a session to its close.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/hooks/detail/rare_log.hpp"
#include "stepwell/protocol/detail/boundary_work.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace stepwell::detail {

/// The work of a hook with a saver.
class saver_work : public boundary_work {
public:
  void wait_ready(const deadline& until, const std::stop_token& stop) override;
  void process_events() override { saver_->throw_if_failed(); }
  void write_ending(const run_ending& /*ending*/) override { log_.finish(session_->name()); }
  /// Releases the directory for the next session, even if this object lives on.
  void flush(const deadline& /*until*/) override;
  void detach() override;
  void hold_until_released(const std::shared_ptr<void>& hold) override;
  void report(session_metrics& all) const override;

protected:
  explicit saver_work(seconds_value log_every_secs) : log_(log_every_secs) {}

  /// Returns true if the saver is open: it locks the directory, or did so until the session closed.
  [[nodiscard]] bool has_saver() const noexcept { return saver_.has_value(); }
  /// Locks the directory. @pre `!has_saver()`.
  void open_saver(const std::string& directory, const saver_options& options);
  /// Destroys a saver that a session has closed, so that the next session opens another one.
  void drop_closed_saver();
  /// Destroys the saver, and waits for its thread. The destructor of a class whose members are used on this thread calls this function.
  void destroy_saver();
  [[nodiscard]] stepwell::saver& saver() noexcept { return *saver_; }
  [[nodiscard]] const stepwell::saver& saver() const noexcept { return *saver_; }

  /// Begins or continues with a session, for which at most `most_copies` snapshots are in memory. `on_saved` and `on_failure` are called on
  /// the thread of the saver; after them, the session is notified.
  void attach_to(const session_requests& session, std::size_t most_copies, std::function<void(const saved_checkpoint&)> on_saved,
                 std::function<void()> on_failure);
  [[nodiscard]] const session_requests& session() const noexcept { return *session_; }
  [[nodiscard]] const std::shared_ptr<session_signals>& signals() const noexcept { return signals_; }
  [[nodiscard]] snapshot_pool& buffers() noexcept { return *buffers_; }
  [[nodiscard]] stepwell::clock& time() const noexcept { return *saver_->options().clock; }

  /// Waits until all saves have ended, at most until `until`. If `until` never passes, a stop limits the wait.
  /// @errors Those of `saver::drain`.
  void wait_for_saves(const deadline& until);
  /// Blocks until `try_save` can accept a state. Returns false if `until` passes or a stop is requested before.
  [[nodiscard]] virtual bool wait_for_room(clock::time_point until, const std::stop_token& stop) = 0;

  void log(std::string line) { log_.add(session_->name(), time().now(), std::move(line)); }

private:
  rare_log log_;
  std::optional<session_requests> session_;
  std::shared_ptr<session_signals> signals_;
  bool is_closed_ = false;
  mutable std::mutex reported_mutex_;  // held while the two members below are replaced, because `report` runs on any thread
  std::optional<snapshot_pool> buffers_;
  std::optional<stepwell::saver> saver_;  // last member: its thread uses the buffers
};

}  // namespace stepwell::detail
