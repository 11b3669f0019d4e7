// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/tensor_reads.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/platform.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/io/pool.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::size_t part_size = std::size_t{1} << 20;         // bytes of one part of the work
constexpr std::size_t block_size = std::size_t{256} << 10;      // bytes read at once; they are still in the cache for their checksum
constexpr std::size_t most_gap = 4096;                          // bytes between two small tensors that are read together
constexpr std::size_t parts_ahead = 16;                         // parts that the disk reads ahead
constexpr std::size_t huge_size = std::size_t{2} << 20;         // bytes of a part that is read past the cache
constexpr std::int64_t least_uncached = std::int64_t{1} << 20;  // bytes of a tensor from which it may be read past the cache
constexpr std::uint64_t least_shared = std::uint64_t{4} << 20;  // bytes from which other threads take part

/// One part of the work: several small tensors, or a piece of a large one.
struct read_part {
  std::size_t first = 0;    ///< Number of the first tensor.
  std::size_t count = 0;    ///< Number of small tensors; 0 for a piece of a large one.
  std::uint64_t begin = 0;  ///< Range in the data file.
  std::uint64_t end = 0;
  std::size_t large = 0;  ///< Number of the large tensor.
};

/// A tensor that is read in pieces.
struct large_tensor {
  std::size_t first_part = 0;
  std::size_t parts = 0;
  bool is_cached = true;  ///< Read through the cache of the system.
};

constexpr std::uint64_t page_of(std::uint64_t offset) noexcept { return offset / io::page_size * io::page_size; }
constexpr std::uint64_t next_page(std::uint64_t offset) noexcept { return page_of(offset + io::page_size - 1); }

/// The working memory of one thread, which is allocated when it is used.
class working_memory {
public:
  /// Returns memory for a part of small tensors.
  [[nodiscard]] std::span<std::byte> small() {
    if (!small_) { small_ = std::make_unique_for_overwrite<std::byte[]>(part_size); }
    return {small_.get(), part_size};
  }

  /// Returns memory for a part that is read past the cache: one huge page, if the system has one. The disk then writes to one range of
  /// memory instead of 512 small ones, which doubled the rate in a measurement.
  [[nodiscard]] std::span<std::byte> huge() {
    if (!huge_) {
      huge_.reset(static_cast<std::byte*>(std::aligned_alloc(huge_size, huge_size)));
      if (!huge_) { throw std::bad_alloc(); }
      platform::prefer_huge_pages({huge_.get(), huge_size});
    }
    return {huge_.get(), huge_size};
  }

private:
  std::unique_ptr<std::byte[]> small_;
  std::unique_ptr<std::byte[], void (*)(void*)> huge_ = {nullptr, &std::free};
};

class reading {
public:
  reading(std::vector<tensor_read> reads, const tensor_files& files) : reads_(std::move(reads)), files_(files) {
    const auto by_place = [](const tensor_read& read) { return std::pair(read.where.shard, read.where.offset); };
    if (!std::ranges::is_sorted(reads_, {}, by_place)) { std::ranges::sort(reads_, {}, by_place); }
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      static_cast<std::size_t>(reads_[i].where.size) < separate_read ? add_small(i) : add_large(i);
    }
    sums_.resize(parts_.size());
    left_ = std::make_unique<std::atomic<std::size_t>[]>(large_.size());
    for (std::size_t i = 0; i < large_.size(); ++i) { left_[i] = large_[i].parts; }
  }

  void run(io::pool* helpers) {
    for (std::size_t i = 0; i < std::min(parts_ahead, parts_.size()); ++i) { announce(i); }
    const auto work = [this] { run_parts(); };
    if (helpers != nullptr && bytes_ >= least_shared) {
      helpers->share(work);
    } else {
      work();
    }
    const mutex_lock lock(mutex_);
    if (failure_) { std::rethrow_exception(failure_); }
  }

