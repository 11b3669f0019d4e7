// SPDX-License-Identifier: Apache-2.0
//
// Reader of one checkpoint, written by this library or by TensorFlow (V2 format), with any number of shards and with partitioned tensors.
// Also reads files of weights that Python programs write.
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
class pool;
}  // namespace io

class error;
class checkpoint_reader;

/// The format of a checkpoint.
enum class checkpoint_format {
  tensorflow,   ///< TensorFlow's format V2, in which this library writes: an index and data files.
  safetensors,  ///< A file of the package safetensors, or several files with an index.
  npy,          ///< One array that `numpy.save` wrote. Its name is that of the file without ".npy".
  npz,          ///< An archive of `numpy.savez` or `numpy.savez_compressed`.
  state_dict,   ///< Dictionaries of tensors, which `torch.save` wrote. No code of the pickle in it is executed.
};

/// Description of one tensor in the index of a checkpoint.
/// @lifetime The name and the shape are valid as long as the reader.
struct checkpoint_entry {
  std::string_view name;
  stepwell::dtype dtype = dtype::invalid;
  shape_view shape;
  std::uint64_t size_bytes = 0;  ///< Stored size of all slices together.
  bool is_partitioned = false;   ///< True: the tensor is stored in slices, which `read` joins.
  bool is_object_graph = false;  ///< True: TensorFlow's object graph, not a variable.
  std::uint32_t crc32c =
      0;  ///< Checksum as it is stored, masked. 0 for a partitioned tensor, whose slices have checksums, and in files of other formats.
  std::string_view unsupported = {};  ///< The reason why a tensor in a file of another format cannot be read. Empty if it can be.
};

/// One tensor of a checkpoint to read, and the memory for it.
struct read_target {
  const checkpoint_entry* entry = nullptr;
  std::span<std::byte> into;
};

/// A part of a tensor of numbers: bytes, or the number of bytes that are zero because they lie in a hole of a sparse file.
struct tensor_piece {
  std::span<const std::byte> bytes = {};
  std::uint64_t zeros = 0;  ///< A multiple of the size of an element. If above 0, `bytes` is empty.
};

/// A search for the newest checkpoint that can be restored. It has opened a checkpoint without verifying it. If the restore of this
/// checkpoint fails, a session calls `next_after` and restores the next older checkpoint instead.
class checkpoint_search_result {
public:
  virtual ~checkpoint_search_result() = default;
  /// Skips `damaged` with a warning, and returns the next older checkpoint whose index is not damaged.
  /// @errors If `failure` does not mean that the checkpoint is damaged (for example, if the disk failed), throws `failure` again. If there
  ///         is no older checkpoint, throws the errors of `open_newest`.
  [[nodiscard]] virtual checkpoint_reader next_after(const checkpoint_reader& damaged, const error& failure) = 0;
  /// Declares that `restored` was restored completely.
  virtual void accept(const checkpoint_reader& restored) = 0;
};

/// One open checkpoint. The constructor reads and checks the index and keeps it in memory. Tensors are read on request.
/// The reader is robust against damaged and malicious files: it compares each size with the size of the file before it allocates
/// memory. Opening allocates at most 64 MiB plus 17 times the size of the index. Verifying allocates 1 MiB, and at most 80 bytes for
/// each tensor. `verify` skips holes of sparse files, so holes take no time.
///
/// A file of safetensors, NumPy or PyTorch is read as a checkpoint with one data file. The first bytes of the file determine its format.
/// The index of several such files, whose name ends in ".index.json", is read as a checkpoint with these data files.
/// Archives (NPZ files and those of `torch.save`) have a checksum for each member, which is checked before the first piece of the member.
/// `torch.save` can omit these checksums. Files of the other formats have none. A tensor of a type that this library lacks has the dtype
/// `invalid`, and so has an array of pickled objects, which are never read. A tensor that is not stored in row-major order is read into
/// memory as a whole.
/// @threads `const` functions may be called from several threads at the same time.
class checkpoint_reader {
public:
  /// Opens the checkpoint `prefix` ("run/model.ckpt-500"; its index is "run/model.ckpt-500.index"). If there is no index, opens the file
  /// `prefix`, such as "model.safetensors", or the files of the index `prefix`, such as "model.safetensors.index.json". A checkpoint that
  /// another process deletes or replaces meanwhile is not damaged: the constructor throws `not_found_error`, or opens the new one. After the
  /// constructor, a deletion no longer disturbs the reader.
  /// @errors `not_found_error` if there is no index. `data_loss_error` if the index is damaged, a shard is missing, or a tensor
  ///         lies outside its shard or shares bytes with another tensor. `resource_exhausted_error` if memory is short.
  ///         `unimplemented_error` if the checkpoint requires a later reader, if a tensor is stored in more than 8192 slices, or if there
  ///         are too many slices to compare. Other failures of the file system.
  explicit checkpoint_reader(std::string prefix, std::shared_ptr<io::file_system> files = nullptr);
  checkpoint_reader(checkpoint_reader&&) noexcept;
  checkpoint_reader& operator=(checkpoint_reader&&) noexcept;
  ~checkpoint_reader();

