// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/restore.hpp"

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"

#include <fmt/format.h>
#include <set>
#include <utility>

namespace stepwell {
namespace {

std::string describe(dtype type, const tensor_shape& shape) { return fmt::format("{} {}", to_string(type), to_string(shape)); }

void copy_value(const checkpoint_reader& source, std::string_view name, const variable_ref& variable) {
  if (variable.holds_strings()) { return variable.copy_from(source.read(name).strings()); }
  if (variable.is_addressable()) { return source.read_into(name, variable.writable_bytes()); }
  std::vector<std::byte> copy(variable.size_bytes());
  source.read_into(name, copy);
  variable.copy_from(copy);
}

void copy_value(const snapshot& source, std::string_view name, const variable_ref& variable) {
  const auto& entry = *source.find(name);
  if (variable.holds_strings()) {
    variable.copy_from(entry.strings);
  } else {
    variable.copy_from(entry.bytes);
  }
}

using matched_names = std::vector<std::pair<const variable_ref*, std::string_view>>;  // with the name in the source

/// Calls `read`, and adds to its failure that variables were written.
void write_variables(function_ref<void()> read) {
  try {
    read();
  } catch (const error& failure) {
    auto cause = failure.cause();
    cause.message += "; the variables hold a mixture of old and restored values until another checkpoint is restored";
    throw_status(std::move(cause));
  }
}

/// Reads each tensor once. First checks unused tensors, and those of optional variables, whose values must survive if an older
/// checkpoint that lacks them is restored instead.
void read_once(const matched_names& matches, const checkpoint_reader& source) {
  std::set<std::string_view> in_place;
  for (const auto& [variable, name] : matches) {
    if (!variable->is_optional()) { in_place.insert(name); }
  }
  for (const auto& entry : source.entries()) {
    const bool has_checksum = entry.dtype != dtype::variant && entry.dtype != dtype::resource;
    if (has_checksum && !in_place.contains(entry.name)) { source.verify(entry.name); }
  }
  write_variables([&] {
    for (const bool is_optional : {false, true}) {
      for (const auto& [variable, name] : matches) {
        if (variable->is_optional() == is_optional) { copy_value(source, name, *variable); }
      }
    }
  });
}

/// Restores from a checkpoint or a snapshot. Finds all differences, then calls `write` with the variables to write.
template<class Source, class Write>
restore_report restore_from(const variable_list& variables, const Source& source, const std::string& place, const restore_options& options,
                            const Write& write) {
  restore_report report;
  matched_names matches;
  std::set<std::string_view> used;
  std::string missing;
  std::string mismatches;
  for (const auto& variable : variables) {
    const auto renamed = options.names.find(variable.name());
    const std::string_view name = renamed == options.names.end() ? variable.name() : renamed->second;
    const auto* theirs = source.find(name);
    used.insert(name);
    if (theirs == nullptr) {
      report.missing.push_back(variable.name());
      if (variable.is_optional()) { continue; }
      missing += "\n  " + variable.name() + (name == variable.name() ? "" : fmt::format(" (\"{}\" in the checkpoint)", name));
    } else if (theirs->dtype != variable.dtype() || theirs->shape != variable.shape()) {
      mismatches += fmt::format("\n  {}: checkpoint has {}, model has {}", variable.name(), describe(theirs->dtype, theirs->shape),
                                describe(variable.dtype(), variable.shape()));
    } else {
      report.restored.push_back(variable.name());
      matches.emplace_back(&variable, name);
    }
  }
  const bool is_missing = !missing.empty() && !options.allow_missing;
  constexpr std::string_view what = "the model and the checkpoint differ; nothing was restored";
  if (is_missing) { missing.insert(0, "\nmissing from the checkpoint:"); }
  if (!mismatches.empty()) {
    throw invalid_argument_error(fmt::format("{}.\ndifferent type or shape:{}{}", what, mismatches, is_missing ? missing : ""), place);
  }
  if (is_missing) {
    throw not_found_error(fmt::format("{}: most likely for a Variable name or other graph key that is missing from the checkpoint; "
                                      "rename them, or allow missing ones.{}",
                                      what, missing),
                          place);
  }
  write(matches);
  for (const auto& entry : source.entries()) {
    if constexpr (requires { entry.is_object_graph; }) {
      if (entry.is_object_graph) { continue; }
    }
    if (!used.contains(entry.name) && !detail::is_saver_note(entry.name)) { report.unused.push_back(entry.name); }
  }
  return report;
}

}  // namespace

restore_report restore(const variable_list& variables, const checkpoint_reader& source, const restore_options& options) {
  return restore_from(variables, source, source.prefix(), options, [&](const matched_names& matches) {
    if (!source.is_verified() && !options.verify_first) { return read_once(matches, source); }
    if (!source.is_verified()) { source.verify(); }
    write_variables([&] {
      for (const auto& [variable, name] : matches) { copy_value(source, name, *variable); }
    });
  });
}

restore_report restore(const variable_list& variables, const snapshot& source, const restore_options& options) {
  return restore_from(variables, source, "snapshot", options, [&](const matched_names& matches) {
    for (const auto& [variable, name] : matches) { copy_value(source, name, *variable); }
  });
}

}  // namespace stepwell
