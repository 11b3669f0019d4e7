// SPDX-License-Identifier: Apache-2.0
//
// Internal: a file of arrays that another program wrote, in any of the formats that this library reads, as one interface: a list of names,
// types and shapes, and the elements of each array.
#pragma once

#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/format/weights/detail/state_dict.hpp"
#include "stepwell/format/weights/detail/stored_array.hpp"
#include "stepwell/format/weights/detail/zip_directory.hpp"
#include "stepwell/io/file_system.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// An open file of arrays. The constructor reads the descriptions of all arrays. Elements are read on request.
/// @threads `const` functions may be called from several threads at the same time.
class array_file {
public:
  /// Returns the format of the file `path`, which its first bytes show. An archive counts as `npz`, and an index of several files ("NAME.index.json")
  /// as `safetensors`. Returns nothing if there is no file of such a format. @errors Failures of the file system.
  [[nodiscard]] static std::optional<checkpoint_format> recognise(io::file_system& files, const std::string& path);

  /// Opens `path` if its format is known. Opens all files of an index, as one file. Returns null if the format is unknown.
  /// @errors `data_loss_error` if the file is damaged. `unimplemented_error` if the format is known, but not supported. `not_found_error` if an index
  ///         names a file that is not there. Failures of the file system.
  /// @cost   Memory in proportion to the size of the descriptions, and never to a size that only a description claims.
  [[nodiscard]] static std::unique_ptr<array_file> open(io::file_system& files, const std::string& path);

  [[nodiscard]] static bool is_shard_index(std::string_view path) noexcept { return path.ends_with(".index.json"); }

  [[nodiscard]] checkpoint_format format() const noexcept { return format_; }
  /// Returns the number of files with elements.
  [[nodiscard]] std::size_t files() const noexcept { return is_index_ ? shards_.size() : 1; }
  /// Returns the paths of the files with elements.
  [[nodiscard]] std::vector<std::string> paths() const;
  /// Returns all arrays, sorted by name.
  [[nodiscard]] std::span<const format::stored_array> arrays() const noexcept { return arrays_; }
  /// Returns the array of this name, or null.
  [[nodiscard]] const format::stored_array* find(std::string_view name) const noexcept;

  /// Returns the elements in pieces, like `checkpoint_reader::sparse_pieces`. If `target` has the size of the array, the pieces lie in it.
  /// Otherwise `target` has 1 MiB, and each piece replaces the piece before it.
  /// The checksum of a member of an archive is checked before the first piece, unless it was checked before.
  /// @errors `unimplemented_error` if the array cannot be read. `data_loss_error`. Failures of the file system.
  /// @cost   An array whose elements do not lie in row-major order is read as a whole first.
  [[nodiscard]] generator<tensor_piece> pieces(const format::stored_array& array, std::span<std::byte> target, bool skips_holes) const;

  /// Checks the checksums of all members, also of those without arrays.
  void verify() const;
  /// Throws `unimplemented_error` if the array cannot be read.
  void require_supported(const format::stored_array& array) const;

private:
  /// A part of the file: the whole file, or a member of an archive.
  struct part {
    std::uint64_t offset = 0;
    format::zip_member member;
    bool has_checksum = false;
  };
  class inflater;

  array_file(std::unique_ptr<io::file> file, std::uint64_t size, checkpoint_format format);

  void load_shards(io::file_system& files);
  void load_safetensors();
  void load_npy();
  void load_archive();
  void load_npz();
  void load_state_dict(const part& pickle);
  void load_old_torch_file();
  void add_tensors(std::vector<format::pickled_tensor> tensors, const std::map<std::string, std::size_t, std::less<>>& parts,
                   bool is_big_endian);
  void sort();
  void add_npy(std::size_t number, std::string name);

  [[noreturn]] void fail(errc code, std::string_view why) const;
  [[nodiscard]] std::string text_at(std::uint64_t offset, std::uint64_t size) const;
  /// Returns the first bytes of a part, at most `size` of them.
  [[nodiscard]] std::string beginning_of(const part& of, std::uint64_t size) const;
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  void check_part(std::size_t number) const;
  /// Reads all elements of an array with strides to `target`, in row-major order.
  void gather(const format::stored_array& array, std::span<std::byte> target) const;
  void check_elements(const format::stored_array& array, std::span<std::byte> bytes) const;
  [[nodiscard]] generator<tensor_piece> own_pieces(const format::stored_array& array, std::span<std::byte> target, bool skips_holes) const;

  std::unique_ptr<io::file> file_;
  std::uint64_t size_;
  checkpoint_format format_;
  std::vector<part> parts_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // of each part
  std::vector<format::stored_array> arrays_;
  bool is_index_ = false;
  std::vector<std::unique_ptr<array_file>> shards_;  // of an index: `stored_array::part` is the position in it
};

}  // namespace stepwell::detail
