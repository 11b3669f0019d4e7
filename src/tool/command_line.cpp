// SPDX-License-Identifier: Apache-2.0
#include "tool/command_line.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/kernel/detail/simd.hpp"
#include "tool/commands.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <functional>
#include <new>
#include <optional>

namespace stepwell::tool {
namespace {

constexpr const char* exit_codes =
    "exit codes: 0 done; 1 the checkpoints differ (inspect --diff); 2 wrong command line; 3 damaged; 4 not found or not\n"
    "readable; 5 locked by a running process; 6 unsupported: written for a later reader, or of an unsupported type. See also\n"
    "`stepwell COMMAND --help`. Colours are used only on a terminal, never with NO_COLOR.";
/// Accepts numbers of at least 0.
CLI::Validator not_negative() {
  return {[](const std::string& text) {
            double number = 0;
            const bool is_valid = CLI::detail::lexical_cast(text, number) && number >= 0;
            return is_valid ? std::string() : fmt::format("{} is not a number of at least 0", text);
          },
          "NONNEGATIVE"};
}

constexpr const char* is_json = "one JSON document, for scripts";

/// The options of every command, and the selected command.
class command_line {
public:
  explicit command_line(console& to) : to_(to) {
    app_.footer(exit_codes);
    app_.require_subcommand(1);
    app_.set_version_flag("--version", [] { return fmt::format("{}\nnumeric kernels: {}", STEPWELL_VERSION, kernel::simd().name); });
    add_inspect();
    add_verify();
    add_events();
    add_plot();
    add_board();
    add_compare();
    add_prune();
    add_export();
    add_stats();
    add_completion();
    add_manual_page();
  }

  exit_code run(std::vector<std::string> arguments) {
    if (const auto refused = unknown_command(arguments)) {
      print_error(to_, *refused);
      return exit_code::usage;
    }
    try {
      app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // the order that CLI11 requires
    } catch (const CLI::ParseError& refused) {
      if (refused.get_exit_code() == 0) { return app_.exit(refused, to_.out, to_.err), exit_code::good; }  // for example --help
      print_error(to_, unknown_option(arguments).value_or(refused.what()) + "; --help shows the valid arguments");
      return exit_code::usage;
    }
    return chosen_();
  }

private:
  /// Returns the message about a first argument that is not the name of a command. Empty if it is one.
  [[nodiscard]] std::optional<std::string> unknown_command(const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments.front().starts_with('-')) { return std::nullopt; }
    std::vector<std::string> names;
    for (const auto* command : app_.get_subcommands([](const CLI::App*) { return true; })) { names.push_back(command->get_name()); }
    if (std::ranges::find(names, arguments.front()) != names.end()) { return std::nullopt; }
    const auto nearest = nearest_name(arguments.front(), names);
    return fmt::format("there is no command \"{}\"; {}commands are {}", arguments.front(),
                       nearest.empty() ? "" : fmt::format("did you mean {}? The ", nearest), fmt::join(names, ", "));
  }

