// SPDX-License-Identifier: Apache-2.0
//
// From a raw session to one that is ready: restored or initialised by a chief, waited for by a worker (contract SM).
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/base/time_after.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/session/raw_session.hpp"
#include "stepwell/session/readiness.hpp"
#include "stepwell/session/scaffold.hpp"
#include "stepwell/session/session_creation.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

/// All may be empty: then there is nothing to do, and nothing to wait for.
template<class Subject>
struct session_manager_options {
  using op = typename scaffold_options<Subject>::op;
  using ready = typename scaffold_options<Subject>::ready;

  op local_init_op = nullptr;
  ready ready_op = nullptr;
  ready ready_for_local_init_op = nullptr;
  /// Between two looks, where only polling is possible (D-3; TensorFlow's is 30 s and fixed).
  seconds_value recovery_wait = 1;
};

/// Where to restore from; neither directory nor file: what the session's settings find.
struct restore_from {
  std::string checkpoint_dir = {};
  std::string checkpoint_filename_with_path = {};
  bool wait_for_checkpoint = false;
  seconds_value max_wait_secs = 7200;
};

/// How to initialise where nothing was restored.
template<class Subject>
struct init_with {
  typename scaffold_options<Subject>::op init_op = nullptr;
  typename scaffold_options<Subject>::op init_fn = nullptr;
  /// Without either: keep what the subject holds at the first creation, and put it back at a recovery.
  bool keep_initial_state = true;
};

namespace detail {

/// Others who wait for this session as their chief wait until `make_ready` has returned, true if it says. The step that
/// `raw` stands at then.
template<class Raw, class MakeReady>
std::int64_t prepare_as_chief(Raw& raw, MakeReady&& make_ready) {
  if constexpr (requires { raw.prepare_as_chief(make_ready); }) {
    return raw.prepare_as_chief(make_ready);
  } else {
    return static_cast<void>(make_ready()), raw.global_step();
  }
}

}  // namespace detail

/// @threads The session's.
template<raw_session Raw>
class session_manager {
public:
  using subject_type = subject_of<Raw>;
  using options = session_manager_options<subject_type>;

  session_manager() = default;
  /// @errors `invalid_argument_error` for a ready_for_local_init_op without a local_init_op (SM-1).
  explicit session_manager(options given) : given_(std::move(given)) {
    if (given_.ready_for_local_init_op && !given_.local_init_op) {
      throw invalid_argument_error("session_manager: If you pass a ready_for_local_init_op you must also pass a local_init_op");
    }
  }

  /// Makes `raw` ready for a chief: restored if there is something, else initialised; then local initialisation (SM-6).
  /// @errors `failed_precondition_error` when that did not make it ready; what restoring and the operations throw.
  void prepare_session(Raw& raw, session_creation& creation, const restore_from& from = {},
                       const init_with<subject_type>& init = {}) const {
    const auto step = detail::prepare_as_chief(raw, [&] {
      auto& subject = subject_in(raw);
      if (!restore(raw, creation, from)) { initialize(raw, creation, init); }
      if (const auto reason = try_local_init(subject)) { detail::throw_not_ready("for local_init", described(init), *reason); }
      if (const auto reason = detail::not_ready(given_.ready_op, subject)) { detail::throw_not_ready("", described(init), *reason); }
    });
    creation.set_starts_at(step);
  }

  /// Waits until somebody else has made `raw` ready (SM-10). `max_wait`: nothing is for ever.
  /// @errors `deadline_exceeded_error` "Session was not ready after waiting N secs."; `cancelled_error` after a stop.
  void wait_for_session(Raw& raw, session_creation& creation, std::optional<seconds_value> max_wait = std::nullopt) const {
    waiting wait(creation, max_wait, given_.recovery_wait);
    for (;;) {
      const auto reason = worker_not_ready(raw, creation);
      if (!reason) { return; }
      wait.once_more(raw, *reason);
    }
  }

  /// Restores if it can; true when the session is then ready. Never throws for "not ready" (SM-13).
  [[nodiscard]] bool recover_session(Raw& raw, session_creation& creation, const restore_from& from = {}) const {
    bool is_ready = false;
    const auto step = detail::prepare_as_chief(raw, [&] {
      const bool is_restored = restore(raw, creation, from);
      const auto no_local_init = try_local_init(subject_in(raw));
      is_ready = is_restored && !no_local_init && !detail::not_ready(given_.ready_op, subject_in(raw));
      return is_ready;
    });
    creation.set_starts_at(step);
    return is_ready;
  }

private:
  class waiting {
  public:
    waiting(session_creation& creation, std::optional<seconds_value> max_wait, seconds_value pause)
        : creation_(creation), max_wait_(max_wait), pause_(pause), begin_(creation.time()->now()) {}

