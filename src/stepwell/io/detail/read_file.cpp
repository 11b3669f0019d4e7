// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/read_file.hpp"

#include "stepwell/base/detail/failure_text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <new>

namespace stepwell::io {
namespace {

template<class Bytes>
result<Bytes> read_whole(file_system& files, const std::string& path, std::uint64_t max_bytes) {
  const auto opened = files.open(path, open_mode::read);
  if (!opened) { return opened.error(); }
  file& source = **opened;
  const auto size = source.size();
  if (!size) { return size.error(); }
  if (*size > max_bytes) {
    return status(
        errc::invalid_argument,
        fmt::format("could not read it: it has {} bytes, at most {} are expected; check that this is the right file", *size, max_bytes),
        path);
  }
  Bytes bytes;
  try {
    bytes.resize(static_cast<std::size_t>(*size));
  } catch (const std::bad_alloc&) { return stepwell::detail::memory_shortage(fmt::format("could not read its {} bytes", *size), path); }
  const auto count = source.read_at(0, std::as_writable_bytes(std::span(bytes)));
  if (!count) { return count.error(); }
  bytes.resize(*count);  // another process may have truncated the file in the meantime
  return bytes;
}

}  // namespace

result<std::vector<std::byte>> read_file(file_system& files, const std::string& path, std::uint64_t max_bytes) {
  return read_whole<std::vector<std::byte>>(files, path, max_bytes);
}

result<std::string> read_text_file(file_system& files, const std::string& path, std::uint64_t max_bytes) {
  return read_whole<std::string>(files, path, max_bytes);
}

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
