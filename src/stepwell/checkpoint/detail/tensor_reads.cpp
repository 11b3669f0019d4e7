// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/tensor_reads.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/io/pool.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::size_t part_size = std::size_t{1} << 20;         // bytes of one part of the work
constexpr std::size_t block_size = std::size_t{256} << 10;      // bytes read at once; they are still in the cache for their checksum
constexpr std::size_t most_gap = 4096;                          // bytes between two small tensors that are read together
constexpr std::size_t parts_ahead = 16;                         // parts that the disk reads ahead
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
    large_.push_back({parts_.size(), 0});
    for (auto at = begin; at < end; at += part_size) {
      parts_.push_back({.first = i, .begin = at, .end = std::min(end, at + part_size), .large = large_.size() - 1});
      ++large_.back().parts;
    }
  }

  [[nodiscard]] io::file& file_of(const read_part& part) const {
    return *files_.shards[static_cast<std::size_t>(reads_[part.first].where.shard)];
  }

  void announce(std::size_t number) const noexcept {
    const auto& part = parts_[number];
    file_of(part).start_reading(part.begin, part.end - part.begin);
  }

  /// Runs parts until none is left, or until one has failed on any thread.
  void run_parts() noexcept {
    try {
      std::vector<std::byte> scratch;
      for (auto i = next_++; i < parts_.size(); i = next_++) {
        if (i + parts_ahead < parts_.size()) { announce(i + parts_ahead); }
        try {
          parts_[i].count != 0 ? run_small(parts_[i], scratch) : run_large(i);
        } catch (...) { fail(i); }
      }
    } catch (...) { fail(parts_.size()); }
  }

  /// Keeps the failure of the first part, and makes all threads stop.
  void fail(std::size_t number) noexcept {
    const std::lock_guard lock(mutex_);
    next_ = parts_.size();
    if (failure_ && failed_part_ <= number) { return; }
    failure_ = std::current_exception();
    failed_part_ = number;
  }

  void read_at(const read_part& part, const tensor_read& read, std::uint64_t offset, std::span<std::byte> into) const {
    auto& file = file_of(part);
    if (value_or_throw(file.read_at(offset, into)) != into.size()) {
      throw_damaged(read.where, file, read.entry->name, "its data file became shorter");
    }
  }

  void run_small(const read_part& part, std::vector<std::byte>& scratch) const {
    const auto size = static_cast<std::size_t>(part.end - part.begin);
    if (scratch.size() < size) { scratch.resize(part_size); }
    const bool is_hole = size != 0 && skip_hole(part);
    const auto& file = file_of(part);
    if (!is_hole) { read_at(part, reads_[part.first], part.begin, std::span(scratch).first(size)); }
    for (std::size_t i = part.first; i < part.first + part.count; ++i) {
      const auto& read = reads_[i];
      const auto count = static_cast<std::size_t>(read.where.size);
      if (is_hole) {
        check_sum(read.where, file, read.entry->name, kernel::crc32c_zeros(count));
        continue;
      }
      const auto bytes =
          std::span(scratch).subspan(static_cast<std::size_t>(static_cast<std::uint64_t>(read.where.offset) - part.begin), count);
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

  void run_large(std::size_t number) {
    const auto& part = parts_[number];
    const auto& read = reads_[part.first];
    const auto& file = file_of(part);
    const auto begin = static_cast<std::uint64_t>(read.where.offset);
    std::uint32_t crc = 0;
    for (auto at = part.begin; at < part.end; at += block_size) {
      const std::span block(read.into + (at - begin), static_cast<std::size_t>(std::min<std::uint64_t>(block_size, part.end - at)));
      read_at(part, read, at, block);
      crc = kernel::crc32c(block, crc);
      check_booleans(read.where, file, read.entry->name, read.entry->dtype, block);
      if (files_.is_swapped) { swap_numbers(block, read.entry->dtype); }
    }
    sums_[number] = crc;
    if (--left_[part.large] == 0) { check_large(part); }
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
  std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by the mutex while threads run
  std::size_t failed_part_ = 0;
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
