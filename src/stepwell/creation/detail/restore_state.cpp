// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/detail/restore_state.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/hook/stateful_hook.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <string>
#include <vector>

namespace stepwell {
namespace {

variable_list with_known_hook_state(const checkpoint_reader& source, variable_list wanted, const variable_list& hooks) {
  for (const auto& variable : hooks) {
    if (source.contains(variable.name())) {
      wanted.push_back(variable);
    } else {
      log_warning(fmt::format("{} has no tensor \"{}\"; the hook keeps its initial state", source.prefix(), variable.name()));
    }
  }
  return wanted;
}

void check_version(const checkpoint_reader& source) {
  const auto* entry = source.find(version_name);
  if (entry == nullptr) { return; }  // written by TensorFlow, or without a session
  const auto version =
      entry->dtype == dtype::int64 && entry->shape.empty() ? source.read(version_name).as<std::int64_t>().front() : std::int64_t{0};
  if (version < 1 || version > state_version) {
    throw unimplemented_error(fmt::format("the tensors below {} have layout version {}; this library reads versions up to {}: "
                                          "restore them with the library version that wrote them, or a later one",
                                          reserved_prefix, version, state_version),
                              source.prefix());
  }
}

std::map<std::string, std::int64_t> positions_in(const checkpoint_reader& source) {
  std::map<std::string, std::int64_t> found;
  for (const auto& entry : source.entries()) {
    const auto name = source_positions::source_name(entry.name);
    if (!name || entry.dtype != dtype::int64 || !entry.shape.empty()) { continue; }
    found[*name] = source.read(entry.name).as<std::int64_t>().front();
  }
  return found;
}

void note_unclaimed(const checkpoint_reader& source, const std::vector<std::string>& unused) {
  std::vector<std::string> unclaimed;
  for (const auto& name : unused) {
    if (!source_positions::source_name(name) && name != version_name) { unclaimed.push_back(name); }
  }
  if (!unclaimed.empty()) {
    log_info(fmt::format("{} also holds tensors that this session does not use: {}", source.prefix(), fmt::join(unclaimed, ", ")));
  }
}

}  // namespace

void restore_state(const checkpoint_reader& source, const variable_list& model, const variable_list& hooks, source_positions& positions) {
  check_version(source);
  const auto found = positions_in(source);  // read before anything is written
  const auto report = restore(with_known_hook_state(source, model, hooks), source);
  for (const auto& [name, position] : found) { positions.restore(name, position); }
  note_unclaimed(source, report.unused);
}

}  // namespace stepwell
