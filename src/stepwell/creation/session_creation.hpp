// SPDX-License-Identifier: Apache-2.0
//
// What a session lends to whoever makes it ready: hooks' state and sources' positions are restored with the model.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/creation/detail/source_positions.hpp"
#include "stepwell/hook/detail/session_control.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace stepwell {

/// The state a session began with, kept for recoveries that find no checkpoint.
class initial_state {
public:
  /// @cost A copy of the variables. @errors `resource_exhausted_error`.
  void keep(const variable_list& variables, std::int64_t step);
  void forget() noexcept { copy_.reset(); }
  [[nodiscard]] bool is_kept() const noexcept { return copy_.has_value(); }
  /// False when none is kept.
  bool put_back(const variable_list& variables) const;

private:
  std::optional<snapshot> copy_;
};

/// Looks for the checkpoint to go back to: once ahead, before anything has begun, then at every creation.
class checkpoint_search {
public:
  using finder = std::function<std::optional<checkpoint_reader>()>;
  explicit checkpoint_search(finder find) noexcept : find_(std::move(find)) {}

  /// What is found, or thrown where that may pass, is for the first `look`. @errors What is thrown and will not pass.
  void look_ahead(const std::function<bool(const std::exception_ptr&)>& may_pass);
  /// The newest whole checkpoint; nothing when there is none. @errors What looking throws.
  [[nodiscard]] std::optional<checkpoint_reader> look();
  /// A session is made: what was found ahead is of the past, used or not.
  void forget_ahead() noexcept { is_ahead_ = false, found_.reset(), failure_ = nullptr; }

private:
  finder find_;
  bool is_ahead_ = false;
  std::optional<checkpoint_reader> found_;
  std::exception_ptr failure_;
};

/// One creation of a session, the first or a recovery's (contract REC-6).
/// @threads The session's. @lifetime Valid during `create_session`.
class session_creation {
public:
  using hook_state = std::function<variable_list()>;

  session_creation(session_control& control, source_positions& positions, initial_state& initial, hook_state hooks,
                   checkpoint_search& search, bool is_first)
      : control_(control), positions_(positions), initial_(initial), hooks_(std::move(hooks)), search_(search), is_first_(is_first) {}

  /// False at a recovery. A first creation that failed and is tried again is still the first.
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return control_.time(); }
  /// For waits: a stop ends them.
  [[nodiscard]] session_signals& signals() const noexcept { return *control_.signals(); }

  /// The newest whole checkpoint, as the session's settings find it; nothing when there is none.
  [[nodiscard]] std::optional<checkpoint_reader> find_checkpoint() const { return search_.look(); }

  /// Fills `model`, the hooks' state and the sources' positions from `found`. All is checked before anything is written.
  /// @errors Those of `restore_state`.
  void restore(const variable_list& model, const checkpoint_reader& found);

  /// Keeps what `model` and the hooks hold now, for recoveries that find no checkpoint.
  void keep_initial_state(const variable_list& model, std::int64_t step);
  /// Puts it back; false where none is kept.
  bool put_back_initial_state(const variable_list& model);

  /// The state is ready and that of `step`: a source that came into use later goes back to where it stood then. Unless
  /// said, that is the raw session's step once it is created.
  void set_starts_at(std::int64_t step) noexcept { starts_at_ = step; }
  [[nodiscard]] const std::optional<std::int64_t>& starts_at() const noexcept { return starts_at_; }
  /// Somebody else has made the state ready: sources stay where they are, whichever way it went.
  void join() noexcept { is_joining_ = true; }
  [[nodiscard]] bool is_joining() const noexcept { return is_joining_; }

private:
  session_control& control_;
  source_positions& positions_;
  initial_state& initial_;
  hook_state hooks_;
  checkpoint_search& search_;
  bool is_first_;
  bool is_joining_ = false;
  std::optional<std::int64_t> starts_at_;
};

}  // namespace stepwell
