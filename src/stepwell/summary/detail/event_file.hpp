// SPDX-License-Identifier: Apache-2.0
//
// Names and creation of event files.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/result.hpp"
#include "stepwell/io/detail/byte_sink.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stepwell::summary {

/// Returns the name of a new event file: `events.out.tfevents.<seconds>.<host>.<process>.<counter><suffix>`. The seconds are later
/// than those of every event file among `names`, because viewers read the files of a directory in the order of their names and do
/// not return to an earlier one.
[[nodiscard]] std::string next_event_file_name(std::span<const std::string> names, std::int64_t now_seconds, std::string_view suffix = {});

/// A new, empty event file.
struct new_event_file {
  std::string path;
  std::unique_ptr<io::byte_sink> sink;
};

/// Creates an event file in `directory` with a name greater than the names of all event files there. Never changes an existing
/// file. The `sync` of its sink reports `not_found` after the file was removed or renamed, because readers would never find the
/// data.
/// @errors Failures of listing the directory and creating the file.
[[nodiscard]] result<new_event_file> make_event_file(const std::shared_ptr<io::file_system>& files, const std::string& directory,
                                                     clock::wall_time now, std::string_view suffix);

}  // namespace stepwell::summary
