// SPDX-License-Identifier: Apache-2.0
//
// The commands of the program `stepwell`, with their options.
#pragma once

#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "tool/output.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tool {

/// Options of `stepwell inspect`.
struct inspect_options {
  std::string
      target;  ///< A prefix, or a directory, which stands for its newest checkpoint, or another file that `checkpoint_reader` opens.
  bool stats = false;
  std::string print = {};      ///< Show the values of this tensor.
  std::string diff = {};       ///< Compare with this target.
  double tolerance = 0;        ///< Differences up to this value are ignored.
  std::uint64_t limit = 1000;  ///< Maximum number of values shown; 0: all.
  bool json = false;
};

/// Shows the tensors with shapes, dtypes, sizes and stored checksums, with `stats` also statistics of their values; or the values of one
/// tensor; or the differences between two checkpoints. Without `stats`, `print` and `diff` only the index is read.
/// @errors Those of reading.
/// @cost Memory for the index and one piece of a tensor. Tensors of strings and partitioned tensors are read as a whole.
[[nodiscard]] exit_code inspect(const inspect_options& options, console& to);

/// Show the values of one tensor, and the differences between two checkpoints.
[[nodiscard]] exit_code print_tensor(const inspect_options& options, const checkpoint_reader& reader, console& to);
[[nodiscard]] exit_code diff_checkpoints(const inspect_options& options, const checkpoint_reader& left, const checkpoint_reader& right,
                                         console& to);

/// Options of `stepwell verify`.
struct verify_options {
  std::string target;  ///< A prefix or a file, or a directory: all checkpoints listed in its state file or found in it.
  bool json = false;
};

/// Reads every tensor of every checkpoint and checks its checksum, and continues after a damaged tensor. A tensor whose checksum is unknown
/// (variants, resources) is reported as not checked, and the command then returns `unsupported`. It returns the same for a checkpoint
/// written for a later reader. Files of a directory outside of all checkpoints are reported, but do not count as damage: they remain after
/// killed saves, and after killed deletions of old checkpoints. They are not reported while a process of this machine uses the directory,
/// because they may be those of its saves. Checkpoints that it deletes meanwhile are left out. Changes no file.
/// @errors Those of reading.
/// @cost Reads every byte; memory for the index and one piece.
[[nodiscard]] exit_code verify(const verify_options& options, console& to);

/// The form of the output.
enum class events_form {
  summary,       ///< One line for each tag.
  summary_json,  ///< The summary as one JSON document.
  lines,         ///< One line of text for each value.
  csv,
  json,  ///< One JSON document for each value, each on its own line.
};

/// Options of `stepwell events`.
struct events_options {
  std::string target;                  ///< An event file, or a directory of them.
  std::vector<std::string> tags = {};  ///< Show only these tags, or tags with these patterns (see `matches_tag`); empty: all.
  events_form form = events_form::summary;
  bool recursive = false;
  bool all = false;     ///< Also show values of steps that the run made again after a resume or a rollback.
  bool follow = false;  ///< Continue with events that are written later; `form` must not be a summary then.
};

/// Shows events in the order of the files. The files of a directory are one run: unless `all` is set, values that a resume or a rollback made
/// obsolete are left out and counted. A single file is shown as it is. If a file is damaged, the damage is reported, the events before it are shown, and the next file
/// is read. A truncated last record counts as damage, too, except with `follow`, because the file may still be written.
/// @errors Those of reading; `not_found_error`, after the output, if no value has one of the tags.
/// @cost Memory for the largest record and the names of all tags; for a summary also one line for each tag. The files of a directory are read
///       twice.
[[nodiscard]] exit_code events(const events_options& options, console& to);

/// Options of `stepwell board`.
struct board_command_options {
  std::string directory;
  std::uint16_t port = 6007;  ///< If it is in use, a free port is chosen.
  std::string address = "127.0.0.1";
  std::vector<std::string> hosts = {};  ///< More names by which browsers may reach the board.
  std::string certificate_file = {};    ///< For HTTPS, with `private_key_file`.
  std::string private_key_file = {};
};