  [[nodiscard]] const std::string& prefix() const noexcept;
  [[nodiscard]] checkpoint_format format() const noexcept;
  /// Returns the number of data files of the checkpoint.
  [[nodiscard]] std::int32_t shards() const noexcept;
  /// Returns the paths of the data files of the checkpoint.
  [[nodiscard]] std::vector<std::string> data_files() const;
  /// Returns N of "model.ckpt-N". If the name has no step, reads the tensor `global_step` and returns its value. Returns nothing if this
  /// tensor is missing, too, or is not one number of type int64.
  /// @errors Those of `read`.
  [[nodiscard]] std::optional<std::int64_t> step() const;

  /// Returns all tensors, sorted by name.
  [[nodiscard]] std::span<const checkpoint_entry> entries() const noexcept;
  /// Returns the tensor of this name, or null.
  [[nodiscard]] const checkpoint_entry* find(std::string_view name) const noexcept;
  [[nodiscard]] bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }

  /// Returns one tensor in the byte order of this machine, after a check of its checksum.
  /// @errors `not_found_error`. `data_loss_error`. `resource_exhausted_error` if memory is short. `unimplemented_error` for a dtype
  ///         without a value type in this library (variant, resource, invalid).
  [[nodiscard]] tensor read(std::string_view name) const;
  /// Reads one tensor into `target`, like `read`. After an error the content of `target` is unspecified.
  /// @errors Like `read`. `invalid_argument_error` if the size of `target` differs from the size of the tensor, or if the tensor
  ///         holds strings.
  void read_into(std::string_view name, std::span<std::byte> target) const;

  /// Reads many tensors, each like the overload above, in the order of their bytes in the files. Small tensors are read together. Large
  /// tensors are read directly into the memory of their targets. Idle threads of `helpers` take part: one thread reads while another one
  /// computes a checksum. If `helpers` is null, the calling thread does everything.
  /// @pre    Each entry is one of `entries()`.
  /// @errors Like the overload above. The content of all targets is then unspecified.
  /// @cost   At most 3 MiB of memory for each thread, and a few bytes for each target. Each byte is read once.
  void read_into(std::span<const read_target> targets, io::pool* helpers = nullptr) const;

  /// Returns the elements of a tensor in pieces, in the byte order of this machine and in row-major order. A piece consists of whole
  /// elements and has 1 MiB; the last piece of a tensor or slice may be smaller. A partitioned tensor is returned slice by slice. In
  /// TensorFlow's format, the checksum is checked after the last piece, so the data is known to be correct only after the iteration has
  /// ended without an error.
  /// @lifetime A piece is valid until the next piece is requested. The reader must outlive the iteration.
  /// @errors   Like `read_into`. Thrown by this call or during the iteration.
  /// @cost     Memory for one piece, independent of the size of the tensor. For a tensor that is not stored in row-major order, memory for
  ///           the whole tensor and for its stored bytes.
  [[nodiscard]] generator<std::span<const std::byte>> pieces(std::string_view name) const;

  /// Like `pieces`, but does not read the holes of a sparse file: a piece is either bytes or a number of bytes that are zero.
  /// @cost Holes take no time.
  [[nodiscard]] generator<tensor_piece> sparse_pieces(std::string_view name) const;

  /// Reads all tensors and checks their checksums. The reader stores a success, so `restore` does not verify it again. Skips variants and
  /// resources, because this library cannot compute their checksums. In a file without checksums, checks only that each boolean is 0 or 1.
  /// @errors `data_loss_error` naming the first damaged tensor. `resource_exhausted_error`. Other failures of the file system.
  void verify() const;
  /// Reads one tensor and checks the checksum of this tensor. Does not change the result of `is_verified`.
  /// @errors Like `verify()`. `not_found_error`. `unimplemented_error` for a tensor that `verify()` skips.
  void verify(std::string_view name) const;
  /// Returns true after `verify()` has succeeded.
  [[nodiscard]] bool is_verified() const noexcept;

  /// Returns the search that opened this checkpoint without verifying it, or null.
  /// @see `open_newest`
  [[nodiscard]] const std::shared_ptr<checkpoint_search_result>& search() const noexcept;
  void set_search(std::shared_ptr<checkpoint_search_result> search) noexcept;

private:
  struct core;
  std::unique_ptr<core> core_;
};

}  // namespace stepwell
