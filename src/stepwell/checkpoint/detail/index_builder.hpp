// SPDX-License-Identifier: Apache-2.0
//
// Internal: the entries of the index of a checkpoint that is being written.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/checkpoint/detail/name_index.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// Collects entries in any order and writes them as a sorted table. Keys and encoded entries lie one behind another in large blocks.
class index_builder {
public:
  index_builder() = default;
  index_builder(const index_builder&) = delete;
  index_builder& operator=(const index_builder&) = delete;

  /// Returns true if there is an entry with this key.
  [[nodiscard]] bool contains(std::string_view key) const { return keys_.find(key).has_value(); }
  /// Adds an entry. @pre There is none with this key, and the key has less than 4 GiB.
  void add(std::string_view key, const format::bundle_entry& entry) { append(key, encode(entry)); }
  /// Returns the entry of a partitioned tensor, to which the caller adds slices. Creates an empty one if there is no entry with this key.
  /// Returns null if the tensor is not partitioned.
  [[nodiscard]] format::bundle_entry* partitioned(const std::string& key);

  /// Calls `sink` with the bytes of the complete index, in pieces.
  void write(const format::bundle_header& header, function_ref<void(std::span<const std::byte>)> sink);

private:
  struct item {
    const char* text = nullptr;  ///< The key, then the encoded entry.
    std::uint32_t key_size = 0;
    std::uint32_t value_size = 0;  ///< 0: the entry is in `partitioned_`.

    [[nodiscard]] std::string_view key() const noexcept { return {text, key_size}; }
    [[nodiscard]] std::string_view value() const noexcept { return {text + key_size, value_size}; }
  };
  struct key_of {
    const std::vector<item>* items;
    std::string_view operator()(std::uint32_t number) const noexcept { return (*items)[number].key(); }
  };

  void append(std::string_view key, std::string_view value);

  std::pmr::monotonic_buffer_resource text_;
  std::vector<item> items_;
  name_index<key_of> keys_{key_of{&items_}};
  std::size_t room_ = 0;  // keys for which `keys_` has memory
  std::map<std::string, format::bundle_entry> partitioned_;
};

}  // namespace stepwell::detail
