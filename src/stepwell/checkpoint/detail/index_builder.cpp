// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/index_builder.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/checkpoint/table.hpp"

#include <algorithm>
#include <cstring>

namespace stepwell::detail {
namespace {

constexpr std::size_t piece_size = std::size_t{1} << 20;  // size in bytes from which a piece of the index is passed on

}  // namespace

void index_builder::append(std::string_view key, std::string_view value) {
  auto* const text = static_cast<char*>(text_.allocate(key.size() + value.size(), 1));
  std::memcpy(text, key.data(), key.size());
  if (!value.empty()) { std::memcpy(text + key.size(), value.data(), value.size()); }
  if (items_.size() == room_) {  // `keys_` would grow more often, and would read all keys each time
    room_ = std::max<std::size_t>(4 * room_, 1024);
    keys_.reserve(room_);
  }
  items_.push_back({text, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())});
  keys_.add(static_cast<std::uint32_t>(items_.size() - 1));
}

format::bundle_entry* index_builder::partitioned(const std::string& key) {
  const auto known = partitioned_.find(key);
  if (known != partitioned_.end()) { return &known->second; }
  if (contains(key)) { return nullptr; }
  append(key, {});
  return &partitioned_[key];
}

void index_builder::write(const format::bundle_header& header, function_ref<void(std::span<const std::byte>)> sink) {
  const auto is_before = [](const item& a, const item& b) { return a.key() < b.key(); };
  if (!std::ranges::is_sorted(items_, is_before)) {
    keys_ = name_index<key_of>(key_of{&items_});  // the numbers change
    std::ranges::sort(items_, is_before);
  }
  format::table_writer table;
  const auto pass_on = [&](std::string_view bytes) {
    if (!bytes.empty()) { sink(std::as_bytes(std::span(bytes))); }
  };
  value_or_throw(table.add("", encode(header)));
  for (const auto& item : items_) {
    if (item.value_size != 0) {
      value_or_throw(table.add(item.key(), item.value()));
    } else if (const auto& entry = partitioned_.at(std::string(item.key())); !entry.slices.empty()) {
      value_or_throw(table.add(item.key(), encode(entry)));
    }
    if (table.ready_bytes() >= piece_size) { pass_on(table.take_ready()); }
  }
  pass_on(table.finish());
}

}  // namespace stepwell::detail
