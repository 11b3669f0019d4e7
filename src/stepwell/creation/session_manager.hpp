// SPDX-License-Identifier: Apache-2.0
//
// From a raw session to one that is ready: restored or initialised by a chief, waited for by a worker (contract SM).
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/creation/detail/readiness.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/hook/raw_session.hpp"

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
      auto& subject = subject_in_raw(raw);
      if (!restore(raw, creation, from)) { initialize(raw, creation, init); }
      const auto refuse = [&](const char* for_what, const detail::unreadiness& reason) {
        if (!reason.empty()) { detail::throw_not_ready(for_what, detail::described(bool(init.init_op), bool(init.init_fn)), reason); }
      };
      refuse("for local_init", try_local_init(subject));
      refuse("", detail::not_ready(given_.ready_op, subject));
    });
    creation.set_starts_at(step);
  }

  /// Waits until somebody else has made `raw` ready (SM-10). `max_wait`: nothing is for ever.
  /// @errors `deadline_exceeded_error` "Session was not ready after waiting N secs."; `cancelled_error` after a stop.
  void wait_for_session(Raw& raw, session_creation& creation, std::optional<seconds_value> max_wait = std::nullopt) const {
    const detail::ready_wait wait(creation, max_wait, given_.recovery_wait);
    for (;;) {
      const auto reason = worker_not_ready(raw, creation);
      if (reason.empty()) { return; }
      if constexpr (requires { raw.wait_for_chief(creation.signals(), *creation.time(), wait.until()); }) {
        if (!raw.is_chief_ready()) {
          if (!raw.wait_for_chief(creation.signals(), *creation.time(), wait.until())) { wait.give_up(reason); }
          continue;
        }
      }
      wait.once_more(reason);
    }
  }

  /// Restores if it can; true when the session is then ready. Never throws for "not ready" (SM-13).
  [[nodiscard]] bool recover_session(Raw& raw, session_creation& creation, const restore_from& from = {}) const {
    bool is_ready = false;
    const auto step = detail::prepare_as_chief(raw, [&] {
      const bool is_restored = restore(raw, creation, from);
      auto& subject = subject_in_raw(raw);
      const bool has_local_init = try_local_init(subject).empty();
      is_ready = is_restored && has_local_init && detail::not_ready(given_.ready_op, subject).empty();
      return is_ready;
    });
    creation.set_starts_at(step);
    return is_ready;
  }

private:
  [[nodiscard]] detail::unreadiness worker_not_ready(Raw& raw, session_creation& creation) const {
    if (!is_chief_ready(raw)) { return no_chief; }  // not to be waited for at the gate, where no deadline counts
    [[maybe_unused]] const auto alone = stepwell::alone_with(raw);
    if (!is_chief_ready(raw)) { return no_chief; }
    auto& subject = subject_in_raw(raw);
    auto reason = try_local_init(subject);
    if (reason.empty()) { reason = detail::not_ready(given_.ready_op, subject); }
    if (!reason.empty()) { return reason; }
    if constexpr (requires { raw.join(); }) { raw.join(); }
    creation.set_starts_at(raw.global_step());
    creation.join();
    return {};
  }

  static constexpr const char* no_chief = "the chief has not made the model ready yet";
  static bool is_chief_ready(const Raw& raw) {
    if constexpr (requires { raw.is_chief_ready(); }) {
      return raw.is_chief_ready();
    } else {
      return true;
    }
  }

  /// Why there was none (SM-3); empty if it was done, or there is nothing to do.
  [[nodiscard]] detail::unreadiness try_local_init(subject_type& subject) const {
    if (!given_.local_init_op) { return {}; }
    auto reason = detail::not_ready(given_.ready_for_local_init_op, subject);
    if (reason.empty()) { given_.local_init_op(subject); }
    return reason;
  }

  bool restore(Raw& raw, session_creation& creation, const restore_from& from) const {
    return detail::restored(creation, [&raw] { return raw.variables(); }, from, given_.recovery_wait);
  }

  void initialize(Raw& raw, session_creation& creation, const init_with<subject_type>& init) const {
    const bool is_back = creation.put_back_initial_state(raw.variables());  // a recovery, or a first try that failed half-way
    if (!is_back && creation.is_first() && init.keep_initial_state) { creation.keep_initial_state(raw.variables(), raw.global_step()); }
    if (!is_back && !creation.is_first() && !init.init_op && !init.init_fn && !given_.local_init_op) {
      detail::throw_nothing_to_begin_with();
    }
    if (init.init_op) { init.init_op(subject_in_raw(raw)); }
    if (init.init_fn) { init.init_fn(subject_in_raw(raw)); }
  }

  options given_;
};

}  // namespace stepwell
