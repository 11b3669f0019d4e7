// SPDX-License-Identifier: Apache-2.0
//
// Internal: the directory a saver owns. Blocking; the saver decides when and on which thread.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/retention.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/checkpoint/state_file.hpp"
#include "stepwell/io/file_lock.hpp"
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

/// The tensor by which a saver knows a checkpoint as one of its own, which retention may delete; its value is the version of
/// that mark. How a session lays out its state is not the saver's to know: that has a version of its own, `stepwell/version`.
inline constexpr std::string_view own_version_name = "stepwell/saver/version";

/// What may be done to a directory.
enum class directory_access {
  own,   ///< Locked and swept; everything may be done.
  look,  ///< Nothing is locked, made, or removed: only what only reads may be called.
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
  /// Deletes what is past keeping, after a save. Failures are logged only.
  void tidy() noexcept;
  /// The same, but throws them.
  void prune();
  /// What that would do now.
  [[nodiscard]] retention_plan plan() const;
  /// What the directory lists, oldest first, as retention sees it.
  [[nodiscard]] std::vector<listed_checkpoint> listed() const;
  /// What killed saves left behind, as it was found at construction (`own`: removed then).
  [[nodiscard]] const std::vector<std::string>& leftovers() const noexcept { return leftovers_; }
  [[nodiscard]] std::optional<checkpoint_reader> restore_newest();

  [[nodiscard]] std::vector<std::string> checkpoints() const;
  void pin(const std::string& prefix);
  void report_metric(std::int64_t step, double value);

  /// Keeps what is known of metrics and lets go of the directory.
  void close() noexcept;

private:
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] std::string name_of(const std::string& prefix) const;
  [[nodiscard]] std::string metrics_path() const;
  [[nodiscard]] double seconds_now() const;

  void check_is_in_place() const;
  void load(directory_access access);
  void load_list(const std::optional<state_file>& state);
  [[nodiscard]] std::set<std::string, std::less<>> claimed_without_index(const std::optional<state_file>& state) const;
  [[nodiscard]] std::optional<listed_checkpoint> inspect(const std::string& prefix);
  void load_metrics();

  [[nodiscard]] status save_failure(const status& cause, const std::string& name) const;
  void write_tensors(const std::string& name, const snapshot& taken, const std::function<void()>& before_commit);
  void add_to_list(const std::string& name, std::int64_t step);
  void write_state();
  void retain();
  [[nodiscard]] std::vector<listed_checkpoint> list_for_retention() const;
  [[nodiscard]] retention_plan plan_locked() const;
  void write_metrics();
  void keep_metrics() noexcept;

  std::string path_;
  std::string canonical_;
  const saver_options& options_;
  std::shared_ptr<io::file_system> files_;
  std::shared_ptr<clock> time_;
  std::unique_ptr<io::file_lock> lock_;
  std::vector<std::string> leftovers_;

  std::mutex one_at_a_time_;                   // of saving and restoring
  mutable std::mutex mutex_;                   // of what follows; never held during input or output
  std::vector<listed_checkpoint> list_;        // oldest first
  std::set<std::string, std::less<>> pinned_;  // names
  std::string restored_from_;                  // the name of the last one
  std::map<std::int64_t, double> metrics_;
  bool metrics_changed_ = false;
  double last_preserved_ = 0;
};

}  // namespace stepwell::detail
