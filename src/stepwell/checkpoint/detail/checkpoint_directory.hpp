// SPDX-License-Identifier: Apache-2.0
//
// Internal: the files in a directory of checkpoints, the selection of the checkpoints to keep, and the directory that a saver owns.
// All functions block; the saver chooses the time and the thread.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/format/checkpoint/detail/checkpoint_state.hpp"
#include "stepwell/io/fenced_directory.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// Name of the lock file of a directory.
inline constexpr std::string_view lock_name = ".stepwell.lock";

/// Returns `files` with a fence for `directory`. Returns `files` unchanged if it is already
/// the file system of a fence. Null stands for the file system of this machine.
[[nodiscard]] std::shared_ptr<io::file_system> with_fence(std::shared_ptr<io::file_system> files, const std::string& directory,
                                                          io::fence_use use = io::fence_use::if_not_lockable);

/// Returns the modification time of a file, or nothing if it does not exist. Throws other failures.
[[nodiscard]] std::optional<clock::wall_time> modified_time(io::file_system& files, const std::string& path);

/// Removes a file, and returns true if it existed. Logs failures.
bool remove_or_log(io::file_system& files, const std::string& path);

/// Returns the names of the files in a directory. Returns none if the directory does not exist. Throws other failures, also if
/// `directory` is a file.
[[nodiscard]] std::vector<std::string> names_in(io::file_system& files, const std::string& directory);

/// Returns N if `name` is `basename`-N followed by `suffix`, otherwise nothing.
[[nodiscard]] std::optional<std::int64_t> step_in_name(std::string_view name, std::string_view basename, std::string_view suffix) noexcept;

/// The parts of a data file name: "model.ckpt-3.data-00000-of-00001".
struct data_file_name {
  std::string_view prefix;  ///< Without the directory.
  std::int32_t shards = 0;
};
/// Returns the parts of `name`, or nothing if it is not the name of a data file.
[[nodiscard]] std::optional<data_file_name> parse_data_name(std::string_view name) noexcept;

/// Removes the data files in `names` for which `removes` returns true. Logs failures.
void remove_data_files(io::file_system& files, const std::string& directory, const std::vector<std::string>& names,
                       const std::function<bool(const data_file_name&)>& removes);

/// The files of a checkpoint.
struct checkpoint_files {
  std::string prefix;            ///< With the directory.
  clock::wall_time written;      ///< Time at which its index was written.
  std::uint64_t size_bytes = 0;  ///< Size of its index, its data and TensorFlow's graph file (".meta").
};

/// Returns the checkpoints in a directory that have an index, with any basename; "model.ckpt-9" precedes "model.ckpt-10". Opens no file.
/// @errors Failures to list the directory, or to find the time of an index.
[[nodiscard]] std::vector<checkpoint_files> find_checkpoint_files(io::file_system& files, const std::string& directory);

/// A parsed state file.
struct state_file {
  format::checkpoint_state content;   ///< With the paths of the file, unchanged.
  std::vector<std::string> prefixes;  ///< With the directory, without duplicates, oldest first.
};

/// Returns the state file of a directory. Returns nothing if it does not exist. If it cannot be parsed, logs a warning and returns
/// nothing. Throws other failures of the file system.
[[nodiscard]] std::optional<state_file> read_state_file(io::file_system& files, const std::string& directory);

/// Complete checkpoints that the state file does not list: prefixes, with the directory, oldest first. The order is that of the save
/// numbers in the checkpoints. A checkpoint without a number, such as one of TensorFlow, comes directly after the highest-numbered
/// checkpoint whose step is not above its own. Modification times are ignored, because copying changes them and clocks are set back.
struct unlisted_checkpoints {
  std::vector<std::string> older;  ///< Older than the newest listed one; all, if there is no state file.
  std::vector<std::string> newer;  ///< Newer; their saves were killed before the state file was written.
  std::int64_t last_number = 0;    ///< The highest save number in both lists; 0 if there is none.
};

/// Returns the checkpoints `basename`-N that the state file does not list.
/// @errors Failures of the file system while the directory is listed.
/// @cost   One listing of the directory. For each unlisted checkpoint, its index and one tensor.
[[nodiscard]] unlisted_checkpoints find_unlisted(const std::shared_ptr<io::file_system>& files, const std::string& directory,
                                                 std::string_view basename, const std::optional<state_file>& state);

/// A listed checkpoint with the properties that retention needs.
struct listed_checkpoint {
  std::string name;  ///< Without the directory, unless the checkpoint is in another directory.
  std::int64_t step = 0;
  double time = 0;            ///< Seconds since the epoch.
  bool is_ours = false;       ///< Written by a saver of this library. Other checkpoints are never deleted.
  bool is_protected = false;  ///< Pinned, or restored from.
  bool is_kept = false;       ///< Its files are kept permanently; listed only while it is the newest.
};

/// Result of retention, each list oldest first. A checkpoint of the input that is in neither list is removed from the list, and its
/// files are kept permanently.
struct retention_plan {
  std::vector<listed_checkpoint> listed;
  std::vector<listed_checkpoint> deleted;
  double last_preserved = 0;
};

/// Returns the checkpoints to keep in the list and the checkpoints to delete. `list` is sorted oldest first; its last element, the newest,
/// is always kept. `last_preserved` is the time of the last checkpoint that was kept because of `keep_every_n_hours`. Does
/// no I/O.
[[nodiscard]] retention_plan plan_retention(const std::vector<listed_checkpoint>& list, const saver_options& options,
                                            double last_preserved);

/// Kind of access to a directory.
enum class directory_access {
  own,   ///< Locks the directory and removes leftovers; allows all functions.
  look,  ///< Does not lock, create or remove; allows only functions that read.
};