/// Serves a page that shows all runs below a directory, until the process receives SIGINT or SIGTERM. Writes the URL first.
/// @errors Those of `directory_board`. `unimplemented_error` if the program was built without the board.
[[nodiscard]] exit_code serve_board(const board_command_options& options, console& to);

/// Options of `stepwell plot`.
struct plot_options {
  std::vector<std::string> targets;    ///< Directories of event files, or event files. Each of them is a run.
  std::vector<std::string> tags = {};  ///< Tags, or patterns of tags with `*`, `?` and `[...]`. Empty: all scalars.
  int width = 0;                       ///< Columns; 0: the width of the terminal.
  int height = 0;                      ///< Lines of one chart; 0: 20, or 10 if there are several charts.
  bool log_scale = false;              ///< Values of 0 and below are skipped, and counted.
  bool together = false;               ///< One chart for all tags; false: a chart for each tag.
  bool ascii = false;
  std::optional<std::int64_t> from_step = {};
  std::optional<std::int64_t> to_step = {};
};

/// Draws a chart for each tag, with one line for each target. Values at steps that were later rolled back and repeated are ignored, as in
/// viewers. A line with no value that can be drawn is left out, with a message.
/// @errors `not_found_error` that lists the existing scalars if one of the tags is missing; `invalid_argument_error` if a logarithmic axis
///         leaves no value to draw.
/// @cost Memory for 65536 groups of points for each line.
[[nodiscard]] exit_code plot(const plot_options& options, console& to);

/// Returns true if `tag` is equal to `pattern`, or matches it as a shell pattern with `*`, `?` and `[...]`. `*` also matches slashes.
[[nodiscard]] bool matches_tag(const std::string& pattern, const std::string& tag);

/// Options of `stepwell compare`.
struct compare_options {
  std::vector<std::string> targets;                ///< Two or more directories of event files, or event files.
  std::vector<std::string> tags = {};              ///< Tags or patterns, as for `plot_options`. Empty: all scalars.
  std::vector<std::string> higher_is_better = {};  ///< Tags or patterns of tags whose greatest value is the best one.
  std::vector<std::string> lower_is_better = {};   ///< Tags or patterns of tags whose least value is the best one.
  bool json = false;
};

/// Shows the last and the best value of each scalar in each run, and the hyper-parameters that differ. The best value is the least one if
/// a word of the tag is a usual name of a loss ("dice_loss"), otherwise the greatest one if a word is a usual name of a score ("accuracy")
/// or the tag ends in "/sec". Other tags have no best value, unless the options state which one it is. Values at steps that were made again are ignored.
/// @errors Those of reading; `not_found_error` if one of the tags or patterns matches no scalar of any run; `invalid_argument_error` if both
///         directions are chosen for one tag.
/// @cost   Reads the event files twice.
[[nodiscard]] exit_code compare(const compare_options& options, console& to);

/// Options of `stepwell prune`.
struct prune_options {
  std::string directory;
  std::string basename = "model.ckpt";
  int max_to_keep = 5;  ///< Number of the newest checkpoints to keep; 0: all.
  std::optional<double> keep_every_n_hours = {};
  std::vector<std::string> pinned = {};  ///< Never deleted: as for `saver::pin`, or a directory, which stands for its newest checkpoint.
  bool yes = false;                      ///< Delete; false: only report.
  bool json = false;
};

