// SPDX-License-Identifier: Apache-2.0
//
// The history of runs: the contents of event files, read when they are needed, and followed while they grow.
#pragma once

#include "stepwell/board/detail/curve.hpp"
#include "stepwell/format/events/event.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/run_ending.hpp"
#include "stepwell/summary/detail/event_stream.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::board {

/// An event of a run that is marked on its curves.
struct run_mark {
  std::string kind;  ///< start, resume, checkpoint, recovery, rollback or stop
  std::int64_t step = 0;
  double time = 0;
  std::string text;
};

struct histogram_record {
  std::int64_t step = 0;
  double time = 0;
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  std::vector<double> limits = {};
  std::vector<double> counts = {};
};

struct text_record {
  std::int64_t step = 0;
  double time = 0;
  std::string text;
};

struct image_record {
  std::int64_t step = 0;
  std::int64_t index = 0;  ///< Number of the image among those of its step.
  double time = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string encoded;
};

/// The contents of the event files of one directory. Values of steps that a resumed run makes again are dropped.
class run_history {
public:
  run_history(std::shared_ptr<io::file_system> files, std::string directory);

  /// Reads everything that was written since the last call. Damage is noted in `error()`, not thrown.
  void refresh();

  [[nodiscard]] const std::map<std::string, curve, std::less<>>& curves() const noexcept { return curves_; }
  [[nodiscard]] const std::map<std::string, std::vector<histogram_record>, std::less<>>& histograms() const noexcept { return histograms_; }
  [[nodiscard]] const std::map<std::string, std::vector<text_record>, std::less<>>& texts() const noexcept { return texts_; }
  [[nodiscard]] const std::map<std::string, std::vector<image_record>, std::less<>>& images() const noexcept { return images_; }
  [[nodiscard]] const format::hparam_map& hparams() const noexcept { return hparams_; }
  [[nodiscard]] const std::vector<run_mark>& marks() const noexcept { return marks_; }
  /// Returns what could not be read. Empty if everything could.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] std::optional<double> first_time() const noexcept { return first_time_; }
  [[nodiscard]] std::optional<double> last_time() const noexcept { return last_time_; }
  [[nodiscard]] std::optional<std::int64_t> last_step() const noexcept { return last_step_; }
  /// Returns the number of points of all curves.
  [[nodiscard]] std::size_t points() const noexcept { return points_; }
  /// Returns true if there were more tags than a run may have. The others are left out.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }

private:
  struct event_file {
    std::string name;
    std::unique_ptr<summary::event_stream> stream;
    bool is_lost = false;
  };

  void open_new_files();
  void read(event_file& file);
  void add(const format::event& happened);
  void add(const format::scalar_event& of);
  void add(const format::summary_value& value, const format::event& of);
  void add_number(const std::string& tag, const format::event& of, double value);
  void add_tensor(const format::summary_value& value, const tensor& held, const format::event& of);
  void add_image(const std::string& tag, const format::event& of, std::int64_t width, std::int64_t height, std::string encoded);
  void begin_session(const format::event& happened);
  [[nodiscard]] bool accepts(const std::string& tag);

  std::shared_ptr<io::file_system> files_;
  std::string directory_;
  std::vector<event_file> opened_;                           // sorted by name
  std::map<std::string, std::string, std::less<>> plugins_;  // of the tags; only the first value of a tag has it
  std::map<std::string, curve, std::less<>> curves_;
  std::map<std::string, std::vector<histogram_record>, std::less<>> histograms_;
  std::map<std::string, std::vector<text_record>, std::less<>> texts_;
  std::map<std::string, std::vector<image_record>, std::less<>> images_;
  format::hparam_map hparams_;
  std::vector<run_mark> marks_;
  std::vector<format::scalar_event> scalars_;  // of the event that is read
  std::string error_;
  std::optional<double> first_time_;
  std::optional<double> last_time_;
  std::optional<std::int64_t> last_step_;
  std::size_t points_ = 0;
  bool is_cut_ = false;
};

/// A directory that has event files.
struct run_entry {
  std::string run;   ///< The path relative to the directory of all runs; "." for that directory itself.
  std::string path;  ///< The path of its directory.
  double changed = 0;
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  std::optional<run_ending> ending = std::nullopt;  ///< How its last session ended. Empty while a session runs, and after a kill.
};

/// The runs in a directory.
class run_directory {
public:
  /// `depth` is the number of levels of directories below `root` that are searched.
  run_directory(std::shared_ptr<io::file_system> files, std::string root, int depth);

  /// Lists the runs, sorted by name. Reads no event file. Directories that cannot be read are left out.
  [[nodiscard]] const std::vector<run_entry>& list();
  /// Returns true if `list` has left out runs, because there are too many.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  /// Returns the entry of a run. Null if it is unknown.
  [[nodiscard]] const run_entry* find(std::string_view run);
  /// Returns the history of a run, up to date. Null if the run is unknown. Of many runs, those that were not used for long are forgotten,
  /// and read again when they are needed.
  /// @lifetime The result is valid until the next call.
  [[nodiscard]] const run_history* history(std::string_view run);
  /// Returns the present size of the event files of a run. 0 if the run is unknown.
  [[nodiscard]] std::uint64_t bytes_of(std::string_view run);
  [[nodiscard]] io::file_system& files() const noexcept { return *files_; }

private:
  /// The ending file of a directory.
  struct ending_file {
    double changed = 0;
    std::optional<run_ending> ending;  ///< Empty if it cannot be read.
  };

  void search(const std::string& path, const std::string& run, int depth, const ending_file* above);
  const ending_file& ending_in(const std::string& path, double changed);
  void forget_old();

  std::shared_ptr<io::file_system> files_;
  std::string root_;
  int depth_;
  bool is_cut_ = false;
  std::size_t searched_ = 0;
  std::vector<run_entry> entries_;
  std::map<std::string, ending_file, std::less<>> endings_;  // by the path of the directory; read again when they change
  std::list<std::pair<std::string, run_history>> known_;     // the most recently used first
};

}  // namespace stepwell::board
