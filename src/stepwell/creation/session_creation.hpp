// SPDX-License-Identifier: Apache-2.0
//
// The creation of a session, at its start and in each recovery: the target and the configuration of the session, and the functions with
// which a session creator restores the model, the state of hooks and the positions of sources.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/io/pool.hpp"
#include "stepwell/protocol/detail/boundary_requests.hpp"
#include "stepwell/protocol/detail/recovery_copy.hpp"

#include <atomic>
#include <cstddef>
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
#include <vector>

namespace stepwell {

/// Settings for a raw session. A raw session uses the settings that it supports. `model_session`, the raw session of a model, ignores both
/// numbers of threads. The code of the model or of a hook can read the numbers with `model_session::config()`.
/// @see contract CREATE-1
struct session_config {
  int intra_op_parallelism_threads = 0;  ///< Number of threads in one operation. 0: the raw session chooses.
  int inter_op_parallelism_threads = 0;  ///< Number of operations that run at the same time. 0: the raw session chooses.
  /// Threads on which checkpoints and event files are written. Null: the threads shared by all sessions of the process.
  std::shared_ptr<io::pool> io = nullptr;
};

/// The master, the role (chief or worker) and the configuration of a raw session.
struct session_target {
  /// If empty, the session has no master. "local:NAME": the session shares a master with the other sessions of this process that use the
  /// same name, and all of them train one model. A session over a TensorFlow graph has the address of a server here instead.
  std::string master = {};
  bool is_chief = true;
  session_config config = {};
};

namespace detail {

/// What a session does with the initial state of the raw session that it was given.
enum class initial_state {
  copied,      ///< Copies it. A recovery without a checkpoint restores it.
  not_copied,  ///< A recovery without a checkpoint is an error.
  unchanged,   ///< The steps change no state, and a recovery restores nothing.
};

/// The positions of the seekable sources, by the name of the source. A position is a number that identifies the next batch of the source.
/// The positions are saved with the state of the session. After a restore, each source seeks to its position. A source without a name has
/// the name "default" here. A position is kept when its source is destroyed, so that the last save of a session includes the position.
/// @threads The session's thread.
class source_positions {
public:
  /// Returns true for the first call with this name, and false for later calls.
  [[nodiscard]] bool is_new(const std::string& name) { return seen_.insert(name).second; }
  /// Sets whether the batches of this session continue those of an earlier run.
  void set_resumes(bool resumes) noexcept { resumes_ = resumes; }
  [[nodiscard]] bool resumes() const noexcept { return resumes_; }
  /// Sets the name of the session, which is in all log messages about its sources.
  void set_log_name(std::string name) { log_name_ = std::move(name); }
  [[nodiscard]] const std::string& log_name() const noexcept { return log_name_; }
  /// Registers a source. Until `detach`, each save calls `position()`, which returns the position of the source. `step` is the current
  /// global step. If no source of that name was attached before, stores the current position together with `step`, for `go_back`.
  /// @errors `invalid_argument_error` if a source of that name is already attached.
  void attach(const std::string& name, std::function<std::uint64_t()> position, std::int64_t step);
  /// Unregisters a source, and keeps its current position. If the source cannot report its position, the last known position is kept. If
  /// the source has not applied its restored position yet, the restored position is kept instead of the current one.
  void detach(const std::string& name) noexcept;
  /// Unregisters all sources, and keeps the positions of the last save.
  void leave_sources() noexcept;

  /// Returns the restored position to which the source has to seek. Empty if no position was restored, or after `mark_positioned`.
  [[nodiscard]] std::optional<std::uint64_t> restored(const std::string& name) const;
  /// Marks the restored position as applied. Do not call it if the seek failed, so that the seek can be repeated.
  void mark_positioned(const std::string& name) noexcept;

  /// Returns the variables of all sources, with the current values. Each source has the variable `stepwell/source/NAME/position`. A source
  /// with a fingerprint (a text that identifies its data) also has `stepwell/source/NAME/fingerprint`.
  /// @lifetime The references are valid until the next call to any function.
  [[nodiscard]] variable_list variables();

  /// Stores a position found in a checkpoint, to be applied to its source, and the fingerprint of the data to which it belongs.
  void restore(const std::string& name, std::int64_t position, std::string fingerprint = {});
  /// Rewinds the sources to `step`. Called after a restore of the state as it was at `step`, and of the positions that the checkpoint
  /// contains. Affects only the sources whose position is not in the checkpoint. If such a source was first attached at `step` or later,
  /// the restored state contains nothing of it: it is rewound to its position at that first `attach`. Otherwise it is not moved.
  void go_back(std::int64_t step) noexcept;
  /// Returns the number of calls of `go_back`. If this number has changed, a loop must seek its source to `restored(name)`.
  [[nodiscard]] std::uint64_t rewind_count() const noexcept { return rewinds_; }