/// Reports the decision about each checkpoint, and with `yes` deletes those that the rules do not keep. The newest complete checkpoint is
/// always kept. So are checkpoints that were not written by a saver of this library. Leftovers of killed saves are deleted, too. Without
/// `yes`, no file is changed, locked or created; while a process of this machine uses the directory, no file is called a leftover.
/// @errors `not_found_error` if there is no checkpoint, none with `basename`, or none that a pin stands for; `failed_precondition_error` that names the owner if a process holds the directory
///   (with `yes`); `data_loss_error` if all of its checkpoints are damaged, in which case nothing is deleted; those of the file system.
/// @cost   Reads every byte of the newest checkpoint.
[[nodiscard]] exit_code prune(const prune_options& options, console& to);

/// Options of `stepwell export`.
struct export_options {
  std::string target;                     ///< A prefix, or a directory, which stands for its newest checkpoint.
  std::string npz = {};                   ///< The output file. An existing file is replaced when the new one is complete.
  std::string npy = {};                   ///< Used instead of `npz`: a directory in which each tensor becomes one file.
  std::string safetensors = {};           ///< Used instead of `npz`: a file of safetensors.
  std::vector<std::string> tensors = {};  ///< Export only these tensors; empty: all.
  bool json = false;
};

/// Writes each tensor as an array with the same name: into one archive, or into the file "NAME.npy" of a directory, where each slash of the
/// name begins a subdirectory. bfloat16, which NumPy lacks, is converted to float32 without loss. Quantised integers
/// become plain integers. float8, int4 and similar types become uint8 with the stored bytes. Strings become fixed-width bytes ("S"). A
/// file of safetensors has bfloat16 and most types of float8, but no strings and no complex128.
/// A tensor without an equivalent array is skipped, and reported: variants, strings that end in a zero byte, strings that would need too much
/// memory at a fixed width, TensorFlow's object graph, and tensors whose names a ZIP archive cannot hold, or that are no relative path.
/// @errors `data_loss_error` that names the damaged tensor; no archive is written in this case, and no file of this tensor. Those of the file
///         system.
/// @cost   Reads every tensor once, piece by piece. Tensors of strings, which are read twice, and partitioned tensors are read as a whole.
[[nodiscard]] exit_code export_arrays(const export_options& options, console& to);

/// Options of `stepwell stats`.
struct run_stats_options {
  std::string directory;
  bool json = false;
};

/// Shows checkpoints with steps, sizes and times; the process that uses the directory, or how the last session ended; event files; the last step; steps per second over time; and bytes on the disk.
/// Checkpoints are found by the names of their index files; they are opened only if there is no state file, to find the newest. Event files
/// are read completely.
/// @errors Those of reading; `not_found_error` if the directory is missing, or if it lacks both checkpoints and event files.
[[nodiscard]] exit_code run_stats(const run_stats_options& options, console& to);

/// Returns a line of bars with heights proportional to `values`. The greatest value has a full bar; 0 is a blank. With `ascii`, a character
/// such as '#' stands for each bar.
[[nodiscard]] std::string spark_line(const std::vector<double>& values, bool ascii = false);

/// An option of a command.
struct described_option {
  std::string name;  ///< With the leading dashes.
  std::string what;
  bool takes_value = false;
  std::string value = {};  ///< The name of its value, such as "FILE".
};

/// A command, with its options.
struct described_command {
  std::string name;
  std::string what;
  std::vector<described_option> options;
  std::vector<std::string> words = {};  ///< Valid arguments; empty: files and directories.
  std::string arguments = {};           ///< For the synopsis, such as "TARGET".
  std::vector<std::pair<std::string, std::string>> about_arguments = {};
};

/// Writes the completion script of a shell.
/// @errors `invalid_argument_error` unless the shell is bash, zsh or fish.
void write_completion(std::string_view shell, const std::vector<described_command>& commands, std::ostream& out);

/// Writes the manual page, in the format of man(7).
void write_manual_page(const std::vector<described_command>& commands, std::ostream& out);

/// Returns the name in `names` that needs the fewest changes of letters to become `word`. Empty if all of them need more than a third of the
/// letters, and more than two.
[[nodiscard]] std::string_view nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace stepwell::tool
