// SPDX-License-Identifier: Apache-2.0
//
// What people mean by a path: a checkpoint, a directory of them, an event file, a directory of those.
#pragma once

#include "tool/console.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tool {

[[nodiscard]] bool is_directory(const console& to, const std::string& path);

/// Checks that `path` is a directory. @errors `not_found_error`.
void require_directory(const console& to, const std::string& path);

/// The prefix of a checkpoint if `path` is one, or one of its files: the index or a data file.
[[nodiscard]] std::optional<std::string> checkpoint_prefix(const console& to, const std::string& path);

/// Returns the newest checkpoint of a directory: by its state file; where there is none, the "model.ckpt-N" saved last.
[[nodiscard]] std::optional<std::string> newest_checkpoint(const console& to, const std::string& directory);

/// The checkpoint that `path` means: itself, or the newest of a directory by its state file; where there is none, the only
/// one, or the newest "model.ckpt-N".
/// @errors `not_found_error` that says what there is instead.
[[nodiscard]] std::string require_checkpoint(const console& to, const std::string& path);

/// Prefixes of all indexes of a directory, whatever they are called; "model.ckpt-9" before "model.ckpt-10".
[[nodiscard]] std::vector<std::string> indexes_in(const console& to, const std::string& directory);

/// The event files of a directory, in the order in which viewers read them; `recursive`: those below it, too.
/// @errors Of listing the directory.
[[nodiscard]] std::vector<std::string> event_files_in(const console& to, const std::string& directory, bool recursive = false);

/// `path` itself if it is a file, else the event files in it.
/// @errors `not_found_error` if there are none. It says where below the directory there are some, and then `hint`.
[[nodiscard]] std::vector<std::string> require_event_files(const console& to, const std::string& path, bool recursive = false,
                                                           std::string_view hint = {});

/// Bytes of all files of a checkpoint: index, data, and what TensorFlow puts beside them.
[[nodiscard]] std::uint64_t size_on_disk(const console& to, const std::string& prefix);

}  // namespace stepwell::tool
