// SPDX-License-Identifier: Apache-2.0
//
// Private: sorted tables of keys and values, the file format of a checkpoint's index. The format is that of LevelDB's tables (SSTables), but
// the keys have no suffix: LevelDB appends a sequence number and a type to each key.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// The division of a table into blocks. With the defaults, the same entries give the same bytes as in TensorFlow.
struct table_options {
  std::size_t block_size = 262'144;   ///< A block ends when it has at least this number of bytes.
  std::size_t restart_interval = 16;  ///< Number of keys of which only the first is stored completely, without omitting a common prefix.
};

/// A writer that builds the bytes of a table. The blocks are not compressed.
class table_writer {
public:
  explicit table_writer(table_options options = {});

  /// Adds an entry. @errors `invalid_argument` if `key` is less than or equal to the previous key, compared as unsigned bytes.
  [[nodiscard]] result<void> add(std::string_view key, std::string_view value);

  /// Returns the number of bytes that `take_ready` would return.
  [[nodiscard]] std::size_t ready_bytes() const noexcept { return ready_.size(); }
  /// Removes and returns the bytes of the file that are complete and that were not returned before. Call it repeatedly to write a large
  /// table without having the whole table in memory.
  [[nodiscard]] std::string take_ready();

  /// Returns the complete file, or its rest after `take_ready`. No entries can be added afterwards.
  [[nodiscard]] std::string finish();

private:
  // A builder of one block.
  class block_builder {
  public:
    explicit block_builder(std::size_t restart_interval) : restart_interval_(restart_interval) {}

    void add(std::string_view key, std::string_view value);
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
    [[nodiscard]] std::size_t size_estimate() const noexcept { return bytes_.size() + 4 * restarts_.size() + 4; }
    // Returns the block with its restart array. The builder is empty afterwards.
    [[nodiscard]] std::string finish();

  private:
    std::size_t restart_interval_;
    std::string bytes_;
    std::string last_key_;
    std::vector<std::uint32_t> restarts_ = {0};
    std::size_t since_restart_ = 0;
  };
  void flush_block();
  // Appends a block to the file. Returns the handle of the block (its offset and size), encoded as in the file.
  std::string append_block(std::string contents);

  table_options options_;
  std::uint64_t taken_ = 0;  // bytes that `take_ready` has returned
  std::string ready_;        // complete bytes that `take_ready` has not returned yet
  block_builder data_;
  block_builder index_;
  std::optional<std::string> last_key_;
  // Handle of the last flushed block, if the index has no entry for this block yet; otherwise empty. The entry is added with the next key,
  // because the key of the entry lies between the last key of the block and this next key.
  std::string unindexed_block_;
};

/// A function that receives an entry of a table. If it returns an error, the visit ends. @lifetime Key and value are valid during the call.
using table_visitor = function_ref<result<void>(std::string_view key, std::string_view value)>;

/// Calls `visit` with the key and the value of each entry of a table, in order. Verifies the checksum of each block, including the
/// metaindex block. Blocks may be compressed with snappy.
/// @errors   `data_loss` with the offset of the damage. `unimplemented` for an unknown compression. `resource_exhausted` if a block has
///           more than `max_block` bytes after decompression. Errors of `visit`.
/// @cost     Memory for two decompressed blocks and one key.
[[nodiscard]] result<void> visit_table(std::string_view file, table_visitor visit, std::size_t max_block = std::size_t{8} << 20);

}  // namespace stepwell::format
