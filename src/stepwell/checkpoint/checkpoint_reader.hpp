// SPDX-License-Identifier: Apache-2.0
//
// Reads one checkpoint: ours or TensorFlow's (V2), in any number of shards, whole or in slices.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/coro/generator.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stepwell {

namespace io {
class file_system;
}

/// What a checkpoint says of one tensor.
struct checkpoint_entry {
  std::string name;
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::uint64_t size_bytes = 0;  ///< As stored, all slices together.
  bool is_partitioned = false;   ///< Stored in slices; `read` puts them together.
  bool is_object_graph = false;  ///< TensorFlow's note of who owns what, not a variable.
  std::uint32_t crc32c = 0;      ///< As stored: masked. 0 for a partitioned one, whose slices have each their own.
};

/// One open checkpoint. Its index is read, checked and kept at construction; tensors are read when asked for.
/// Nothing read here can crash or make a large allocation: sizes are held against the files before memory is taken. Opening takes
/// at most 64 MiB and 4 times the size of the index, verifying a MiB; holes of sparse files take no time.
/// @threads `const` functions may be called from several threads at once.
class checkpoint_reader {
public:
  /// Opens `prefix` ("run/model.ckpt-500"; its index is "run/model.ckpt-500.index").
  /// @errors `not_found_error` without an index, `data_loss_error` for a damaged one, a missing shard or an entry outside
  ///         its shard or on bytes of another one, `resource_exhausted_error` without memory, `unimplemented_error` for one written for later readers; else what the file system says.
  explicit checkpoint_reader(std::string prefix, std::shared_ptr<io::file_system> files = nullptr);
  checkpoint_reader(checkpoint_reader&&) noexcept;
  checkpoint_reader& operator=(checkpoint_reader&&) noexcept;
  ~checkpoint_reader();

  [[nodiscard]] const std::string& prefix() const noexcept;
  /// Data files it is stored in.
  [[nodiscard]] std::int32_t shards() const noexcept;
  /// N of "model.ckpt-N"; the tensor `global_step` where the name has none; nothing where both are missing.
  [[nodiscard]] std::optional<std::int64_t> step() const;

  /// All tensors, sorted by name.
  [[nodiscard]] std::span<const checkpoint_entry> entries() const noexcept;
  [[nodiscard]] const checkpoint_entry* find(std::string_view name) const noexcept;
  [[nodiscard]] bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }

  /// One tensor, its checksum checked, in the byte order of this machine.
  /// @errors `not_found_error`, `data_loss_error`, `unimplemented_error` for dtypes that have no value here (variants).
  [[nodiscard]] tensor read(std::string_view name) const;
  /// The same into memory of yours. @errors Also `invalid_argument_error` if `target` has another size than the tensor,
  /// or for strings. After an error the content of `target` is unspecified.
  void read_into(std::string_view name, std::span<std::byte> target) const;

  /// The elements of a tensor, piece by piece, in the byte order of this machine: whole elements, a MiB at once (the last one
  /// less), row-major; a partitioned tensor slice by slice. The checksum is known at the end: what was seen is good once the
  /// iteration has ended. @lifetime A piece is good until the next; the reader must outlive the iteration.
  /// @errors As `read_into`, out of this call or of the iteration. @cost Memory for one piece, whatever the size of the tensor.
  [[nodiscard]] generator<std::span<const std::byte>> pieces(std::string_view name) const;

  /// Reads everything and checks every checksum; remembered, so that `restore` need not do it again. Skips tensors whose
  /// checksum is not known here (variants, resources).
  /// @errors `data_loss_error` naming the first damaged tensor.
  void verify() const;
  /// The same for one tensor.
  /// @errors Also `not_found_error`; `unimplemented_error` for a tensor that `verify()` skips.
  void verify(std::string_view name) const;
  [[nodiscard]] bool is_verified() const noexcept;

private:
  struct core;
  std::unique_ptr<core> core_;
};

}  // namespace stepwell