  /// Returns the message about the first option that the command does not have. Empty if it has all of them.
  [[nodiscard]] std::optional<std::string> unknown_option(const std::vector<std::string>& arguments) {
    const auto* command = arguments.empty() || arguments.front().starts_with('-') ? &app_ : app_.get_subcommand(arguments.front());
    std::vector<std::string> names;
    for (const auto* option : command->get_options()) {
      for (const auto& name : option->get_lnames()) { names.push_back("--" + name); }
      for (const auto& name : option->get_snames()) { names.push_back("-" + name); }
    }
    for (const auto& argument : arguments) {
      const auto name = argument.substr(0, argument.find('='));
      if (name == "--") { break; }
      const bool is_option = name.starts_with("--") || (name.size() == 2 && name.front() == '-' && std::isdigit(name.back()) == 0);
      if (!is_option || std::ranges::find(names, name) != names.end()) { continue; }
      const auto nearest = name.starts_with("--") ? nearest_name(name, names) : std::string_view();
      return fmt::format("{} has no option \"{}\"{}", command->get_name(), name,
                         nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
    }
    return std::nullopt;
  }

  /// Adds a subcommand that runs `act` with `options`.
  template<class Options>
  CLI::App& add(const std::string& name, const std::string& what, Options& options, exit_code (*act)(const Options&, console&)) {
    auto& made = *app_.add_subcommand(name, what);
    made.final_callback([this, &options, act] { chosen_ = [this, &options, act] { return act(options, to_); }; });
    return made;
  }

  void add_inspect() {
    auto& command = add("inspect", "Tensors of a checkpoint; their values; the differences of two checkpoints", inspect_, &inspect);
    command.add_option("TARGET", inspect_.target, "a prefix (run/model.ckpt-500), or a directory: its newest checkpoint")->required();
    command.add_flag("--stats", inspect_.stats, "count, min, max, mean, stddev, NaN and infinities of each tensor (reads all of it)");
    auto* print = command.add_option("--print", inspect_.print, "the values of this tensor")->type_name("NAME");
    command.add_option("--limit", inspect_.limit, "maximum number of values, 0: all")->capture_default_str()->needs(print);
    auto* diff = command.add_option("--diff", inspect_.diff, "the differences from this other checkpoint; exit code 1 if there are any")
                     ->type_name("TARGET");
    command.add_option("--tolerance", inspect_.tolerance, "ignore absolute differences up to this value")
        ->needs(diff)
        ->check(not_negative());
    command.add_flag("--json", inspect_.json, is_json);
  }

  void add_verify() {
    auto& command = add("verify", "Read every byte of checkpoints and check every checksum", verify_, &verify);
    command.add_option("TARGET", verify_.target, "a prefix, or a directory: all its checkpoints")->required();
    command.add_flag("--json", verify_.json, is_json);
  }

  void add_events() {
    auto& command = add("events", "Tags, counts, steps and times of event files; their values", events_, &events);
    command.add_option("TARGET", events_.target, "an event file, or a directory of them")->required();
    command.add_option("--tag", events_.tags, "only this tag, or a pattern such as 'eval/*'; can be repeated")
        ->type_name("TAG")
        ->expected(1)
        ->take_all();
    auto* lines = command.add_flag("--lines", as_lines_, "one line per value instead of a summary");
    auto* csv = command.add_flag("--csv", as_csv_, "values as comma-separated lines with a heading");
    auto* json = command.add_flag("--json", as_json_, "values as JSON, one document per line");
    auto* summary = command.add_flag("--summary", as_summary_, "with --json: the summary as one document");
    csv->excludes(json)->excludes(lines);
    json->excludes(lines);
    summary->needs(json);
    auto* follow = command.add_flag("-f,--follow", events_.follow, "also show values that are written later, until Ctrl-C");
    follow->excludes(summary);
    command.add_flag("--all", events_.all, "also values of steps that the run made again after a resume or a rollback");
    command.add_flag("-r,--recursive", events_.recursive, "also search subdirectories")->excludes(follow);
    command.parse_complete_callback([this] {
      events_.form = as_csv_                       ? events_form::csv
                     : as_summary_                 ? events_form::summary_json
                     : as_json_                    ? events_form::json
                     : as_lines_ || events_.follow ? events_form::lines
                                                   : events_form::summary;
    });
  }

  void add_board() {
    auto& command = add("board", "A page in a browser that shows all runs below a directory", board_, &serve_board);
    command.add_option("DIRECTORY", board_.directory, "the directory of the runs; it may be made later")->required();
    command.add_option("--port", board_.port, "the port; a free one if it is in use")->capture_default_str()->type_name("PORT");
    command.add_option("--address", board_.address, "the IP address to listen on; other machines need the token of the URL to read")
        ->capture_default_str()
        ->type_name("ADDRESS");
    auto* certificate =
        command.add_option("--certificate", board_.certificate_file, "the certificate and its chain (PEM): HTTPS")->type_name("FILE");
    auto* key = command.add_option("--private-key", board_.private_key_file, "the private key of the certificate (PEM)")->type_name("FILE");
    certificate->needs(key);
    key->needs(certificate);
    command.add_option("--host", board_.hosts, "one more name by which browsers reach this machine; can be repeated")
        ->type_name("NAME")
        ->expected(1)
        ->take_all();
  }

  void add_plot() {
    auto& command = add("plot", "Scalars of event files as a chart", plot_, &plot);
    command.add_option("TARGET", plot_.targets, "runs: directories of event files, or event files; each is a line in each chart")
        ->required();
    command.add_option("--tag", plot_.tags, "a tag, or a pattern such as 'eval/*'; can be repeated; default: all scalars")
        ->type_name("TAG")
        ->expected(1)
        ->take_all();
    command.add_flag("--together", plot_.together, "one chart for all tags, instead of one for each");
    command.add_option("--width", plot_.width, "columns; default: the width of the terminal")->check(CLI::Range(1, 20000));
    command.add_option("--height", plot_.height, "lines of a chart")->check(CLI::Range(1, 20000));
    command.add_option("--from", plot_.from_step, "the first step to draw")->type_name("STEP");
    command.add_option("--to", plot_.to_step, "the last step to draw")->type_name("STEP");
    command.add_flag("--log", plot_.log_scale, "a logarithmic axis for the values");
    command.add_flag("--ascii", plot_.ascii, "only ASCII characters");
  }

  void add_compare() {
    auto& command = add("compare", "Last and best values of several runs, and the hyper-parameters that differ", compare_, &compare);
    command.add_option("TARGET", compare_.targets, "two or more runs: directories of event files, or event files")
        ->required()
        ->expected(2, 1000);
    command.add_option("--tag", compare_.tags, "a tag, or a pattern such as 'eval/*'; can be repeated; default: all scalars")
        ->type_name("TAG")
        ->expected(1)
        ->take_all();
    const auto add_direction = [&](const char* name, std::vector<std::string>& tags, const char* what) {
      command.add_option(name, tags, what)->type_name("TAG")->expected(1)->take_all();
    };
    add_direction("--higher-is-better", compare_.higher_is_better,
                  "the greatest value of this tag or pattern is the best; can be repeated");
    add_direction("--lower-is-better", compare_.lower_is_better, "the least value of this tag or pattern is the best; can be repeated");
    command.add_flag("--json", compare_.json, is_json);
  }

  void add_prune() {
    auto& command =
        add("prune", "Delete the checkpoints that a saver with these rules would delete; without --yes only list them", prune_, &prune);
    command.add_option("DIRECTORY", prune_.directory, "a directory of checkpoints")->required();
    command.add_option("--max-to-keep", prune_.max_to_keep, "number of newest checkpoints to keep, 0: all")
        ->capture_default_str()
        ->check(not_negative());
    command.add_option("--keep-every-n-hours", prune_.keep_every_n_hours, "of the others, keep one every HOURS hours permanently")
        ->type_name("HOURS");
    command.add_option("--pin", prune_.pinned, "never delete this checkpoint: its prefix, one of its files, or its step; can be repeated")
        ->type_name("CHECKPOINT")
        ->expected(1)
        ->take_all();
    command.add_option("--basename", prune_.basename, "the name of the checkpoints before \"-STEP\"")->capture_default_str();
    auto* yes = command.add_flag("--yes", prune_.yes, "delete the checkpoints");
    command.add_flag("-n,--dry-run", only_says_, "only list what would be deleted (the default)")->excludes(yes);
    command.add_flag("--json", prune_.json, is_json);
  }

  void add_export() {
    auto& command = add("export", "A checkpoint as files for NumPy, or as safetensors", export_, &export_arrays);
    command.add_option("TARGET", export_.target, "a prefix, or a directory: its newest checkpoint")->required();
    auto* npz = command.add_option("--npz", export_.npz, "the archive to write: numpy.load reads it")->type_name("FILE");
    command.add_option("--npy", export_.npy, "the directory in which each tensor becomes a file NAME.npy, which NumPy can map into memory")
        ->type_name("DIRECTORY")
        ->excludes(npz);
    command.add_option("--safetensors", export_.safetensors, "the file of safetensors to write")
        ->type_name("FILE")
        ->excludes(npz)
        ->excludes("--npy");
    command.add_option("--tensor", export_.tensors, "only this tensor; can be repeated")->type_name("NAME")->expected(1)->take_all();
    command.add_flag("--json", export_.json, is_json);
  }

  void add_stats() {
    auto& command = add("stats", "The state of a run: checkpoints, event files, steps per second, disk space", stats_, &run_stats);
    command.add_option("DIRECTORY", stats_.directory, "the directory of the run")->required();
    command.add_flag("--json", stats_.json, is_json);
  }

  void add_completion() {
    auto& command = *app_.add_subcommand("completion", "A script that completes command lines of stepwell in a shell");
    command.add_option("SHELL", shell_, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    command.final_callback([this] {
      chosen_ = [this] {
        write_completion(shell_, described(), to_.out);
        return exit_code::good;
      };
    });
  }

  void add_manual_page() {
    auto& command = *app_.add_subcommand("man", "The manual page: stepwell man | man -l -");
    command.final_callback([this] {
      chosen_ = [this] {
        write_manual_page(described(), to_.out);
        return exit_code::good;
      };
    });
  }

  static void describe(const CLI::App& command, described_command& made) {
    for (const auto* option : command.get_options()) {
      if (option->get_positional()) {
        made.arguments += (made.arguments.empty() ? "" : " ") + option->get_name() + (option->get_items_expected_max() > 1 ? "..." : "");
        made.about_arguments.emplace_back(option->get_name(), option->get_description());
      }
      for (const auto& name : option->get_lnames()) {
        const bool takes_value = option->get_items_expected_max() != 0;
        const auto type = takes_value ? option->get_type_name() : "";  // a check adds text, such as "FLOAT:NONNEGATIVE"
        made.options.push_back({"--" + name, option->get_description(), takes_value, type.substr(0, type.find_first_of(": "))});
      }
    }
  }
  [[nodiscard]] std::vector<described_command> described() {
    std::vector<described_command> all;
    for (const auto* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      described_command made{command->get_name(), command->get_description(), {}};
      describe(*command, made);
      if (made.name == "completion") { made.words = {"bash", "zsh", "fish"}; }
      all.push_back(std::move(made));
    }
    return all;
  }

  console& to_;
  CLI::App app_{"Inspects, checks and prunes the files of training runs of stepwell and TensorFlow.", "stepwell"};
  inspect_options inspect_;
  verify_options verify_;
  events_options events_;
  plot_options plot_;
  board_command_options board_;
  compare_options compare_;
  prune_options prune_;
  export_options export_;
  run_stats_options stats_;
  std::string shell_;
  bool as_lines_ = false;
  bool as_csv_ = false;
  bool as_json_ = false;
  bool as_summary_ = false;
  bool only_says_ = false;
  std::function<exit_code()> chosen_;
};

/// Redirects the log of the library to the error stream of a console during its lifetime.
class log_to {
public:
  explicit log_to(console& to)
      : before_(set_log_sink([&to](log_level level, std::string_view text) {
          to.err << "stepwell: " << to_string(level) << ": " << printable(to, text) << '\n';
        })) {}
  log_to(const log_to&) = delete;
  log_to& operator=(const log_to&) = delete;
  ~log_to() { set_log_sink(std::move(before_)); }

private:
  log_sink before_;
};

}  // namespace

exit_code run(std::vector<std::string> arguments, console& to) noexcept {
  const log_to logged(to);
  const auto fail = [&](std::string_view what, exit_code how) {
    to.out.flush();
    print_error(to, what);
    return how;
  };
  try {
    const auto how = command_line(to).run(std::move(arguments));
    if (!to.out.flush()) { return fail("could not write all of the output", exit_code::unreadable); }
    return how;
  } catch (const error& failure) { return fail(failure.what(), exit_code_of(failure.kind())); } catch (const std::bad_alloc&) {
    return fail("out of memory", exit_code::unreadable);
  } catch (const std::exception& failure) { return fail(failure.what(), exit_code::unreadable); }
}

}  // namespace stepwell::tool
