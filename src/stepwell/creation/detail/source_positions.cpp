// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/detail/source_positions.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/hook/stateful_hook.hpp"

#include <utility>

namespace stepwell {
namespace {

constexpr std::string_view unnamed = "default";
constexpr std::string_view suffix = "/position";

const std::string& named(const std::string& name) {
  static const std::string otherwise(unnamed);
  return name.empty() ? otherwise : name;
}

}  // namespace

bool source_positions::is_new(const std::string& name) { return seen_.insert(name).second; }

void source_positions::attach(const std::string& name, std::function<std::uint64_t()> position, std::int64_t step) {
  auto& known = entries_[named(name)];
  if (known.live) {
    throw invalid_argument_error("two sources named \"" + named(name) + "\" are in use at once; give them different names");
  }
  if (!known.first) { known.first = origin{static_cast<std::int64_t>(position()), step}; }
  known.live = std::move(position);
}

void source_positions::detach(const std::string& name) noexcept {
  const auto known = entries_.find(named(name));
  if (known == entries_.end() || !known->second.live) { return; }
  try {
    if (!known->second.is_due) { known->second.position = static_cast<std::int64_t>(known->second.live()); }
  } catch (...) {
    log_error("could not read the position of the source \"" + named(name) + "\" at the end of its loop; the previous position is kept");
  }
  known->second.live = nullptr;
}

void source_positions::leave_sources() noexcept {
  for (auto& [name, known] : entries_) { known.live = nullptr; }
}

std::optional<std::uint64_t> source_positions::restored(const std::string& name) const {
  const auto known = entries_.find(named(name));
  if (known == entries_.end() || !known->second.is_due) { return std::nullopt; }
  return static_cast<std::uint64_t>(known->second.position);
}

void source_positions::mark_positioned(const std::string& name) noexcept {
  if (const auto known = entries_.find(named(name)); known != entries_.end()) { known->second.is_due = false; }
}

variable_list source_positions::variables() {
  variable_list all;
  for (auto& [name, known] : entries_) {
    if (known.live && !known.is_due) { known.position = static_cast<std::int64_t>(known.live()); }
    all.emplace_back(variable_name(name), known.position);
  }
  return all;
}

void source_positions::restore(const std::string& name, std::int64_t position) {
  auto& known = entries_[named(name)];
  known.position = position;
  known.is_due = true;
}

void source_positions::go_back(std::int64_t step) noexcept {
  ++rewinds_;
  for (auto& [name, known] : entries_) {
    if (known.is_due || !known.first || known.first->step < step) { continue; }
    known.position = known.first->position;
    known.is_due = true;
  }
}

void source_positions::skip(const std::string& name, std::uint64_t position) { entries_[named(name)].skipped.insert(position); }

bool source_positions::skips(const std::string& name) const {
  const auto known = entries_.find(named(name));
  return known != entries_.end() && !known->second.skipped.empty();
}

bool source_positions::is_skipped(const std::string& name, std::uint64_t position) const {
  const auto known = entries_.find(named(name));
  return known != entries_.end() && known->second.skipped.contains(position);
}

std::string source_positions::variable_name(const std::string& name) {
  return std::string(source_state_prefix).append(named(name)).append(suffix);
}

std::optional<std::string> source_positions::source_name(std::string_view variable) {
  if (!variable.starts_with(source_state_prefix) || !variable.ends_with(suffix)) { return std::nullopt; }
  variable.remove_prefix(source_state_prefix.size());
  if (variable.size() <= suffix.size()) { return std::nullopt; }
  variable.remove_suffix(suffix.size());
  return std::string(variable);
}

}  // namespace stepwell
