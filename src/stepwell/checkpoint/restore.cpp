// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/restore.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/saver_notes.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {
namespace {

/// Type and shape of a tensor in the source.
struct offered {
  stepwell::dtype dtype;
  const tensor_shape* shape;
};

std::string describe(dtype type, const tensor_shape& shape) { return fmt::format("{} {}", to_string(type), to_string(shape)); }

/// Matches variables with tensors. Finds all differences before any variable is written.
class matching {
public:
  matching(const restore_options& options, std::string_view place) : options_(options), place_(place) {}

  [[nodiscard]] std::string_view their_name(const variable_ref& variable) const {
    const auto found = options_.names.find(variable.name());
    return found == options_.names.end() ? std::string_view(variable.name()) : std::string_view(found->second);
  }

  void add(const variable_ref& variable, const std::optional<offered>& theirs) {
    const auto name = their_name(variable);
    used_.emplace(name);
    if (!theirs) {
      report_.missing.push_back(variable.name());
      missing_.append("\n  ")
          .append(variable.name())
          .append(name == variable.name() ? "" : fmt::format(" (\"{}\" in the checkpoint)", name));
    } else if (theirs->dtype != variable.dtype() || *theirs->shape != variable.shape()) {
      mismatches_.append(fmt::format("\n  {}: checkpoint has {}, model has {}", variable.name(), describe(theirs->dtype, *theirs->shape),
                                     describe(variable.dtype(), variable.shape())));
    } else {
      report_.restored.push_back(variable.name());
    }
  }

  /// Throws the errors that `restore` documents if the variables and the source do not match.
  void check() const {
    const bool is_missing = !missing_.empty() && !options_.allow_missing;
    const auto missing = is_missing ? "\nmissing from the checkpoint:" + missing_ : std::string();
    constexpr std::string_view what = "the model and the checkpoint differ; nothing was restored";
    if (!mismatches_.empty()) {
      throw invalid_argument_error(fmt::format("{}.\ndifferent type or shape:{}{}", what, mismatches_, missing), std::string(place_));
    }
    if (is_missing) {
      throw not_found_error(fmt::format("{}: most likely for a Variable name or other graph key that is missing from the checkpoint; "
                                        "rename them, or allow missing ones.{}",
                                        what, missing),
                            std::string(place_));
    }
  }

  void add_unused(const std::string& name) {
    if (!used_.contains(name) && !detail::is_saver_note(name)) { report_.unused.push_back(name); }
  }
  [[nodiscard]] bool is_restored(const variable_ref& variable) const {
    return std::ranges::find(report_.missing, variable.name()) == report_.missing.end();
  }
  [[nodiscard]] restore_report take() && { return std::move(report_); }

private:
  const restore_options& options_;
  std::string_view place_;
  std::set<std::string, std::less<>> used_;
  std::string missing_;
  std::string mismatches_;
  restore_report report_;
};

void read_variable(const checkpoint_reader& source, std::string_view name, const variable_ref& variable) {
  if (variable.is_addressable()) { return source.read_into(name, variable.writable_bytes()); }
  std::vector<std::byte> copy(variable.size_bytes());
  source.read_into(name, copy);
  variable.copy_from(copy);
}

}  // namespace

restore_report restore(const variable_list& variables, const checkpoint_reader& source, const restore_options& options) {
  matching match(options, source.prefix());
  for (const auto& variable : variables) {
    const auto* entry = source.find(match.their_name(variable));
    match.add(variable, entry != nullptr ? std::optional(offered{entry->dtype, &entry->shape}) : std::nullopt);
  }
  match.check();
  if (!source.is_verified()) { source.verify(); }
  for (const auto& variable : variables) {
    if (match.is_restored(variable)) { read_variable(source, match.their_name(variable), variable); }
  }
  for (const auto& entry : source.entries()) {
    if (!entry.is_object_graph) { match.add_unused(entry.name); }
  }
  return std::move(match).take();
}

restore_report restore(const variable_list& variables, const snapshot& source, const restore_options& options) {
  matching match(options, "snapshot");
  for (const auto& variable : variables) {
    const auto* entry = source.find(match.their_name(variable));
    match.add(variable, entry != nullptr ? std::optional(offered{entry->dtype, &entry->shape}) : std::nullopt);
  }
  match.check();
  for (const auto& variable : variables) {
    if (!match.is_restored(variable)) { continue; }
    variable.copy_from(source.find(match.their_name(variable))->bytes);
  }
  for (const auto& entry : source.entries()) { match.add_unused(entry.name); }
  return std::move(match).take();
}

}  // namespace stepwell
