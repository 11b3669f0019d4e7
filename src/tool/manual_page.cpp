// SPDX-License-Identifier: Apache-2.0
//
// `stepwell man`: the manual page, made from the descriptions of the commands. The installed page is src/tool/stepwell.1; a test compares it
// with this output.
#include "tool/commands.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace stepwell::tool {
namespace {

/// Returns `text` with the characters escaped that have a meaning in the format.
std::string roff_escaped(std::string_view text) {
  std::string made = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char letter : text) {
    if (letter == '\\') {
      made += "\\e";
    } else if (letter == '-') {
      made += "\\-";
    } else {
      made += letter;
    }
  }
  return made;
}

void write_entry(std::ostream& out, const std::string& name, const std::string& value, std::string_view what) {
  out << ".TP\n\\fB" << roff_escaped(name) << "\\fR";
  if (!value.empty()) { out << " \\fI" << roff_escaped(value) << "\\fR"; }
  out << '\n' << roff_escaped(what) << '\n';
}

void write_command(std::ostream& out, const described_command& command) {
  out << ".SS " << roff_escaped(command.name);
  if (!command.arguments.empty()) { out << ' ' << roff_escaped(command.arguments); }
  out << '\n' << roff_escaped(command.what) << ".\n";
  for (const auto& [name, what] : command.about_arguments) { write_entry(out, name, {}, what); }
  for (const auto& option : command.options) {
    if (option.name != "--help") { write_entry(out, option.name, option.value, option.what); }
  }
}

}  // namespace

void write_manual_page(const std::vector<described_command>& commands, std::ostream& out) {
  out << ".\\\" Made by `stepwell man`.\n"
         ".TH STEPWELL 1 \"\" \"stepwell\" \"User Commands\"\n"
         ".SH NAME\n"
         "stepwell \\- inspect, check and prune the files of training runs\n"
         ".SH SYNOPSIS\n"
         ".B stepwell\n"
         "\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fITARGET\\fR]...\n"
         ".SH DESCRIPTION\n"
         "Reads the checkpoints (V2), event files and state files of stepwell and TensorFlow. Only \\fBprune \\-\\-yes\\fR changes a run "
         "directory; \\fBexport\\fR writes only the files that you name.\n"
         ".SH COMMANDS\n";
  for (const auto& command : commands) { write_command(out, command); }
  out << ".SH EXIT STATUS\n";
  constexpr std::pair<std::string_view, std::string_view> codes[] = {
      {"0", "Success, no problem found."},
      {"1", "inspect --diff: the two checkpoints differ."},
      {"2", "The command line is invalid."},
      {"3", "Damaged: a wrong checksum, a missing data file, a truncated record."},
      {"4", "Missing or unreadable."},
      {"5", "prune --yes: a running process has locked the directory."},
      {"6", "Unsupported: written for a later reader, or of a type that stepwell cannot read or check."}};
  for (const auto& [code, what] : codes) { write_entry(out, std::string(code), {}, what); }
  out << ".SH ENVIRONMENT\n";
  write_entry(out, "NO_COLOR", {}, "If set, the output has no colours.");
  write_entry(out, "COLUMNS", {}, "The width of the output if it is not a terminal.");
}

std::string_view nearest_name(std::string_view word, const std::vector<std::string>& names) {
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& name : names) {
    std::vector<std::size_t> row(name.size() + 1);  // changes from the letters of `word` so far to each beginning of `name`
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < name.size(); ++j) {
        const auto replaced = diagonal + (word[i] == name[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() < least) {
      least = row.back();
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace stepwell::tool
