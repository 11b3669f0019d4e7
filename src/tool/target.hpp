// SPDX-License-Identifier: Apache-2.0
//
// Resolves a path on the command line: a checkpoint, a directory of checkpoints, an event file, or a directory of event files.
#pragma once

#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "tool/output.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tool {

[[nodiscard]] bool is_directory(const console& to, const std::string& path);

/// Checks that `path` is a directory.
/// @errors `not_found_error`.
void require_directory(const console& to, const std::string& path);

/// Returns the prefix of the checkpoint if `path` is a prefix, an index file or a data file. Returns `path` if it is a file of another format
/// that `checkpoint_reader` opens. Empty otherwise.
[[nodiscard]] std::optional<std::string> checkpoint_prefix(const console& to, const std::string& path);

/// Returns the newest checkpoint of a directory according to its state file. Without a state file, returns the "model.ckpt-N" that was
/// saved last.
[[nodiscard]] std::optional<std::string> newest_checkpoint(const console& to, const std::string& directory);

/// Returns the prefix of the checkpoint that `path` stands for. If `path` is a directory, this is its newest checkpoint: according to its
/// state file, else the "model.ckpt-N" that was saved last, else the only checkpoint.
/// @errors `not_found_error` that says which checkpoints exist instead.
[[nodiscard]] std::string require_checkpoint(const console& to, const std::string& path);

/// Opens the checkpoint that `path` stands for, see `require_checkpoint`. If `path` is a directory, and retention has deleted its newest
/// checkpoint before it was opened, opens the next one.
/// @errors Those of `require_checkpoint` and `checkpoint_reader`.
[[nodiscard]] checkpoint_reader open_checkpoint(const console& to, const std::string& path);

/// Returns the prefixes of all index files of a directory, with any name; "model.ckpt-9" precedes "model.ckpt-10".
[[nodiscard]] std::vector<std::string> indexes_in(const console& to, const std::string& directory);

/// Returns the event files of a directory, in the order in which viewers read them. With `recursive`, includes those in subdirectories. Links
/// to directories are followed, but each directory is searched only once.
/// @errors Failures to list the directory.
[[nodiscard]] std::vector<std::string> event_files_in(const console& to, const std::string& directory, bool recursive = false);

/// Returns `path` if it is a file, else the event files in the directory.
/// @errors `not_found_error` if there are none. The message names a subdirectory that has some, if one of the first 1000 does, followed by
///   `hint`.
[[nodiscard]] std::vector<std::string> require_event_files(const console& to, const std::string& path, bool recursive = false,
                                                           std::string_view hint = {});

/// The process that writes in a directory of checkpoints, or wrote there last.
struct lock_holder {
  int pid = 0;
  std::string host;
  std::string since;     ///< UTC.
  bool is_here = false;  ///< True if the process is of this machine.
  bool is_gone = false;  ///< True if the process is known to have ended.
};

/// Returns the process that the lock file of a directory names, or its fence if the process of the fence came later. A killed process is still
/// named there.
[[nodiscard]] std::optional<lock_holder> holder_of(const console& to, const std::string& directory);

/// Returns true if a process of this machine uses the directory of checkpoints now. Files in it without an index may be those of a save or a
/// deletion in progress.
[[nodiscard]] bool is_in_use(const console& to, const std::string& directory);

/// The sizes of checkpoints. Each directory is listed only once.
class checkpoint_sizes {
public:
  explicit checkpoint_sizes(const console& to) : to_(to) {}

  /// Returns the size in bytes of all files of a checkpoint: index, data, and TensorFlow's graph file. Returns nothing if the checkpoint does not
  /// exist, for example because it was deleted in the meantime.
  /// @errors Failures to list the directory.
  [[nodiscard]] std::optional<std::uint64_t> of(const std::string& prefix);

private:
  using sizes = std::map<std::string, std::uint64_t>;  // by the name of the checkpoint
  const console& to_;
  std::map<std::string, sizes> by_directory_;
};

/// Returns true if `path`, which is `name` in the directory with the canonical path `directory`, exists and is not a link.
[[nodiscard]] bool is_no_link(const console& to, const std::string& directory, const std::string& name);

}  // namespace stepwell::tool
