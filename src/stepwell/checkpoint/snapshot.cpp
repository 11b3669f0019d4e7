// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/snapshot.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/detail/snapshot_memory.hpp"
#include "stepwell/checkpoint/detail/tensor_start.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <string_view>
#include <utility>

namespace stepwell {
namespace {

constexpr std::size_t alignment = 64;

/// Returns the offset of `variable` in a snapshot that is filled up to `offset`.
std::size_t start_of(const variable_ref& variable, std::size_t offset) noexcept {
  return detail::tensor_start(offset, variable.size_bytes(), alignment);
}

bool has_layout_of(const std::vector<snapshot_entry>& entries, const variable_list& variables) noexcept {
  return std::ranges::equal(entries, variables, [](const snapshot_entry& entry, const variable_ref& variable) {
    return entry.bytes.size() == variable.size_bytes() && entry.dtype == variable.dtype() && entry.shape == variable.shape() &&
           entry.name == variable.name();
  });
}

void check_names(const variable_list& variables) {
  std::vector<std::string_view> names;
  for (const auto& variable : variables) { names.push_back(variable.name()); }
  std::ranges::sort(names);
  if (!names.empty() && names.front().empty()) { throw invalid_argument_error("a variable to save has no name"); }
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    throw invalid_argument_error(fmt::format("two variables to save have the name \"{}\"; rename one", *twice));
  }
}

void lay_out(detail::snapshot_memory& memory, const variable_list& variables) {
  check_names(variables);
  memory.entries.clear();
  memory.reserve(snapshot_size(variables));
  std::size_t offset = 0;
  memory.size_bytes = 0;
  for (const auto& variable : variables) {
    const auto size = variable.size_bytes();
    offset = start_of(variable, offset);
    memory.entries.push_back({variable.name(), variable.dtype(), variable.shape(), {memory.bytes.get() + offset, size}});
    offset += size;
    memory.size_bytes += size;
  }
}

}  // namespace

std::size_t snapshot_size(const variable_list& variables) {
  std::size_t bytes = 0;
  for (const auto& variable : variables) { bytes = start_of(variable, bytes) + variable.size_bytes(); }
  return bytes;
}

snapshot::snapshot(snapshot_pool::buffer memory, std::int64_t step, std::shared_ptr<trace_recorder> trace) noexcept
    : memory_(std::move(memory)), step_(step), trace_(std::move(trace)) {}

snapshot snapshot::capture(snapshot_pool::buffer buffer, const variable_list& variables, std::int64_t step) {
  if (!buffer.memory_) { throw failed_precondition_error("a snapshot needs a buffer; this one was moved from"); }
  auto& memory = *buffer.memory_;
  auto trace = current_trace();
  trace_span span(trace, "snapshot", "checkpoint");
  if (!has_layout_of(memory.entries, variables)) { lay_out(memory, variables); }
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto to = memory.entries[i].bytes;  // memory of this buffer, so the const_cast is valid
    variables[i].copy_to({const_cast<std::byte*>(to.data()), to.size()});
  }
  span.argument("step", step);
  span.argument("bytes", memory.size_bytes);
  return snapshot(std::move(buffer), step, std::move(trace));
}

std::span<const snapshot_entry> snapshot::entries() const noexcept {
  return memory_.memory_ ? std::span<const snapshot_entry>(memory_.memory_->entries) : std::span<const snapshot_entry>();
}

const snapshot_entry* snapshot::find(std::string_view name) const noexcept {
  const auto all = entries();
  const auto found = std::ranges::find(all, name, [](const auto& entry) -> std::string_view { return entry.name; });
  return found == all.end() ? nullptr : &*found;
}

std::size_t snapshot::size_bytes() const noexcept { return memory_.memory_ ? memory_.memory_->size_bytes : 0; }

}  // namespace stepwell
