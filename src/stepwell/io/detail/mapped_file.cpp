// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/mapped_file.hpp"

#include "stepwell/io/detail/posix_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stepwell::io {
namespace {

result<std::span<const std::byte>> mapped(const std::string& path, int descriptor) {
  struct ::stat about{};
  if (::fstat(descriptor, &about) != 0) { return status_from_errno(errno, "could not read its size", path); }
  if (!S_ISREG(about.st_mode)) { return status(errc::invalid_argument, "this is not a regular file; only files can be mapped", path); }
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size == 0) { return std::span<const std::byte>(); }
  void* const first = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (first == MAP_FAILED) { return status_from_errno(errno, "could not map it into memory", path); }
  return std::span<const std::byte>(static_cast<const std::byte*>(first), size);
}

}  // namespace

result<mapped_file> mapped_file::open(const std::string& path) {
  const int descriptor = retry_on_signal([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); });
  if (descriptor < 0) { return status_from_errno(errno, "could not open it for reading", path); }
  auto bytes = mapped(path, descriptor);
  ::close(descriptor);  // the mapping stays
  if (!bytes) { return std::move(bytes).error(); }
  return mapped_file(*bytes);
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }
}

}  // namespace stepwell::io
