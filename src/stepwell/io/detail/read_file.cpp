// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/read_file.hpp"

#include "stepwell/base/detail/memory_shortage.hpp"

#include <fmt/format.h>
#include <new>
#include <span>

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

}  // namespace stepwell::io