    /// @errors As `wait_for_session`.
    void once_more(Raw& raw, const std::string& reason) {
      const auto now = creation_.time()->now();
      const auto until = max_wait_ ? detail::time_after(begin_, *max_wait_) : clock::time_point::max();
      if constexpr (requires { raw.wait_for_chief(creation_.signals(), *creation_.time(), until); }) {
        if (!raw.is_chief_ready()) {
          if (!raw.wait_for_chief(creation_.signals(), *creation_.time(), until)) { give_up(reason); }
          return;
        }
      }
      const auto next = detail::time_after(now, pause_);
      if (until < next) { give_up(reason); }
      log_info("waiting for the session to be ready: " + reason);
      if (creation_.signals().wait_for_stop(*creation_.time(), next)) { give_up(reason); }
    }

  private:
    [[noreturn]] void give_up(const std::string& reason) const {
      if (creation_.signals().stop_requested()) {
        throw cancelled_error("a stop was asked for while waiting for the session to be ready: " + reason);
      }
      if (creation_.signals().interrupted()) { throw cancelled_error("nobody waits for the session to be ready any more: " + reason); }
      detail::throw_waited(max_wait_->count(), reason);
    }

    session_creation& creation_;
    std::optional<seconds_value> max_wait_;
    seconds_value pause_;
    clock::time_point begin_;
  };

  static subject_of<Raw>& subject_in(Raw& raw) noexcept { return subject_in_raw(raw); }

  [[nodiscard]] std::optional<std::string> worker_not_ready(Raw& raw, session_creation& creation) const {
    if (!is_chief_ready(raw)) { return no_chief; }  // not to be waited for at the gate, where no deadline counts
    [[maybe_unused]] const auto alone = alone_with(raw);
    if (!is_chief_ready(raw)) { return no_chief; }
    if (auto reason = try_local_init(subject_in(raw))) { return reason; }
    if (auto reason = detail::not_ready(given_.ready_op, subject_in(raw))) { return reason; }
    if constexpr (requires { raw.join(); }) { raw.join(); }
    creation.set_starts_at(raw.global_step());
    creation.join();
    return std::nullopt;
  }

  static constexpr const char* no_chief = "the chief has not made the model ready yet";
  static bool is_chief_ready(const Raw& raw) {
    if constexpr (requires { raw.is_chief_ready(); }) {
      return raw.is_chief_ready();
    } else {
      return true;
    }
  }

  /// Why there was none (SM-3); nothing if it was done, or there is nothing to do.
  [[nodiscard]] std::optional<std::string> try_local_init(subject_type& subject) const {
    if (!given_.local_init_op) { return std::nullopt; }
    if (auto reason = detail::not_ready(given_.ready_for_local_init_op, subject)) { return reason; }
    given_.local_init_op(subject);
    return std::nullopt;
  }

  /// SM-4. True if something was restored.
  bool restore(Raw& raw, session_creation& creation, const restore_from& from) const {
    if (!from.checkpoint_dir.empty() && !from.checkpoint_filename_with_path.empty()) {
      throw invalid_argument_error("checkpoint_dir and checkpoint_filename_with_path cannot both be given");
    }
    if (!from.checkpoint_filename_with_path.empty()) {
      creation.restore(raw.variables(), checkpoint_reader(from.checkpoint_filename_with_path));
      return true;
    }
    const auto found = detail::find_or_wait(creation, from, given_.recovery_wait);
    if (found) { creation.restore(raw.variables(), *found); }
    return found.has_value();
  }

  void initialize(Raw& raw, session_creation& creation, const init_with<subject_type>& init) const {
    const bool is_back = creation.put_back_initial_state(raw.variables());  // a recovery, or a first try that failed half-way
    if (!is_back && creation.is_first() && init.keep_initial_state) { creation.keep_initial_state(raw.variables(), raw.global_step()); }
    if (!is_back && !creation.is_first() && !init.init_op && !init.init_fn && !given_.local_init_op) {
      throw failed_precondition_error(
          "Model is not initialized and no init_op or init_fn or local_init_op was given, no checkpoint "
          "is there, and what it held at the start was not kept; give one of them");
    }
    if (init.init_op) { init.init_op(subject_in(raw)); }
    if (init.init_fn) { init.init_fn(subject_in(raw)); }
  }

  static std::string described(const init_with<subject_type>& init) {
    return std::string("init_op: ") + (init.init_op ? "given" : "none") + ", init_fn: " + (init.init_fn ? "given" : "none");
  }

  options given_;
};

}  // namespace stepwell