/// A directory of checkpoints with its list loaded. With access `own` it is locked and free of leftovers.
/// @threads Any. Saving and restoring exclude each other.
class checkpoint_directory {
public:
  /// Loads the list of checkpoints. With access `own` also creates and locks the directory and removes leftovers.
  /// @errors Like `saver::saver`.
  /// @pre    `options` outlives the directory and has a file system and a clock.
  checkpoint_directory(std::string path, const saver_options& options, directory_access access = directory_access::own);

  /// Writes a snapshot durably and adds it to the list. `before_commit`: see `saver::save`.
  saved_checkpoint write(const snapshot& taken, const std::function<void()>& before_commit = nullptr);
  /// Applies retention, after a save. Only logs failures.
  void tidy() noexcept;
  /// Applies retention. Throws its failures.
  void prune();
  /// Returns the changes that retention would make now.
  [[nodiscard]] retention_plan plan() const;
  /// Returns the listed checkpoints, oldest first, with the properties that retention uses.
  [[nodiscard]] std::vector<listed_checkpoint> listed() const;
  /// Returns the names of the files that killed saves left, as found by the constructor. With access `own` the constructor removed them.
  [[nodiscard]] const std::vector<std::string>& leftovers() const noexcept { return leftovers_; }
  /// Returns the newest complete checkpoint. With access `own` the state file then names it as the newest. With access `look` this is the
  /// newest that the constructor found, unless another process has deleted all of those since.
  /// @errors Like `latest_whole_checkpoint`. A failure to write the state file is only logged; the next save writes it.
  [[nodiscard]] std::optional<checkpoint_reader> restore_newest();
  /// Like `restore_newest`, but the checkpoint is not verified. `hold` is kept alive by the result. The state file is written, and older
  /// checkpoints lose protection, when the session accepts a checkpoint.
  [[nodiscard]] std::optional<checkpoint_reader> open_newest(std::shared_ptr<void> hold);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// See `saver::is_in_place`.
  [[nodiscard]] bool is_in_place() const noexcept;
  /// Returns true if another writer has taken over the directory, so that this one can never change it again.
  [[nodiscard]] bool is_taken_over() const noexcept { return taken_over().has_value(); }
  /// Returns the failure of a save: `failed_precondition_error` if another writer has taken over the directory, otherwise `failure`.
  [[nodiscard]] std::exception_ptr failure_of_fence(std::exception_ptr failure) const;
  [[nodiscard]] std::vector<std::string> checkpoints() const;
  /// See `saver::pin`.
  void pin(const std::string& checkpoint);

  /// Applies retention if the previous saver was killed before it could, and releases the lock.
  void close() noexcept;

private:
  [[nodiscard]] std::optional<status> taken_over() const noexcept;
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] std::string name_of(const std::string& prefix) const;
  [[nodiscard]] std::string file_name_at(std::int64_t step) const;
  [[nodiscard]] std::string pinned_name(const std::string& checkpoint) const;
  [[nodiscard]] double seconds_now() const;

  [[nodiscard]] std::optional<checkpoint_reader> newest_still_listed() const STEPWELL_HOLDS(one_at_a_time_);
  void check_is_in_place() const;
  void load_list(const state_file& state) STEPWELL_HOLDS(one_at_a_time_);
  [[nodiscard]] std::set<std::string, std::less<>> claimed_without_index(const std::optional<state_file>& state) const;
  bool add(const std::string& prefix, bool verifies) STEPWELL_HOLDS(one_at_a_time_);
  void remove_older_duplicates() STEPWELL_HOLDS(one_at_a_time_);
  void check_clock() STEPWELL_HOLDS(one_at_a_time_);
  [[nodiscard]] std::uint64_t write_tensors(const std::string& name, const snapshot& taken, const std::function<void()>& before_commit)
      STEPWELL_HOLDS(one_at_a_time_);
  void write_state() STEPWELL_HOLDS(one_at_a_time_);
  void list_at_start() noexcept STEPWELL_HOLDS(one_at_a_time_);
  [[nodiscard]] std::vector<std::string> names_to_list() const STEPWELL_HOLDS(one_at_a_time_);
  void note_restored(const checkpoint_reader& newest) STEPWELL_HOLDS(one_at_a_time_);
  void retain() STEPWELL_HOLDS(one_at_a_time_);

  std::string path_;
  std::string canonical_;
  const saver_options& options_;
  std::shared_ptr<io::file_system> files_;
  std::shared_ptr<io::fenced_directory> fence_;  // null if the file system has none
  std::shared_ptr<clock> time_;
  std::unique_ptr<io::file_lock> lock_;
  std::vector<std::string> leftovers_;

  checked_mutex one_at_a_time_;  // serialises saving and restoring
  std::int64_t last_save_number_ STEPWELL_GUARDED_BY(one_at_a_time_) = 0;
  std::vector<std::string> in_file_ STEPWELL_GUARDED_BY(one_at_a_time_);   // names in the state file, oldest first
  bool retention_is_due_ STEPWELL_GUARDED_BY(one_at_a_time_) = false;      // the previous saver was killed
  mutable checked_mutex mutex_;                                            // never held during I/O
  std::set<std::string, std::less<>> pinned_ STEPWELL_GUARDED_BY(mutex_);  // names of pinned checkpoints
  std::string restored_from_ STEPWELL_GUARDED_BY(mutex_);                  // name of the checkpoint restored last
  // Changed with both mutexes held, and read with one of them.
  std::vector<listed_checkpoint> list_;  // oldest first
  double last_preserved_ = 0;
};

}  // namespace stepwell::detail