  /// Sets the fingerprint of the data that the source `name` reads. A fingerprint that is not empty is saved with the position.
  void set_fingerprint(const std::string& name, std::string fingerprint);
  /// Returns the fingerprint that was restored with the position of `name`. Empty if there is none.
  [[nodiscard]] std::string restored_fingerprint(const std::string& name) const;
  /// Returns the name of a source that is not attached, and for which a position with this fingerprint was restored but not applied yet.
  /// Empty if there is no such source.
  [[nodiscard]] std::string waiting_with(const std::string& fingerprint) const;

  /// Marks the batch at `position` of the source `name`: a loop skips this batch when the source reaches the position again.
  void skip(const std::string& name, std::uint64_t position);
  [[nodiscard]] bool skips(const std::string& name) const;
  [[nodiscard]] bool is_skipped(const std::string& name, std::uint64_t position) const;

  /// Returns the name of the variable that holds the position of the source `name`. `source_name` is the inverse, and returns nullopt for
  /// the names of other variables.
  [[nodiscard]] static std::string variable_name(const std::string& name);
  [[nodiscard]] static std::optional<std::string> source_name(std::string_view variable);
  /// Returns the name of the variable that holds the fingerprint of the source `name`.
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
    std::string fingerprint;           // saved with `position`; set by the attached source, or restored while no source is attached
    std::string restored_fingerprint;  // saved with the restored position; valid while `is_due` is true
  };
  [[nodiscard]] const entry* find(const std::string& name) const noexcept;

  std::map<std::string, entry, std::less<>> entries_;
  std::set<std::string> seen_;
  bool resumes_ = true;
  std::string log_name_;
  std::uint64_t rewinds_ = 0;
};

/// Finds the checkpoint to restore, at every creation of a session. The first search may be made earlier, by `look_ahead`.
class checkpoint_search {
public:
  using finder = std::function<std::optional<checkpoint_reader>()>;
  explicit checkpoint_search(finder find) noexcept : find_(std::move(find)) {}

  /// Searches before the creation begins, and keeps the result for the next `look`. `may_pass` returns true for a transient failure. If the
  /// search fails with a transient failure, stores the failure, and the next `look` throws it.
  /// @errors Failures of the search for which `may_pass` returns false.
  void look_ahead(const std::function<bool(const std::exception_ptr&)>& may_pass);
  /// Returns the checkpoint to restore. Empty if there is none. The first call after `look_ahead` returns the kept result. Other calls
  /// search.
  /// @errors Failures of the search.
  [[nodiscard]] std::optional<checkpoint_reader> look();
  /// Discards the result of `look_ahead`. Called when the session has been created, because the result is outdated in a later creation.
  void forget_ahead() noexcept { is_ahead_ = false, found_.reset(), failure_ = nullptr; }

private:
  finder find_;
  bool is_ahead_ = false;
  std::optional<checkpoint_reader> found_;
  std::exception_ptr failure_;
};

/// The initial values of variables that a restored checkpoint lacks. A recovery to such a checkpoint restores them.
/// @threads The session's thread.
class initial_values {
public:
  /// Keeps the current values of those `variables` for which no value is kept yet.
  void keep(const variable_list& variables);
  /// Restores the kept values of `variables`. Returns the variables of which no value was kept.
  variable_list put_back(const variable_list& variables) const;
  /// Returns the memory of the values in bytes.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return bytes_; }

private:
  std::map<std::string, tensor, std::less<>> values_;
  std::atomic<std::size_t> bytes_ = 0;  // read by any thread
};

}  // namespace detail

/// One creation of a session: the first creation, or the creation in a recovery.
/// @lifetime Valid during `create_session`.
/// @threads The session's thread.
/// @see contract REC-6
class session_creation {
public:
  using hook_state = std::function<variable_list()>;

  /// `initial` is null if the session does not recover. `receives_state`: see below.
  session_creation(boundary_requests& requests, detail::source_positions& positions, recovery_copy& copy, detail::initial_values* initial,
                   hook_state hooks, detail::checkpoint_search& search, bool is_first, bool receives_state = false)
      : requests_(requests), positions_(positions), copy_(copy), initial_(initial), hooks_(std::move(hooks)), search_(search),
        is_first_(is_first), receives_state_(receives_state) {}

