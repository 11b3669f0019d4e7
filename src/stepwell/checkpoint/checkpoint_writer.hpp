// SPDX-License-Identifier: Apache-2.0
//
// Writes one checkpoint, tensor by tensor; nobody sees any of it before `commit`.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepwell {

/// One checkpoint being written aside. Destroyed before `commit` has succeeded, it leaves nothing behind.
/// @errors  All functions throw what the file system says; `invalid_argument_error` for a name that is empty, taken, or
///          begins with a zero byte, and for bytes that are not those of the shape.
/// @threads One at a time.
class checkpoint_writer {
public:
  /// @pre No data file of this prefix and shard count belongs to a checkpoint that must survive.
  explicit checkpoint_writer(std::string prefix, std::shared_ptr<io::file_system> files = nullptr, std::int32_t shards = 1);

  /// Appends a tensor to the shard that holds least. Its bytes are written straight from `view`.
  void add(const std::string& name, const tensor_view& view);
  void add_strings(const std::string& name, const tensor_shape& shape, std::span<const std::string> elements);
  /// Appends one part of a partitioned tensor of the shape `whole`. All parts must be added, each once.
  void add_slice(const std::string& name, const tensor_shape& whole, const format::tensor_slice& slice, const tensor_view& part);

  /// Bytes added so far.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;

  /// Data synced and renamed, then the index the same way: once the index has its name, the checkpoint exists.
  /// `before_index` is called between the two; what it throws is thrown.
  /// @errors After one, nothing of this checkpoint is left; unless it was the very last sync that failed: then it stands,
  ///         whole, but a power cut may still take it away.
  void commit(const std::function<void()>& before_index = nullptr);

private:
  [[nodiscard]] format::bundle_entry write(const std::string& name, std::span<const std::byte> bytes, dtype type,
                                           const tensor_shape& shape);
  void insert(std::string key, format::bundle_entry entry);
  void publish_data();
  void publish_index();
  void remove_data() noexcept;

  std::string prefix_;
  std::shared_ptr<io::file_system> files_;
  std::vector<io::atomic_file> data_;
  std::map<std::string, format::bundle_entry> entries_;
};

}  // namespace stepwell
