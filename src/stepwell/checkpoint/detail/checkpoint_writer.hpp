// SPDX-License-Identifier: Apache-2.0
//
// Private: a writer of one checkpoint. Tensors are added one by one. Readers cannot see the checkpoint before `commit`.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

class index_builder;

/// A checkpoint that is written under temporary file names. If the writer is destroyed before `commit` has succeeded, it removes its files.
/// A checkpoint consists of an index and of one or more data files, which are called shards.
/// @errors  All functions throw the failures of the file system. The `add` functions throw `invalid_argument_error` for a name that is
///          empty, is already used or begins with a zero byte, and for bytes that do not fit the shape.
/// @threads One thread at a time.
class checkpoint_writer {
public:
  static constexpr std::int32_t max_shards = 99'999;  ///< The name of a data file has five digits for its number.

  /// Creates the temporary data files.
  /// @pre    If a checkpoint with this prefix and this number of shards exists, it is no longer needed: `commit` overwrites its data files.
  /// @errors `invalid_argument_error` unless `shards` is between 1 and 99,999.
  explicit checkpoint_writer(std::string prefix, std::shared_ptr<io::file_system> files = nullptr, std::int32_t shards = 1);
  checkpoint_writer(checkpoint_writer&&) noexcept;
  checkpoint_writer& operator=(checkpoint_writer&&) = delete;
  ~checkpoint_writer();

  /// Appends a tensor to the smallest shard. The bytes of a large tensor are written directly from `view`. Small tensors are collected and
  /// written together, so a failure of the file system may be thrown by a later call.
  void add(std::string_view name, const tensor_view& view);
  /// Appends a tensor of strings, like `add`.
  void add_strings(std::string_view name, const tensor_shape& shape, std::span<const std::string> elements);
  /// Appends one slice of a partitioned tensor of shape `whole`. Each slice must be added exactly once.
  void add_slice(std::string_view name, const tensor_shape& whole, const format::tensor_slice& slice, const tensor_view& part);

  /// Returns the number of bytes added so far, including padding, and after `commit` those of the index.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;

  /// Syncs and renames the data files, then calls `before_index`, then writes, syncs and renames the index. The checkpoint exists as soon
  /// as the index has its final name. If `before_index` throws, the index is not written, and the exception is rethrown.
  /// @errors Failures of the file system. After a failure, no file of this checkpoint is left. But if only the last sync of the directory
  ///         failed, the checkpoint is complete, and a power failure may still remove it.
  void commit(const std::function<void()>& before_index = nullptr);

private:
  struct shard;

  [[nodiscard]] format::bundle_entry write(std::string_view name, std::span<const std::byte> bytes, dtype type, const tensor_shape& shape);
  void check_key(std::string_view key) const;
  void publish_data();
  void publish_index();
  void remove_data() noexcept;

  std::string prefix_;
  std::shared_ptr<io::file_system> files_;
  std::vector<shard> shards_;
  std::unique_ptr<index_builder> index_;
  std::uint64_t index_bytes_ = 0;  // written by `commit`
};

}  // namespace stepwell::detail