  /// Returns false in a recovery. If the first creation failed, its retry still counts as the first creation.
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }
  /// Returns true if rank 0 of the group sends the state after this creation. The creation then neither restores nor keeps a state.
  [[nodiscard]] bool receives_state() const noexcept { return receives_state_; }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return requests_.facts().time; }
  /// Returns the signals of the session. Code that waits must end its wait when a stop is requested.
  [[nodiscard]] session_signals& signals() const noexcept { return *requests_.signals(); }

  /// Returns the checkpoint to restore, found by `session_setup::find_checkpoint`. Empty if there is none.
  [[nodiscard]] std::optional<checkpoint_reader> find_checkpoint() const { return search_.look(); }

  /// Restores `own`, the variables of the raw session, the state of hooks, and the positions of sources. The sources seek to their
  /// positions later. Checks names, dtypes and shapes before it writes anything. A variable that is `optional()` and the state of a hook
  /// may be missing in the checkpoint. Such variables then have their initial values, also after a recovery, and one warning names all of
  /// them. For recoveries, the first restore copies these values. If other variables are missing in a later recovery, they keep their
  /// current values, and the warning says so. Tensors of the checkpoint that belong to no variable are ignored, and listed in the log. If
  /// `found` was returned by `open_newest` and is damaged, the next older checkpoint is restored. If all checkpoints are damaged, some
  /// variables may hold values of one of them, and other variables their previous values; the error says so.
  /// @errors `unimplemented_error` if a later version of stepwell has written the checkpoint with a later layout. The errors of the free
  ///   function `stepwell::restore`: variables are missing or do not match (the message names them), or data are damaged.
  void restore(const variable_list& own, const checkpoint_reader& found);

  /// Copies the current values of `own`, the variables of the raw session, and of the state of hooks, for recoveries that find no checkpoint.
  /// @errors `resource_exhausted_error`.
  void keep_initial_state(const variable_list& own, std::int64_t step);
  /// Restores the snapshot of a failed save, as if it were a checkpoint. Such a snapshot stays in memory if the failure left the session
  /// without a checkpoint. Returns false if there is no such snapshot.
  bool restore_unsaved(const variable_list& own);
  /// Restores `received`, the state of rank 0 of the group, like a checkpoint.
  void restore_received(const variable_list& own, const snapshot& received);
  /// Restores the copy made by `keep_initial_state`. Returns false if there is no such copy.
  bool put_back_initial_state(const variable_list& own);
  /// At the first creation, copies the initial state of hooks. In a recovery without a checkpoint and without a copy of the initial state
  /// of the model, restores that state of hooks.
  void begin_hooks_anew();

  /// Declares that the restored or initialised state is that of `step`. The session then rewinds its sources to that step, see
  /// `source_positions::go_back`. If this function is not called, the session uses the raw session's step after the creation.
  void set_starts_at(std::int64_t step) noexcept { starts_at_ = step; }
  [[nodiscard]] const std::optional<std::int64_t>& starts_at() const noexcept { return starts_at_; }
  /// Declares that another session has initialised or restored the state. This session then leaves all its sources at their positions, even
  /// if the step has decreased.
  void join() noexcept { is_joining_ = true; }
  [[nodiscard]] bool is_joining() const noexcept { return is_joining_; }
  /// Declares that this creation has restored nothing, because the steps of the session do not change the state. The session then leaves all
  /// its sources at their positions.
  void leave_state() noexcept { leaves_state_ = true; }
  [[nodiscard]] bool leaves_state() const noexcept { return leaves_state_; }

private:
  void restore_one(const variable_list& own, const checkpoint_reader& found);
  void restore_snapshot(const variable_list& own, const snapshot& taken, const std::string& place);
  /// Requests `stop`, which the state in `place` contains, unless it is to be ignored. Does nothing if it contains none.
  void restore_stop(std::optional<stop_reason> stop, const std::string& place);
  void initialize_missing(const variable_list& wanted, const std::vector<std::string>& missing, const std::string& place);
  [[nodiscard]] variable_list with_hooks(variable_list own) const;
  /// Like `with_hooks`, for a restore: the state may lack the variables of the hooks.
  [[nodiscard]] variable_list with_optional_hooks(variable_list own) const;

  boundary_requests& requests_;
  detail::source_positions& positions_;
  recovery_copy& copy_;
  detail::initial_values* initial_;
  hook_state hooks_;
  detail::checkpoint_search& search_;
  bool is_first_;
  bool receives_state_;
  bool is_joining_ = false;
  bool leaves_state_ = false;
  std::optional<std::int64_t> starts_at_;
};

}  // namespace stepwell
