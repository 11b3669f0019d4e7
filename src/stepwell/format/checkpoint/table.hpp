// SPDX-License-Identifier: Apache-2.0
//
// Sorted tables of keys and values: the file format of a checkpoint's index (LevelDB's SSTable with plain keys).
#pragma once

#include "stepwell/base/function_ref.hpp"
#include "stepwell/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// How a table is cut into blocks; the defaults are TensorFlow's, so that equal entries give equal bytes.
struct table_options {
  std::size_t block_size = 262'144;   ///< A block is full once it has this many bytes.
  std::size_t restart_interval = 16;  ///< Every so many keys one is stored whole.
};

/// One entry of a table.
struct table_entry {
  std::string key;
  std::string value;
  friend bool operator==(const table_entry&, const table_entry&) = default;
};

namespace detail {

/// Collects the entries of one block.
class block_builder {
public:
  explicit block_builder(std::size_t restart_interval) : restart_interval_(restart_interval) {}

  void add(std::string_view key, std::string_view value);
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  [[nodiscard]] std::size_t size_estimate() const noexcept { return bytes_.size() + 4 * restarts_.size() + 4; }
  /// The block with its restart array; the builder is empty afterwards.
  [[nodiscard]] std::string finish();

private:
  std::size_t restart_interval_;
  std::string bytes_;
  std::string last_key_;
  std::vector<std::uint32_t> restarts_ = {0};
  std::size_t since_restart_ = 0;
};

}  // namespace detail

/// Builds the bytes of a table, uncompressed.
class table_writer {
public:
  explicit table_writer(table_options options = {});

  /// @errors `invalid_argument` unless `key` is above all before it, as unsigned bytes.
  [[nodiscard]] result<void> add(std::string_view key, std::string_view value);

  /// The whole file. Nothing can be added afterwards.
  [[nodiscard]] std::string finish();

private:
  struct handle {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  void flush_block();
  handle append_block(std::string contents);
  void add_index_entry(std::string key);
  static void append_handle(std::string& out, handle where);

  table_options options_;
  std::string file_;
  detail::block_builder data_;
  detail::block_builder index_;
  std::string last_key_;
  handle pending_;            // of the last block flushed
  bool has_pending_ = false;  // whose index key is chosen once the next key is known
  bool is_first_ = true;
};

/// Receives an entry of a table; an error ends the visit. @lifetime Key and value are valid during the call.
using table_visitor = function_ref<result<void>(std::string_view key, std::string_view value)>;

/// Calls `visit` with key and value of each entry of a table, in order. Every block's checksum is
/// verified; blocks may be compressed with snappy.
/// @errors   `data_loss` with the offset of what is damaged; `unimplemented` for a compression nobody knows;
///           `resource_exhausted` for a block that is larger than `max_block` once it is expanded.
/// @cost     Memory: two expanded blocks, and one key.
[[nodiscard]] result<void> visit_table(std::string_view file, table_visitor visit, std::size_t max_block = std::size_t{8} << 20);

/// All entries of a table, in order. Every block's checksum is verified, that of unused blocks too; blocks may be
/// compressed with snappy.
/// @errors `data_loss` with the offset of what is damaged; `unimplemented` for a compression nobody knows;
///         `resource_exhausted` when the entries take more than `max_bytes`.
/// @cost   Memory is bounded by `max_bytes`, whatever the file claims; 0: 256 times the file and a MiB.
[[nodiscard]] result<std::vector<table_entry>> read_table(std::string_view file, std::size_t max_bytes = 0);

}  // namespace stepwell::format
