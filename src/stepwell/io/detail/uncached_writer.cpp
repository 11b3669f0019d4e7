// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/uncached_writer.hpp"

#include "stepwell/io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace stepwell::io {
namespace {

constexpr std::size_t most_copied = std::size_t{4} << 20;  // size in bytes of the aligned buffer

constexpr std::size_t whole_pages(std::size_t bytes) noexcept { return bytes / page_size * page_size; }

bool begins_at_page(const std::byte* memory) noexcept { return reinterpret_cast<std::uintptr_t>(memory) % page_size == 0; }

int open_uncached([[maybe_unused]] int cached) {
#if defined(__linux__) && defined(O_DIRECT)
  return ::open(fmt::format("/proc/self/fd/{}", cached).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
#else
  return -1;
#endif
}

}  // namespace

void uncached_writer::freed::operator()(std::byte* memory) const noexcept { std::free(memory); }

std::unique_ptr<uncached_writer> uncached_writer::open(int cached) noexcept {
  page_memory aligned(static_cast<std::byte*>(std::aligned_alloc(page_size, most_copied)));
  const int uncached = aligned ? open_uncached(cached) : -1;
  if (uncached < 0) { return nullptr; }
  auto* const made = new (std::nothrow) uncached_writer(cached, uncached, std::move(aligned));
  if (made == nullptr) { ::close(uncached); }
  return std::unique_ptr<uncached_writer>(made);
}

uncached_writer::~uncached_writer() { ::close(uncached_); }

ssize_t uncached_writer::write_cached(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept {
  return ::pwrite(cached_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
}

ssize_t uncached_writer::write_pages(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  if (is_refused_) { return write_cached(offset, bytes); }
  const auto written = ::pwrite(uncached_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (written >= 0 || errno != EINVAL) { return written; }
  is_refused_ = true;  // the file system requires a larger alignment, or lacks uncached writes
  return write_cached(offset, bytes);
}

ssize_t uncached_writer::write_copied(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  const std::lock_guard lock(mutex_);
  std::memcpy(aligned_.get(), bytes.data(), bytes.size());
  return write_pages(offset, {aligned_.get(), bytes.size()});
}

ssize_t uncached_writer::write_some(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  const auto into_page = static_cast<std::size_t>(offset % page_size);
  if (into_page != 0) { return write_cached(offset, bytes.first(std::min(bytes.size(), page_size - into_page))); }
  if (bytes.size() < page_size) { return write_cached(offset, bytes); }
  const auto pages = bytes.first(whole_pages(bytes.size()));
  return begins_at_page(pages.data()) ? write_pages(offset, pages) : write_copied(offset, pages.first(std::min(pages.size(), most_copied)));
}

}  // namespace stepwell::io
