// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/restore.hpp"

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/name_index.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/io/pool.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace stepwell {
namespace {

std::string describe(dtype type, shape_view shape) { return fmt::format("{} {}", to_string(type), to_string(shape)); }

/// Returns threads that help to read, or null if the machine has one processor or the threads cannot be started.
std::shared_ptr<io::pool> helpers() {
  if (std::thread::hardware_concurrency() < 2) { return nullptr; }
  try {
    return io::pool::shared();
  } catch (const resource_exhausted_error&) { return nullptr; }
}

/// A value of a checkpoint that is passed to a function of the user.
struct passed_value {
  const variable_ref* variable;
  tensor value;

  void pass() const {
    if (variable->holds_strings()) {
      variable->copy_from(value.strings());
    } else {
      variable->copy_from(value.bytes());
    }
  }
};

void copy_value(const checkpoint_reader& source, const checkpoint_entry& entry, const variable_ref& variable) {
  if (variable.holds_strings()) { return variable.copy_from(source.read(entry.name).strings()); }
  std::vector<std::byte> copy(variable.size_bytes());
  source.read_into(entry.name, copy);
  variable.copy_from(copy);
}

void copy_value(const snapshot_entry& entry, const variable_ref& variable) {
  if (variable.holds_strings()) {
    variable.copy_from(entry.strings);
  } else {
    variable.copy_from(entry.bytes);
  }
}

/// A variable and the entry of the source that has its value.
template<class Entry>
struct match {
  const variable_ref* variable;
  const Entry* entry;
};
template<class Entry>
using matches = std::vector<match<Entry>>;

/// Returns true if a checkpoint is read directly into the memory of the variable.
bool is_read_in_place(const variable_ref& variable) noexcept { return variable.is_addressable() && !variable.holds_strings(); }

/// Reads all variables, or only the optional ones, or only the others. Those in memory are read together. The values of variables that
/// functions write are added to `passed`: a function is called once, when everything was read.
template<class Select>
void read_values(const matches<checkpoint_entry>& pairs, const checkpoint_reader& source, std::vector<passed_value>& passed,
                 const Select& is_selected) {
  std::vector<read_target> targets;
  targets.reserve(pairs.size());
  for (const auto& [variable, entry] : pairs) {
    if (is_selected(*variable) && is_read_in_place(*variable)) { targets.push_back({entry, variable->writable_bytes()}); }
  }
  source.read_into(targets, helpers().get());
  for (const auto& [variable, entry] : pairs) {
    if (!is_selected(*variable) || is_read_in_place(*variable)) { continue; }
    if (variable->has_accessors()) {
      passed.push_back({variable, source.read(entry->name)});
    } else {
      copy_value(source, *entry, *variable);
    }
  }
}

/// Reads the variables of each selection, one selection after the other, and then calls the functions of the user.
template<class... Select>
void read_in_turn(const matches<checkpoint_entry>& pairs, const checkpoint_reader& source, const Select&... selections) {
  std::vector<passed_value> passed;
  (read_values(pairs, source, passed, selections), ...);
  for (const auto& value : passed) { value.pass(); }
}

/// Calls `read`, and adds to its failure that variables were written.
void write_variables(function_ref<void()> read) {
  try {
    read();
  } catch (const error& failure) {
    auto cause = failure.cause();
    cause.message += "; the variables may hold a mixture of old and restored values until another checkpoint is restored";
    throw_status(std::move(cause));
  }
}

/// Reads each tensor once. First checks unused tensors, and those of optional variables, whose values must survive if an older
/// checkpoint that lacks them is restored instead.
void read_once(const matches<checkpoint_entry>& pairs, const checkpoint_reader& source) {
  const auto entries = source.entries();
  std::vector<bool> is_in_place(entries.size());
  for (const auto& [variable, entry] : pairs) {
    if (!variable->is_optional()) { is_in_place[static_cast<std::size_t>(entry - entries.data())] = true; }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool has_checksum = entries[i].dtype != dtype::variant && entries[i].dtype != dtype::resource;
    if (has_checksum && !is_in_place[i]) { source.verify(entries[i].name); }
  }
  write_variables([&] {
    read_in_turn(
        pairs, source, [](const variable_ref& variable) { return !variable.is_optional(); },
        [](const variable_ref& variable) { return variable.is_optional(); });
  });
}

/// Finds the entry of each variable in a source.
template<class Entry>
class matching {
public:
  matching(const variable_list& variables, std::span<const Entry> entries, const restore_options& options)
      : variables_(variables), options_(options), entries_(variables.size()), is_used_(entries.size()) {
    const auto name_of = [this](std::uint32_t i) { return name_in_source(variables_[i]); };
    detail::name_index names(name_of, variables.size());          // names of the source may come from a file, so they are only looked up
    std::vector<std::pair<std::uint32_t, std::uint32_t>> others;  // variables with the name of an earlier one
    for (std::uint32_t i = 0; i < variables.size(); ++i) {
      if (const auto first = names.add(i)) { others.emplace_back(i, *first); }
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto variable = names.find(entries[i].name);
      if (!variable) { continue; }
      entries_[*variable] = &entries[i];
      is_used_[i] = true;
    }
    for (const auto& [other, first] : others) { entries_[other] = entries_[first]; }
  }

  /// Returns the entry of a variable, or null.
  [[nodiscard]] const Entry* entry_of(std::size_t variable) const noexcept { return entries_[variable]; }
  [[nodiscard]] bool is_used(std::size_t entry) const noexcept { return is_used_[entry]; }

  [[nodiscard]] std::string_view name_in_source(const variable_ref& variable) const {
    if (options_.names.empty()) { return variable.name(); }
    const auto renamed = options_.names.find(variable.name());
    return renamed == options_.names.end() ? std::string_view(variable.name()) : std::string_view(renamed->second);
  }

private:
  const variable_list& variables_;
  const restore_options& options_;
  std::vector<const Entry*> entries_;  // of each variable
  std::vector<bool> is_used_;
};

/// Throws `invalid_argument_error` if `names` renames a variable that does not exist.
void check_names(const restore_options& options, const variable_list& variables, const std::string& place) {
  if (options.names.empty()) { return; }
  std::set<std::string_view> known;
  for (const auto& variable : variables) { known.insert(variable.name()); }
  for (const auto& [ours, theirs] : options.names) {
    if (known.contains(ours)) { continue; }
    throw invalid_argument_error(
        fmt::format("restore_options::names: there is no variable \"{}\" to restore from \"{}\"; the variables are {}", ours, theirs,
                    fmt::join(known, ", ")),
        place);
  }
}

/// A list of names for a message. A long list is cut.
class name_list {
public:
  void add(std::string_view name) {
    constexpr std::size_t most = 20;
    if (++count_ <= most) { lines_.append("\n  ").append(name); }
    last_ = count_ <= most ? "" : fmt::format("\n  and {} more", count_ - most);
  }
  [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }
  /// Returns the heading and the names, or an empty text if there are no names.
  [[nodiscard]] std::string text(std::string_view heading) const { return is_empty() ? "" : fmt::format("{}{}{}", heading, lines_, last_); }

private:
  std::size_t count_ = 0;
  std::string lines_;
  std::string last_;
};

[[noreturn]] void throw_difference(const std::string& missing, const std::string& mismatches, const std::vector<std::string>& unused,
                                   const std::string& place, bool is_file_of_arrays) {
  name_list others;
  for (const auto& name : unused) {
    if (!name.starts_with("stepwell/")) { others.add(name); }  // the library's own tensors do not come from a model
  }
  auto text = fmt::format("the model and the checkpoint differ; nothing was restored.{}{}{}{}",
                          mismatches.empty() ? "" : "\ndifferent type or shape:", mismatches, missing,
                          others.text("\nin the checkpoint, but not in the model:"));
  if (is_file_of_arrays) {
    text += "\nweight_names maps names that differ; allow_missing keeps the values of all missing variables.";
  } else {
    text += "\nIf this is a checkpoint of another model, use another directory; init_from_checkpoint starts a model from a part of it.";
  }
  if (!missing.empty() && !is_file_of_arrays) {
    text +=
        " If a variable is new, mark it optional(). Outside of sessions, restore_options::names maps names that differ, and "
        "allow_missing keeps the values of all missing variables.";
  }
  if (!mismatches.empty()) { throw invalid_argument_error(std::move(text), place); }
  throw not_found_error(std::move(text), place);
}

/// Restores from the entries of a checkpoint or a snapshot. Finds all differences, then calls `write` with the variables to write.
template<class Entry, class Write>
restore_report restore_entries(const variable_list& variables, std::span<const Entry> entries, const std::string& place,
                               const restore_options& options, bool is_file_of_arrays, const Write& write) {
  check_names(options, variables, place);
  restore_report report;
  const matching<Entry> matched(variables, entries, options);
  matches<Entry> pairs;
  pairs.reserve(variables.size());
  report.restored.reserve(variables.size());
  name_list missing;
  std::string mismatches;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto& variable = variables[i];
    const auto* theirs = matched.entry_of(i);
    if (theirs == nullptr) {
      report.missing.push_back(variable.name());
      if (variable.is_optional()) { continue; }
      const auto name = matched.name_in_source(variable);
      missing.add(name == variable.name() ? variable.name() : fmt::format("{} (\"{}\" in the checkpoint)", variable.name(), name));
    } else if (theirs->dtype != variable.dtype() || theirs->shape != shape_view(variable.shape())) {
      mismatches += fmt::format("\n  {}: checkpoint has {}, model has {}", variable.name(), describe(theirs->dtype, theirs->shape),
                                describe(variable.dtype(), variable.shape()));
    } else {
      report.restored.push_back(variable.name());
      pairs.push_back({&variable, theirs});
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if constexpr (requires { entries[i].is_object_graph; }) {
      if (entries[i].is_object_graph) { continue; }
    }
    if (!matched.is_used(i) && !detail::is_saver_note(entries[i].name)) { report.unused.emplace_back(entries[i].name); }
  }
  const bool is_missing = !missing.is_empty() && !options.allow_missing;
  if (is_missing || !mismatches.empty()) {
    throw_difference(is_missing ? missing.text("\nmissing from the checkpoint:") : "", mismatches, report.unused, place, is_file_of_arrays);
  }
  write(pairs);
  return report;
}

}  // namespace

restore_report restore(const variable_list& variables, const checkpoint_reader& source, const restore_options& options) {
  const bool is_file_of_arrays = source.format() != checkpoint_format::tensorflow;
  return restore_entries(variables, source.entries(), source.prefix(), options, is_file_of_arrays,
                         [&](const matches<checkpoint_entry>& pairs) {
                           if (!source.is_verified() && !options.verify_first) { return read_once(pairs, source); }
                           if (!source.is_verified()) { source.verify(); }
                           write_variables([&] { read_in_turn(pairs, source, [](const variable_ref&) { return true; }); });
                         });
}

restore_report restore(const variable_list& variables, const snapshot& source, const restore_options& options) {
  return restore_entries(variables, source.entries(), "snapshot", options, false, [&](const matches<snapshot_entry>& pairs) {
    for (const bool has_accessors : {false, true}) {  // functions of the user are called when everything else is copied
      for (const auto& [variable, entry] : pairs) {
        if (variable->has_accessors() == has_accessors) { copy_value(*entry, *variable); }
      }
    }
  });
}

}  // namespace stepwell
