// SPDX-License-Identifier: Apache-2.0
//
// Event files as files: their names, and what it takes to make a new one.
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

/// The name of a new event file: `events.out.tfevents.<seconds>.<host>.<process>.<counter><suffix>`, where the seconds
/// are later than those of every event file among `names`. Viewers read the files of a directory in order of name and
/// do not come back to an earlier one.
[[nodiscard]] std::string next_event_file_name(std::span<const std::string> names, std::int64_t now_seconds, std::string_view suffix = {});

/// A new, empty event file.
struct new_event_file {
  std::string path;
  std::unique_ptr<io::byte_sink> sink;
};

/// Makes an event file in `directory` under a name greater than all there; never touches one that exists.
/// Its sink reports `not_found` from `sync` once the file has lost its name: nobody would ever read what is written.
/// @errors Of listing the directory and making the file.
[[nodiscard]] result<new_event_file> make_event_file(const std::shared_ptr<io::file_system>& files, const std::string& directory,
                                                     clock::wall_time now, std::string_view suffix);

}  // namespace stepwell::summary
