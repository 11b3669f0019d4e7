// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/scan_file.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace stepwell::io {

result<void> scan_file(file& source, std::uint64_t offset, std::uint64_t size, std::span<std::byte> scratch, const scan_visitor& visitor) {
  const auto end = offset + size;
  while (offset < end) {
    if (const auto data = std::min(source.skip_hole(offset), end); data > offset) {
      if (auto passed = visitor.zeros(data - offset); !passed) { return passed; }
      offset = data;
      continue;
    }
    const auto block = scratch.first(static_cast<std::size_t>(std::min<std::uint64_t>(scratch.size(), end - offset)));
    const auto count = source.read_at(offset, block);
    if (!count) { return count.error(); }
    if (*count != block.size()) {
      return status(errc::truncated, fmt::format("the file ends at byte {}, {} were expected", offset + *count, end), source.path());
    }
    if (auto passed = visitor.bytes(block); !passed) { return passed; }
    offset += block.size();
  }
  return {};
}

}  // namespace stepwell::io
