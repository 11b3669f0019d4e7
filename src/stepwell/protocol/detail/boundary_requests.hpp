// SPDX-License-Identifier: Apache-2.0
//
// The requests that hooks make to a session. The session executes them at the boundary, when all hooks of a step have run.
#pragma once

#include "stepwell/base/trace.hpp"
#include "stepwell/protocol/detail/boundary_works.hpp"
#include "stepwell/protocol/detail/rollback_request.hpp"
#include "stepwell/protocol/detail/session_facts.hpp"
#include "stepwell/protocol/detail/wait_limits.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// The requests of the hooks of one session, with the facts of the session and the works that its hooks have registered.
/// @threads The session's thread. The object returned by `signals` may be used on any thread.
class boundary_requests {
public:
  explicit boundary_requests(std::shared_ptr<clock> time) : facts_{.time = std::move(time)} {}
  boundary_requests(const boundary_requests&) = delete;
  boundary_requests& operator=(const boundary_requests&) = delete;

  [[nodiscard]] session_facts& facts() noexcept { return facts_; }
  [[nodiscard]] const session_facts& facts() const noexcept { return facts_; }
  [[nodiscard]] const std::shared_ptr<session_signals>& signals() const noexcept { return signals_; }
  [[nodiscard]] boundary_works& works() noexcept { return works_; }
  [[nodiscard]] const boundary_works& works() const noexcept { return works_; }
  [[nodiscard]] wait_limits& limits() noexcept { return limits_; }
  [[nodiscard]] const wait_limits& limits() const noexcept { return limits_; }

  /// Begins a creation of the session. Drops requested saves. @see `boundary_works::begin_creation`
  void begin_creation() {
    works_.begin_creation();
    facts_.restored_from.reset();
    facts_.restored_stop = false;
    facts_.watched->clear();
    saves_.clear();
  }

  /// Returns true if the boundary has work to do.
  [[nodiscard]] bool due() const noexcept {
    if (!saves_.empty()) [[unlikely]] { return true; }
    return signals_->is_notified();
  }

  void request_save(boundary_work& work);
  /// Returns the works that save the state of this boundary: those for which `request_save` was called, and those that have postponed a
  /// save. Drops the requests.
  [[nodiscard]] std::vector<boundary_work*> take_saves();
  /// Drops the saves requested in a step that failed.
  void drop_saves() noexcept { saves_.clear(); }

  /// Marks the state as bad because of `why`. It is not saved until a restore calls `accept_state`.
  void reject_state(std::string why) { rejected_ = std::move(why); }
  void accept_state() noexcept { rejected_.reset(); }
  [[nodiscard]] const std::optional<std::string>& rejected() const noexcept { return rejected_; }

  /// Requests a restore of the newest checkpoint, after all hooks of the step have run. `asked.answer` is called after the restore.
  void request_rollback(rollback_request asked) { rollback_ = std::move(asked); }
  [[nodiscard]] const std::optional<rollback_request>& rollback() const noexcept { return rollback_; }
  void drop_rollback() noexcept { rollback_.reset(); }

  /// Sets the recorder of the session's work until the end of the next boundary. Null: nothing is recorded.
  void trace_into(std::shared_ptr<trace_recorder> recorder) noexcept;
  /// Returns the current recorder, or null.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return trace_; }
  /// Returns the position that the recorder had when it was set.
  [[nodiscard]] std::uint64_t trace_begin() const noexcept { return trace_begin_; }
  /// Removes the recorder and notifies the works, if there is a recorder.
  void end_trace() noexcept;

private:
  session_facts facts_;
  std::shared_ptr<session_signals> signals_ = std::make_shared<session_signals>();
  boundary_works works_{*signals_};
  wait_limits limits_{*facts_.time, *signals_, works_};
  std::vector<boundary_work*> saves_;
  std::optional<std::string> rejected_;
  std::optional<rollback_request> rollback_;
  std::shared_ptr<trace_recorder> trace_;
  std::uint64_t trace_begin_ = 0;
};

}  // namespace stepwell
