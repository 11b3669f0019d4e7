// SPDX-License-Identifier: Apache-2.0
//
// Private to `io`: writes that bypass the cache of the system (O_DIRECT). The system then neither copies the bytes nor allocates cache
// memory. It would do both without yielding the processor to other threads.
#pragma once

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

namespace stepwell::io {

/// A writer to a file whose descriptor another object owns. Complete pages bypass the cache. They are written directly if their memory is
/// page-aligned, and from a page-aligned copy otherwise. The bytes before the first and after the last complete page go through the cache.
/// All bytes go through the cache if the file system rejects uncached writes.
/// @threads All functions may be called from any thread. Writes that need a copy run one at a time.
class uncached_writer {
public:
  /// Returns a writer for the file of `cached`. Returns null if the system or the file system lacks uncached writes, or if memory is
  /// exhausted.
  /// @param cached A descriptor that is open for writing. It must stay open during the lifetime of the writer.
  [[nodiscard]] static std::unique_ptr<uncached_writer> open(int cached) noexcept;
  uncached_writer(const uncached_writer&) = delete;
  uncached_writer& operator=(const uncached_writer&) = delete;
  ~uncached_writer();

  /// Writes like pwrite. Returns the number of bytes written, which may be less than `bytes.size()`. Returns -1 and sets errno on failure.
  [[nodiscard]] ssize_t write_some(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

private:
  struct freed {
    void operator()(std::byte* memory) const noexcept;
  };
  using page_memory = std::unique_ptr<std::byte[], freed>;

  uncached_writer(int cached, int uncached, page_memory aligned) noexcept
      : cached_(cached), uncached_(uncached), aligned_(std::move(aligned)) {}

  [[nodiscard]] ssize_t write_cached(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept;
  [[nodiscard]] ssize_t write_pages(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] ssize_t write_copied(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

  int cached_;
  int uncached_;
  std::mutex mutex_;
  page_memory aligned_;
  std::atomic<bool> is_refused_ = false;
};

}  // namespace stepwell::io
