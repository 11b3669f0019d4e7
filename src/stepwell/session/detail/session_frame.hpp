// SPDX-License-Identifier: Apache-2.0
//
// How a session is created, keeps its boundaries, recovers and ends: all of it that is off the way of a step. Compiled once,
// it reaches raw session and hooks, whose types only the core knows, through a few virtual functions.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/function_ref.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/hook/detail/first_failure.hpp"
#include "stepwell/session/detail/session_life.hpp"

#include <cstdint>
#include <exception>
#include <optional>

namespace stepwell {

/// @threads The session's, but for what `session_life` says.
class session_frame : public session_life {
public:
  using session_life::grace;
  using session_life::look_ahead;

  /// A raw session that is not given is there once it was created.
  [[nodiscard]] virtual bool has_raw() const noexcept = 0;

  [[nodiscard]] coordinator& threads() noexcept { return threads_; }

  /// Whether the session has to be made anew, without a look at its end.
  [[nodiscard]] bool must_recover() { return control_.signals()->recovery_asked() && (is_lost_ || failed_by_thread()); }

  /// Tells the hooks of a failure and forgets what the failed step requested.
  [[gnu::noinline, gnu::cold]] void on_failure(step_stage stage, std::exception_ptr failure, int attempt = 1) noexcept;

  /// Has the hooks that save do so now, and waits until that is durable; the step that is saved.
  /// @errors `failed_precondition_error` where no hook saves, or the state is bad; why it could not be saved.
  std::int64_t save_now();

  /// A copy of all that a checkpoint would hold, as it is between two steps; without `memory` into some of its own.
  /// @errors Those of `refuse_copy` and `snapshot::capture`.
  snapshot copy_state(std::optional<snapshot_pool::buffer> memory);

  /// Leaves the session that failed: threads are joined, what is being saved is finished. When the next try is due.
  /// @errors The last failure, when there is no further try; then the session is lost, and `should_stop` says so.
  ///         What comes out of joining and finishing, other than what a recovery may overcome (contract REC-4).
  clock::time_point plan_recovery();

  /// The first creation, tried again as a recovery is.
  void start();
  /// The session as it was at the newest checkpoint, or at its start, after as many tries as the policy allows; which try of
  /// the step comes next.
  /// @errors As `plan_recovery` and `create`.
  [[gnu::cold]] int recover();

  /// Creates the session, for the first time or anew (REC-6). False: it failed in a way that may pass.
  /// @errors Everything else that creating throws. After an interruption `cancelled_error`: it is to be created as before.
  bool create();
  /// A part of creating: `make_raw()`, telling the hooks, or `settle()`. As `create`.
  bool creates(function_ref<void()> part);
  /// The raw session, ready, and its threads; hooks are told next.
  void make_raw();
  /// Does what hooks requested when they were told; then the session is created.
  void settle();

  /// How far it came. Where others share the step it may have gone back before this session notices.
  [[nodiscard]] std::int64_t step_reached() const noexcept;

  /// Ends the hooks, makes the last save, waits for all threads and I/O (CLOSE-1). Does nothing the second time (D-15).
  void close();
  /// The same for who left a session without closing it (D-17): what there is to throw is logged.
  void close_or_log() noexcept;
  /// From here on it is closed: hooks are ended next. False where it was.
  [[nodiscard]] bool begin_to_close() noexcept;
  /// Hooks are ended, as `failures` says; the rest of closing. @errors The first failure of all.
  void finish_closing(const deadline& until, detail::first_failure& failures);

  /// Leaves by an error (CLOSE-5): hooks hear of it unless they have, none is ended, all I/O under way is finished.
  void abandon(std::exception_ptr failure) noexcept;

  /// Leaves without a word to the hooks, none of which is ended, and waits for no I/O: what is under way goes on alone. The
  /// session's threads are joined.
  void let_go() noexcept;

protected:
  /// `is_given`: the raw session is the caller's, and serves all creations. `may_trace`: a hook may have a boundary traced.
  session_frame(session_settings settings, bool is_given, bool may_trace);
  ~session_frame();

  /// The caller says `may_trace` again, as a constant where it stands on the way of a step.
  [[nodiscard]] bool is_boundary_due(bool may_trace) const noexcept { return (may_trace && control_.trace()) || control_.due(); }
  /// What is due between two steps. `or_fail`: what it throws is told to the hooks.
  [[gnu::noinline, gnu::cold]] void keep_boundary();
  [[gnu::noinline, gnu::cold]] void keep_boundary_or_fail();

private:
  // Of the raw session. @pre There is one, but for `make`.
  [[nodiscard]] virtual std::int64_t raw_step() const noexcept = 0;
  [[nodiscard]] virtual variable_list raw_variables() = 0;
  /// Calls `action` while nobody else steps or restores what it stands on.
  virtual void while_alone(function_ref<void()> action) = 0;
  virtual void make(session_creation& creation) = 0;
  virtual void close_made() = 0;

  // Of the hooks.
  [[nodiscard]] virtual variable_list hook_variables() = 0;
  virtual void tell_of_creation() = 0;
  virtual void tell_of_failure(const std::exception_ptr& failure, int attempt) noexcept = 0;
  /// False where no hook saves.
  virtual bool ask_to_save() = 0;
  virtual void end_hooks(detail::first_failure& failures) = 0;

  void creation_failed();
  void note_created(bool is_first);
  void act(const deadline& until);
  void keep_traced_boundary();
  void check_names();
  [[nodiscard]] boundary_state compose();
  void leave();
  void close_raw() noexcept;
  bool failed_by_thread() noexcept;

  bool is_given_;
  bool may_trace_;
  bool is_closing_ = false;  // its hooks are being ended
  std::int64_t state_version_;
};

}  // namespace stepwell
