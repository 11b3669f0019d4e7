// SPDX-License-Identifier: Apache-2.0
//
// Internal: the directory a saver owns. Blocking; the saver decides when and on which thread.
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

/// The kinds of access to a directory.
enum class directory_access {
  own,   ///< Locked and swept; everything may be done.
  look,  ///< Nothing is locked, made, or removed: only functions that read may be called.
};

/// Locked, swept, and its list known.
/// @threads Any; saving and restoring wait for each other.
class checkpoint_directory {
public:
  /// @errors As `saver::saver`.
  checkpoint_directory(std::string path, const saver_options& options, std::shared_ptr<io::file_system> files, std::shared_ptr<clock> time,
                       directory_access access = directory_access::own);

  /// Makes a snapshot durable and lists it. `before_commit`: see `saver::save`.
  saved_checkpoint write(const snapshot& taken, const std::function<void()>& before_commit = nullptr);
  /// Writes the metrics and applies retention, after a save. Failures are logged only.
  void tidy() noexcept;
  /// Applies retention, and throws failures.
  void prune();
  /// Returns the changes that retention would make now.
  [[nodiscard]] retention_plan plan() const;
  /// Returns the listed checkpoints, oldest first, as retention sees them.
  [[nodiscard]] std::vector<listed_checkpoint> listed() const;
  /// Returns the names of the files of killed saves, as they were found at construction (`own`: removed then).
  [[nodiscard]] const std::vector<std::string>& leftovers() const noexcept { return leftovers_; }
  /// Returns the newest complete checkpoint. With access `own` the state file then names it as the newest.
  /// @errors As `find_newest_whole`. A state file that cannot be written is logged only; the next save writes it.
  [[nodiscard]] std::optional<checkpoint_reader> restore_newest();

  [[nodiscard]] std::vector<std::string> checkpoints() const;
  void pin(const std::string& prefix);
  void report_metric(std::int64_t step, double value);
  /// Writes the reported metrics if there are new ones. Failures are logged only; the next call tries again.
  void keep_metrics() noexcept;

  /// Writes the reported metrics, applies retention if the last saver was killed before it could, and releases the lock.
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

  std::mutex one_at_a_time_;                   // of saving and restoring
  std::mutex writing_metrics_;                 // held while the file of metrics is written
  std::int64_t last_save_number_ = 0;          // guarded by `one_at_a_time_`
  std::string newest_in_file_;                 // the name in the state file; guarded by `one_at_a_time_`
  bool retention_is_due_ = false;              // the saver before was killed; guarded by `one_at_a_time_`
  mutable std::mutex mutex_;                   // of the members below; never held during input or output
  std::vector<listed_checkpoint> list_;        // oldest first
  std::set<std::string, std::less<>> pinned_;  // names
  std::string restored_from_;                  // the name of the last one
  std::map<std::int64_t, double> metrics_;
  std::map<std::int64_t, double> durable_metrics_;  // those in the file
  bool metrics_changed_ = false;
  double last_preserved_ = 0;
};

}  // namespace stepwell::detail
