// SPDX-License-Identifier: Apache-2.0
//
// One creation of a session: its target and configuration, and the interface of the session to its creator. The state of hooks and the
// positions of sources are restored with the model.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/hook/detail/deferred_requests.hpp"
#include "stepwell/io/pool.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {

/// Settings that are passed to the raw session, which uses them as far as it can. A model session does not use the numbers; its model can
/// read them with `session.config()`. 0: the raw session chooses.
/// @see contract CREATE-1
struct session_config {
  int intra_op_parallelism_threads = 0;
  int inter_op_parallelism_threads = 0;
  /// Threads on which checkpoints and event files are written. Null: the threads shared by all sessions of the process.
  std::shared_ptr<io::pool> io = nullptr;
};

/// The master, role and configuration for which a raw session is made.
struct session_target {
  /// Empty: a session without a master. "local:NAME": the session shares the master with the sessions of this process that use the same
  /// name.
  std::string master = {};
  bool is_chief = true;
  session_config config = {};
};

/// The positions of the sources of batches, by name of the source: saved with the state, and applied to the sources after a restore. A
/// source without a name is called "default". A position outlives its source, so that the last save of a session includes it.
/// @threads The session's thread.
class source_positions {
public:
  /// Returns true in the first call with this name.
  [[nodiscard]] bool is_new(const std::string& name) { return seen_.insert(name).second; }
  /// Registers a source: `position()` is called at each save, until `detach`. `step` is the current global step. The current position of
  /// the source is stored as its position at that step, if no source of that name was attached before.
  /// @errors `invalid_argument_error` if a source of that name is already attached.
  void attach(const std::string& name, std::function<std::uint64_t()> position, std::int64_t step);
  /// Unregisters a source, and keeps its current position. If the source cannot report its position, the last known one is kept. A restored
  /// position that was not applied yet is kept, too.
  void detach(const std::string& name) noexcept;
  /// Unregisters all sources. Their positions stay as they were at the last save.
  void leave_sources() noexcept;

  /// Returns the restored position to which the source has to seek, until `mark_positioned` is called. Empty if there is none.
  [[nodiscard]] std::optional<std::uint64_t> restored(const std::string& name) const;
  /// Marks the restored position as applied. Not called if the seek failed, so that it can be retried.
  void mark_positioned(const std::string& name) noexcept;

  /// Returns the variables `stepwell/source/NAME/position` and `fingerprint` of all sources, with current values.
  /// @lifetime The references are valid until the next call to any function.
  [[nodiscard]] variable_list variables();

  /// Stores a position found in a checkpoint, to be applied to its source, and the fingerprint of the data to which it belongs.
  void restore(const std::string& name, std::int64_t position, std::string fingerprint = {});
  /// Rewinds the sources to `step`, after a restore of the state and of the positions in the checkpoint. A source without a restored
  /// position that was attached at `step` or later is rewound to its position at the time it was attached.
  void go_back(std::int64_t step) noexcept;
  /// Returns the number of rewinds. A loop has to move its source if the number has changed.
  [[nodiscard]] std::uint64_t rewind_count() const noexcept { return rewinds_; }

  /// Sets the fingerprint of the data that a source reads. It is saved with the position, unless it is empty.
  void set_fingerprint(const std::string& name, std::string fingerprint);
  /// Returns the fingerprint that was restored with the position of `name`. Empty if there is none.
  [[nodiscard]] std::string restored_fingerprint(const std::string& name) const;
  /// Returns the name of a source that is not in use, and whose restored position is not applied yet and has this fingerprint. Empty if
  /// there is none.
  [[nodiscard]] std::string waiting_with(const std::string& fingerprint) const;

  /// Marks the batch at `position` of the source to be skipped when it is reached again.
  void skip(const std::string& name, std::uint64_t position);
  [[nodiscard]] bool skips(const std::string& name) const;
  [[nodiscard]] bool is_skipped(const std::string& name, std::uint64_t position) const;

  /// Returns the name of the variable that holds the position of `name`; the second function is the inverse.
  [[nodiscard]] static std::string variable_name(const std::string& name);
  [[nodiscard]] static std::optional<std::string> source_name(std::string_view variable);
  /// The same for the variable that holds the fingerprint.
  [[nodiscard]] static std::string fingerprint_variable(const std::string& name);

private:
  struct origin {
    std::int64_t position;
    std::int64_t step;
  };
  struct entry {
    std::int64_t position = 0;
    bool is_due = false;          // restored, but not yet applied to the source
    std::optional<origin> first;  // position and step at the time of the first `attach`
    std::function<std::uint64_t()> live;
    std::set<std::uint64_t> skipped;
    std::string fingerprint;           // of the data in use, or else of the restored position
    std::string restored_fingerprint;  // as long as `is_due`
  };
  [[nodiscard]] const entry* find(const std::string& name) const noexcept;

  std::map<std::string, entry, std::less<>> entries_;
  std::set<std::string> seen_;
  std::uint64_t rewinds_ = 0;
};

/// A copy of the initial state of a session, used by recoveries that find no checkpoint.
using initial_state = std::optional<snapshot>;

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

  /// Restores all variables of `model`, the variables of hooks that `found` has, and the positions of sources, which are applied to the
  /// sources later. Checks everything before it writes anything. Hook state that the checkpoint lacks keeps its initial value, and a warning
  /// is logged. Entries of the checkpoint that belong to no variable are ignored, and listed in the log.
  /// @errors `unimplemented_error` if our entries were written by a later library; those of `restore`: a missing or mismatching variable,
  ///   named; damaged data.
  void restore(const variable_list& model, const checkpoint_reader& found);

  /// Copies the current values of `model` and the hooks, for recoveries that find no checkpoint.
  /// @errors `resource_exhausted_error`.
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
  [[nodiscard]] variable_list with_hooks(variable_list model) const;

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
