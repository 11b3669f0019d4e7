// SPDX-License-Identifier: Apache-2.0
//
// Internal: the directory that a saver owns. All functions block; the saver chooses the time and the thread.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/detail/retention.hpp"
#include "stepwell/checkpoint/detail/state_file.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/io/detail/file_lock.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

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
  checkpoint_directory(std::string path, const saver_options& options, std::shared_ptr<io::file_system> files, std::shared_ptr<clock> time,
                       directory_access access = directory_access::own);

  /// Writes a snapshot durably and adds it to the list. `before_commit`: see `saver::save`.
  saved_checkpoint write(const snapshot& taken, const std::function<void()>& before_commit = nullptr);
  /// Writes the metrics and applies retention, after a save. Only logs failures.
  void tidy() noexcept;
  /// Applies retention. Throws its failures.
  void prune();
  /// Returns the changes that retention would make now.
  [[nodiscard]] retention_plan plan() const;
  /// Returns the listed checkpoints, oldest first, with the properties that retention uses.
  [[nodiscard]] std::vector<listed_checkpoint> listed() const;
  /// Returns the names of the files that killed saves left, as found by the constructor. With access `own` the constructor removed them.
  [[nodiscard]] const std::vector<std::string>& leftovers() const noexcept { return leftovers_; }
  /// Returns the newest complete checkpoint. With access `own` the state file then names it as the newest.
  /// @errors Like `find_newest_whole`. A failure to write the state file is only logged; the next save writes it.
  [[nodiscard]] std::optional<checkpoint_reader> restore_newest();

  [[nodiscard]] std::vector<std::string> checkpoints() const;
  void pin(const std::string& prefix);
  void report_metric(std::int64_t step, double value);
  /// Writes the reported metrics if there are new ones. Only logs failures; the next call retries.
  void keep_metrics() noexcept;

  /// Writes the reported metrics, applies retention if the previous saver was killed before it could, and releases the lock.
  void close() noexcept;

private:
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] std::string name_of(const std::string& prefix) const;
  [[nodiscard]] std::string metrics_path() const;
  [[nodiscard]] double seconds_now() const;

  void check_is_in_place() const;
  void load(directory_access access);
  void load_list(const std::optional<state_file>& state);
  void load_unlisted(const std::optional<state_file>& state);
  [[nodiscard]] std::set<std::string, std::less<>> claimed_without_index(const std::optional<state_file>& state) const;
  [[nodiscard]] std::optional<listed_checkpoint> inspect(const std::string& prefix) const;
  [[nodiscard]] bool is_whole(const std::string& prefix) const;
  bool add_unlisted(const std::string& prefix);
  void load_metrics();
  void check_clock();

  [[nodiscard]] status save_failure(const status& cause, const std::string& name) const;
  void write_tensors(const std::string& name, const snapshot& taken, const std::function<void()>& before_commit);
  void add_to_list(const std::string& name, std::int64_t step);
  void write_state();
  void list_at_start() noexcept;
  void retain();
  [[nodiscard]] std::vector<listed_checkpoint> list_for_retention() const;
  [[nodiscard]] retention_plan plan_locked() const;
  void write_metrics();

  std::string path_;
  std::string canonical_;
  const saver_options& options_;
  std::shared_ptr<io::file_system> files_;
  std::shared_ptr<clock> time_;
  std::unique_ptr<io::file_lock> lock_;
  std::vector<std::string> leftovers_;

  std::mutex one_at_a_time_;                   // serialises saving and restoring
  std::mutex writing_metrics_;                 // held while the metrics file is written
  std::int64_t last_save_number_ = 0;          // guarded by `one_at_a_time_`
  std::string newest_in_file_;                 // newest name in the state file; guarded by `one_at_a_time_`
  bool retention_is_due_ = false;              // the previous saver was killed; guarded by `one_at_a_time_`
  mutable std::mutex mutex_;                   // guards the members below; never held during I/O
  std::vector<listed_checkpoint> list_;        // oldest first
  std::set<std::string, std::less<>> pinned_;  // names of pinned checkpoints
  std::string restored_from_;                  // name of the checkpoint restored last
  std::map<std::int64_t, double> metrics_;
  std::map<std::int64_t, double> durable_metrics_;  // the metrics in the file
  bool metrics_changed_ = false;
  double last_preserved_ = 0;
};

}  // namespace stepwell::detail
