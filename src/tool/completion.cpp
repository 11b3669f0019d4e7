// SPDX-License-Identifier: Apache-2.0
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"

#include <fmt/format.h>

namespace stepwell::tool {
namespace {

/// Returns `text` in a form that is valid between single quotes in each of the three shells.
std::string in_single_quotes(std::string_view text, bool is_zsh = false) {
  std::string made;
  for (const char letter : text) {
    if (letter == '\'') {
      made += "’";
    } else if (is_zsh && (letter == ':' || letter == '[' || letter == ']')) {
      made.append("\\").push_back(letter);
    } else {
      made += letter;
    }
  }
  return made;
}

template<class Range, class Text>
std::string joined(const Range& range, const Text& text_of) {
  std::string text;
  for (const auto& one : range) { text.append(text.empty() ? "" : " ").append(text_of(one)); }
  return text;
}

std::string option_names(const described_command& command) {
  return joined(command.options, [](const auto& option) { return option.name; });
}

void write_bash(const std::vector<described_command>& commands, std::ostream& out) {
  out << "# stepwell completion bash > /etc/bash_completion.d/stepwell, or: source <(stepwell completion bash)\n"
         "_stepwell() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} options= words=\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      << fmt::format("    COMPREPLY=($(compgen -W '{} --help --version' -- \"$word\"))\n",
                     joined(commands, [](const auto& command) { return command.name; }))
      << "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n";
  for (const auto& command : commands) {
    out << fmt::format("    {}) options='{}' words='{}' ;;\n", command.name, option_names(command),
                       joined(command.words, [](const auto& one) { return one; }));
  }
  out << "  esac\n"
         "  case $word in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\"));\n"
         "       else local IFS=$'\\n'; COMPREPLY=($(compgen -f -- \"$word\")); fi ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _stepwell stepwell\n";
}

void write_zsh(const std::vector<described_command>& commands, std::ostream& out) {
  out << "#compdef stepwell\n"
         "# stepwell completion zsh > a directory of $fpath/_stepwell\n"
         "_stepwell() {\n"
         "  if (( CURRENT == 2 )); then\n"
         "    local -a commands=(\n";
  for (const auto& command : commands) { out << fmt::format("      '{}:{}'\n", command.name, in_single_quotes(command.what, true)); }
  out << "    )\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  case $words[2] in\n";
  for (const auto& command : commands) {
    out << fmt::format("    {}) _arguments", command.name);
    for (const auto& option : command.options) {
      out << fmt::format(" \\\n      '{}[{}]{}'", option.name, in_single_quotes(option.what, true),
                         option.takes_value ? ":value:_files" : "");
    }
    out << (command.words.empty()
                ? " \\\n      '*:path:_files' ;;\n"
                : fmt::format(" \\\n      '*:word:({})' ;;\n", joined(command.words, [](const auto& one) { return one; })));
  }
  out << "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _stepwell ]; then _stepwell \"$@\"; else compdef _stepwell stepwell; fi\n";
}

void write_fish(const std::vector<described_command>& commands, std::ostream& out) {
  out << "# stepwell completion fish > ~/.config/fish/completions/stepwell.fish\n";
  for (const auto& command : commands) {
    out << fmt::format("complete -c stepwell -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name, in_single_quotes(command.what));
    for (const auto& option : command.options) {
      const auto name = option.name.starts_with("--") ? "-l " + option.name.substr(2) : "-s " + option.name.substr(1);
      out << fmt::format("complete -c stepwell -n '__fish_seen_subcommand_from {}' {}{} -d '{}'\n", command.name, name,
                         option.takes_value ? " -r" : "", in_single_quotes(option.what));
    }
    if (!command.words.empty()) {
      out << fmt::format("complete -c stepwell -n '__fish_seen_subcommand_from {}' -f -a '{}'\n", command.name,
                         joined(command.words, [](const auto& one) { return one; }));
    }
  }
}

}  // namespace

void write_completion(std::string_view shell, const std::vector<described_command>& commands, std::ostream& out) {
  if (shell == "bash") { return write_bash(commands, out); }
  if (shell == "zsh") { return write_zsh(commands, out); }
  if (shell == "fish") { return write_fish(commands, out); }
  throw invalid_argument_error(fmt::format("no completion for the shell \"{}\"; supported shells are bash, zsh and fish", shell));
}

}  // namespace stepwell::tool