private:
  void add_small(std::size_t i) {
    const auto& where = reads_[i].where;
    const auto begin = static_cast<std::uint64_t>(where.offset);
    const auto end = begin + static_cast<std::uint64_t>(where.size);
    bytes_ += end - begin;
    if (!parts_.empty() && parts_.back().count != 0 && reads_[parts_.back().first].where.shard == where.shard) {
      auto& last = parts_.back();
      if (end - last.begin <= part_size && begin <= last.end + most_gap) {
        ++last.count;
        last.end = std::max(last.end, end);
        return;
      }
    }
    parts_.push_back({.first = i, .count = 1, .begin = begin, .end = end});
  }

  void add_large(std::size_t i) {
    const auto& where = reads_[i].where;
    const auto begin = static_cast<std::uint64_t>(where.offset);
    const auto end = begin + static_cast<std::uint64_t>(where.size);
    bytes_ += end - begin;
    auto& file = *files_.shards[static_cast<std::size_t>(where.shard)];
    auto& large = large_.emplace_back(large_tensor{.first_part = parts_.size()});
    large.is_cached = where.size < least_uncached || file.is_cached(begin, end - begin);
    const auto step = large.is_cached ? part_size : huge_size;
    for (auto at = begin; at < end;) {
      const auto to = std::min(end, large.is_cached ? at + step : page_of(at) + step);  // so that the next part begins with a page
      parts_.push_back({.first = i, .begin = at, .end = to, .large = large_.size() - 1});
      ++large.parts;
      at = to;
    }
  }

  [[nodiscard]] bool is_cached(const read_part& part) const noexcept { return part.count != 0 || large_[part.large].is_cached; }

  [[nodiscard]] io::file& file_of(const read_part& part) const {
    return *files_.shards[static_cast<std::size_t>(reads_[part.first].where.shard)];
  }

  void announce(std::size_t number) const noexcept {
    const auto& part = parts_[number];
    if (!is_cached(part)) { return; }
    file_of(part).start_reading(part.begin, part.end - part.begin);
  }

  /// Runs parts until none is left, or until one has failed on any thread.
  void run_parts() noexcept {
    try {
      working_memory memory;
      for (auto i = next_++; i < parts_.size(); i = next_++) {
        if (i + parts_ahead < parts_.size()) { announce(i + parts_ahead); }
        try {
          parts_[i].count != 0 ? run_small(parts_[i], memory) : run_large(i, memory);
        } catch (...) { fail(i); }
      }
    } catch (...) { fail(parts_.size()); }
  }

  /// Keeps the failure of the first part, and makes all threads stop.
  void fail(std::size_t number) noexcept {
    const mutex_lock lock(mutex_);
    next_ = parts_.size();
    if (failure_ && failed_part_ <= number) { return; }
    failure_ = std::current_exception();
    failed_part_ = number;
  }

  void read_at(const read_part& part, const tensor_read& read, std::uint64_t offset, std::span<std::byte> into) const {
    if (value_or_throw(file_of(part).read_at(offset, into)) != into.size()) { throw_short(part, read); }
  }

  [[noreturn]] void throw_short(const read_part& part, const tensor_read& read) const {
    throw_damaged(read.where, file_of(part), read.entry->name, "its data file became shorter");
  }

  void run_small(const read_part& part, working_memory& memory) const {
    const auto size = static_cast<std::size_t>(part.end - part.begin);
    const auto scratch = memory.small();
    const bool is_hole = size != 0 && skip_hole(part);
    const auto& file = file_of(part);
    if (!is_hole) { read_at(part, reads_[part.first], part.begin, scratch.first(size)); }
    for (std::size_t i = part.first; i < part.first + part.count; ++i) {
      const auto& read = reads_[i];
      const auto count = static_cast<std::size_t>(read.where.size);
      if (is_hole) {
        check_sum(read.where, file, read.entry->name, kernel::crc32c_zeros(count));
        continue;
      }
      const auto bytes = scratch.subspan(static_cast<std::size_t>(static_cast<std::uint64_t>(read.where.offset) - part.begin), count);
      check_sum(read.where, file, read.entry->name, kernel::crc32c(bytes));
      check_booleans(read.where, file, read.entry->name, read.entry->dtype, bytes);
      if (read.into == nullptr || count == 0) { continue; }
      std::memcpy(read.into, bytes.data(), count);
      if (files_.is_swapped) { swap_numbers({read.into, count}, read.entry->dtype); }
    }
  }

  /// Returns true if the tensors of a part are only checked and lie in a hole of a sparse file.
  [[nodiscard]] bool skip_hole(const read_part& part) const {
    return reads_[part.first].into == nullptr && file_of(part).skip_hole(part.begin) >= part.end;
  }

  void run_large(std::size_t number, working_memory& memory) {
    const auto& part = parts_[number];
    const auto& read = reads_[part.first];
    const auto& file = file_of(part);
    const std::span into(read.into + (part.begin - static_cast<std::uint64_t>(read.where.offset)),
                         static_cast<std::size_t>(part.end - part.begin));
    const auto from_disk = is_cached(part) ? std::span<const std::byte>() : read_past_cache(part, memory);
    std::uint32_t crc = 0;
    for (std::size_t at = 0; at < into.size(); at += block_size) {
      const auto block = into.subspan(at, std::min(block_size, into.size() - at));
      if (is_cached(part)) {
        read_at(part, read, part.begin + at, block);
      } else {
        std::memcpy(block.data(), from_disk.data() + at, block.size());
      }
      crc = kernel::crc32c(block, crc);
      check_booleans(read.where, file, read.entry->name, read.entry->dtype, block);
      if (files_.is_swapped) { swap_numbers(block, read.entry->dtype); }
    }
    sums_[number] = crc;
    if (--left_[part.large] == 0) { check_large(part); }
  }

  /// Reads the pages of a part of a large tensor into `memory`. Returns the bytes of the part.
  std::span<const std::byte> read_past_cache(const read_part& part, working_memory& memory) const {
    const auto begin = page_of(part.begin);
    const auto pages = memory.huge().first(static_cast<std::size_t>(next_page(part.end) - begin));
    const auto count = value_or_throw(file_of(part).read_uncached(begin, pages));
    if (count < part.end - begin) { throw_short(part, reads_[part.first]); }
    return pages.subspan(static_cast<std::size_t>(part.begin - begin), static_cast<std::size_t>(part.end - part.begin));
  }

  void check_large(const read_part& part) const {
    const auto& large = large_[part.large];
    std::uint32_t crc = 0;
    for (auto i = large.first_part; i < large.first_part + large.parts; ++i) {
      crc = kernel::crc32c_combine(crc, sums_[i], parts_[i].end - parts_[i].begin);
    }
    check_sum(reads_[part.first].where, file_of(part), reads_[part.first].entry->name, crc);
  }

  std::vector<tensor_read> reads_;  // in the order of their bytes
  const tensor_files& files_;
  std::vector<read_part> parts_;
  std::vector<large_tensor> large_;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint32_t> sums_;                   // checksums of the pieces of large tensors
  std::unique_ptr<std::atomic<std::size_t>[]> left_;  // pieces of each large tensor that are not yet read
  std::atomic<std::size_t> next_ = 0;                 // the next part
  checked_mutex mutex_;
  std::exception_ptr failure_ STEPWELL_GUARDED_BY(mutex_);
  std::size_t failed_part_ STEPWELL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

