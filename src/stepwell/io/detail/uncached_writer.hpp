// SPDX-License-Identifier: Apache-2.0
//
// Private to `io`: bytes written past the cache of the system (O_DIRECT). The system neither copies them nor gathers
// memory for them, both of which it does without letting another thread have the processor.
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

/// Writes to a file that stays open elsewhere. Whole pages go past the cache, straight from memory that begins at a page,
/// else by a copy that does; what lies before the first page and after the last goes through the cache, and so does
/// everything where the file system refuses.
/// @threads Any; those that must be copied take turns.
class uncached_writer {
public:
  /// Nullptr where the system or the file system knows no such writes, or memory lacks.
  /// @param cached A descriptor open for writing, which must outlive this.
  [[nodiscard]] static std::unique_ptr<uncached_writer> open(int cached) noexcept;
  uncached_writer(const uncached_writer&) = delete;
  uncached_writer& operator=(const uncached_writer&) = delete;
  ~uncached_writer();

  /// As pwrite: the number of bytes written, perhaps fewer than asked for; -1 with errno.
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
