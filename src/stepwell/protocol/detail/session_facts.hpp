// SPDX-License-Identifier: Apache-2.0
//
// The facts of a session that its hooks may read.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/protocol/session_metrics.hpp"
#include "stepwell/protocol/watched_values.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {
class group;
namespace io {
class file_system;
}
namespace summary {
class writer;
}

/// The facts of one session, which the session sets.
struct session_facts {
  /// Reads the epoch of the batch at which a source stands.
  struct epoch_reader {
    const void* source = nullptr;
    data::epoch_position (*read)(const void* source) = nullptr;
  };

  std::shared_ptr<clock> time;
  std::string name = {};             ///< The name of the session, which is in its log messages. May be empty.
  std::string directory = {};        ///< The directory that hooks use if they are given none. See `training_options::checkpoint_dir`.
  std::string event_directory = {};  ///< The directory of the session's event files. Empty: the session has none.
  std::shared_ptr<io::file_system> files = nullptr;  ///< The file system for `directory`. Null: the file system of the machine.
  /// Returns the writer of the event files. Null: a writer with default options.
  std::function<std::shared_ptr<summary::writer>()> make_event_writer = nullptr;
  std::optional<std::string> restored_from = std::nullopt;  ///< The prefix of the checkpoint that the last creation has restored.
  bool restored_stop = false;                               ///< True if this checkpoint contains a stop.
  bool resume_after_stop = false;                           ///< See `training_options::resume_after_stop`.
  std::shared_ptr<watched_values> watched = std::make_shared<watched_values>();
  std::function<session_metrics()> metrics = nullptr;      ///< Returns the metrics of the session. Any thread may call it.
  std::optional<std::int64_t> last_step = std::nullopt;    ///< The earliest step at which a hook ends the loop, as far as known.
  std::vector<stop_condition> stop_conditions = {};        ///< All others that hooks know.
  std::shared_ptr<const stepwell::group> group = nullptr;  ///< The processes that train the model together. Null: there is one process.
  epoch_reader epoch_of_run = {};                          ///< Set during a run whose batch has an epoch.

  /// Returns the writer of the event files. Null if there is no directory.
  [[nodiscard]] std::shared_ptr<summary::writer> event_writer() const;
  /// Returns the epoch of the batch of the run in progress. Empty if there is no run, or if its batch has no epoch.
  [[nodiscard]] std::optional<data::epoch_position> epoch() const {
    return epoch_of_run.source != nullptr ? std::optional(epoch_of_run.read(epoch_of_run.source)) : std::nullopt;
  }
};

}  // namespace stepwell
