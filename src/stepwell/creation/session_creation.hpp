// SPDX-License-Identifier: Apache-2.0
//
// The interface of a session to its creator. The state of hooks and the positions of sources are restored with the model.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/creation/detail/source_positions.hpp"
#include "stepwell/hook/detail/deferred_requests.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace stepwell {

/// A copy of the initial state of a session, used by recoveries that find no checkpoint.
class initial_state {
public:
  /// Copies `variables`.
  /// @errors `resource_exhausted_error`.
  /// @cost A copy of the variables.
  void keep(const variable_list& variables, std::int64_t step);
  void forget() noexcept { copy_.reset(); }
  [[nodiscard]] bool is_kept() const noexcept { return copy_.has_value(); }
  /// Restores the copy. Returns false if there is none.
  bool put_back(const variable_list& variables) const;

private:
  std::optional<snapshot> copy_;
};

/// Finds the checkpoint to restore: once ahead, before the creation begins, and then at every creation.
class checkpoint_search {
public:
  using finder = std::function<std::optional<checkpoint_reader>()>;
  explicit checkpoint_search(finder find) noexcept : find_(std::move(find)) {}

  /// Searches ahead. The result, or a failure for which `may_pass` returns true (a transient failure), is kept for the first `look`.
  /// @errors Failures of the search for which `may_pass` returns false.
  void look_ahead(const std::function<bool(const std::exception_ptr&)>& may_pass);
  /// Returns the newest complete checkpoint, or empty if there is none.
  /// @errors Failures of the search.
  [[nodiscard]] std::optional<checkpoint_reader> look();
  /// Discards the result of the search ahead, used or not. Called when a session has been created, because the result is then outdated.
  void forget_ahead() noexcept { is_ahead_ = false, found_.reset(), failure_ = nullptr; }

private:
  finder find_;
  bool is_ahead_ = false;
  std::optional<checkpoint_reader> found_;
  std::exception_ptr failure_;
};

/// One creation of a session: the first one, or that of a recovery.
/// @lifetime Valid during `create_session`.
/// @threads The session's thread.
/// @see contract REC-6
class session_creation {
public:
  using hook_state = std::function<variable_list()>;

  session_creation(deferred_requests& control, source_positions& positions, initial_state& initial, hook_state hooks,
                   checkpoint_search& search, bool is_first)
      : control_(control), positions_(positions), initial_(initial), hooks_(std::move(hooks)), search_(search), is_first_(is_first) {}

  /// Returns false in a recovery. A retry of a first creation that failed counts as first.
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return control_.time(); }
  /// Returns the signals of the session: a stop ends waits.
  [[nodiscard]] session_signals& signals() const noexcept { return *control_.signals(); }

  /// Returns the newest complete checkpoint, found according to the session's settings, or empty if there is none.
  [[nodiscard]] std::optional<checkpoint_reader> find_checkpoint() const { return search_.look(); }

  /// Restores `model`, the state of hooks and the positions of sources from `found`. Checks everything before it writes anything.
  /// @errors Those of `restore_state`.
  void restore(const variable_list& model, const checkpoint_reader& found);

  /// Copies the current values of `model` and the hooks, for recoveries that find no checkpoint.
  void keep_initial_state(const variable_list& model, std::int64_t step);
  /// Restores the copy. Returns false if there is none.
  bool put_back_initial_state(const variable_list& model);

  /// Declares that the state is ready at `step`. A source that was attached at that step or later is rewound to its position at the time it
  /// was attached. If this function is not called, `step` is the raw session's step after the creation.
  void set_starts_at(std::int64_t step) noexcept { starts_at_ = step; }
  [[nodiscard]] const std::optional<std::int64_t>& starts_at() const noexcept { return starts_at_; }
  /// Declares that another session has made the state ready. Sources keep their positions, whether the step has increased or decreased.
  void join() noexcept { is_joining_ = true; }
  [[nodiscard]] bool is_joining() const noexcept { return is_joining_; }

private:
  deferred_requests& control_;
  source_positions& positions_;
  initial_state& initial_;
  hook_state hooks_;
  checkpoint_search& search_;
  bool is_first_;
  bool is_joining_ = false;
  std::optional<std::int64_t> starts_at_;
};

}  // namespace stepwell
