// SPDX-License-Identifier: Apache-2.0
//
// Internal: the directory of a ZIP archive, also of one with more than 4 GiB (ZIP64).
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

inline constexpr std::size_t zip_end_size = 65535 + 22 + 20;  ///< The end of an archive begins in its last bytes of this number.
inline constexpr std::size_t zip64_end_size = 56;
inline constexpr std::size_t zip_local_size = 30;  ///< Size of the header before a member, without its name and extra field.

/// Location of the directory in the archive.
struct zip_directory_place {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool is_zip64_end = false;  ///< True: `offset` is that of the record of `zip64_end_size` bytes that has the location.
};

/// Returns the location, or that of a record that has it. `tail` consists of the last bytes of a file with `file_size` bytes.
/// @errors `data_loss` if there is no end of an archive, or the location lies outside the file. `unimplemented` if the archive consists of
///         several files.
[[nodiscard]] result<zip_directory_place> find_zip_directory(std::string_view tail, std::uint64_t file_size);

/// Returns the location in the record of `zip64_end_size` bytes. @errors Like `find_zip_directory`.
[[nodiscard]] result<zip_directory_place> decode_zip64_end(std::string_view record, std::uint64_t file_size);

/// One member of an archive.
struct zip_member {
  std::string name;
  std::uint64_t header = 0;  ///< Offset of its local header.
  std::uint64_t packed = 0;  ///< Size in the archive.
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  bool is_deflated = false;
};

/// Returns all members, in the order of their bytes.
/// @errors `data_loss` if the directory is damaged, or if a member claims a size that its bytes cannot have. `unimplemented` for encrypted
///         members, and for compressions other than deflate.
/// @cost   Memory for at most 3 times the size of the directory.
[[nodiscard]] result<std::vector<zip_member>> decode_zip_directory(std::string_view directory);

/// Returns the number of bytes from the beginning of the local header to the bytes of the member.
/// @pre `header` has `zip_local_size` bytes. @errors `data_loss` if this is no local header.
[[nodiscard]] result<std::uint64_t> decode_zip_local_size(std::string_view header);

}  // namespace stepwell::format