void throw_damaged(const stored_place& where, const io::file& shard, std::string_view name, std::string_view what) {
  throw data_loss_error(fmt::format("tensor \"{}\": {} (bytes {} to {})", name, what, where.offset, where.offset + where.size),
                        shard.path());
}

void check_sum(const stored_place& where, const io::file& shard, std::string_view name, std::uint32_t crc) {
  if (kernel::crc32c_mask(crc) != where.crc32c) { throw_damaged(where, shard, name, "its checksum does not match"); }
}

void check_booleans(const stored_place& where, const io::file& shard, std::string_view name, dtype type, std::span<const std::byte> bytes) {
  if (type == dtype::boolean && std::ranges::any_of(bytes, [](std::byte value) { return value > std::byte{1}; })) {
    throw_damaged(where, shard, name, "a boolean is neither 0 nor 1");
  }
}

void swap_numbers(std::span<std::byte> bytes, dtype type) {
  const auto width = size_of(type) / (type == dtype::complex64 || type == dtype::complex128 ? 2 : 1);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) { std::ranges::reverse(bytes.subspan(at, width)); }
}

void read_tensors(std::vector<tensor_read> reads, const tensor_files& files, io::pool* helpers) {
  reading(std::move(reads), files).run(helpers);
}

}  // namespace stepwell::detail
