// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/detail/event_stream.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <array>
#include <span>
#include <utility>

namespace stepwell::summary {
namespace {

constexpr std::size_t chunk_size = std::size_t{64} << 10;
constexpr std::uint64_t most_length = INT64_MAX;                // positions after such a record are still representable
constexpr std::uint64_t most_decoded = std::uint64_t{8} << 20;  // a decoded message can take several times as much memory

}  // namespace

event_stream::event_stream(io::file_system& files, const std::string& path, large_records large)
    : file_(value_or_throw(files.open(path, io::open_mode::read))), large_(large), decoder_(most_length), chunk_(chunk_size) {}

bool event_stream::read_more() {
  const auto count = value_or_throw(file_->read_at(read_, chunk_));
  decoder_.feed(std::span(chunk_).first(count));
  read_ += count;
  return count != 0;
}

/// Checks the checksum of a large record without storing it. Returns false if the record is incomplete.
bool event_stream::pass_over(std::uint64_t length) {
  const auto begin = decoder_.position();
  const auto data = begin + format::record_header_size;
  if (value_or_throw(file_->size()) < begin + format::record_overhead + length) { return false; }
  std::uint32_t crc = 0;
  const auto on_bytes = [&](std::span<const std::byte> bytes) -> result<void> {
    crc = kernel::crc32c(bytes, crc);
    return {};
  };
  const auto on_zeros = [&](std::uint64_t count) -> result<void> {
    crc = kernel::crc32c_zeros(count, crc);
    return {};
  };
  value_or_throw(io::scan_file(*file_, data, length, chunk_, {on_bytes, on_zeros}));
  std::array<std::byte, format::record_footer_size> footer{};
  static_cast<void>(value_or_throw(file_->read_at(data + length, footer)));
  const auto number = records_++;
  read_ = data + length + footer.size();
  decoder_ = format::record_decoder(most_length, read_);
  if (kernel::crc32c_mask(crc) != format::load_little<std::uint32_t>(footer.data())) {
    throw data_loss_error(fmt::format("record {} at byte {}: checksum of the record's data does not match", number, begin), path());
  }
  if (large_ == large_records::warned) {
    log_warning(fmt::format("{}: record {} at byte {} has {} bytes; its checksum is right, but it is too large to be shown", path(), number,
                            begin, length));
  }
  return true;
}

std::optional<format::event> event_stream::next(std::vector<format::scalar_event>* scalars) {
  if (scalars != nullptr) { scalars->clear(); }
  for (;;) {
    const auto begin = decoder_.position();
    const auto record = decoder_.next();
    if (!record && record.error().code == errc::truncated) {
      const auto length = decoder_.next_length();
      const bool is_passed_over = length && *length > most_decoded;
      if (is_passed_over ? !pass_over(*length) : !read_more()) { return std::nullopt; }
      continue;
    }
    if (record && scalars != nullptr && format::decode_scalars(*record, *scalars)) {
      ++records_;
      return format::event{scalars->front().wall_time, scalars->front().step, {}, {}};
    }
    auto happened = record ? format::decode_event(*record) : result<format::event>(record.error());
    const auto number = records_++;
    if (!happened) {
      is_lost_ = !record && !decoder_.skip();
      throw data_loss_error(fmt::format("record {} at byte {}: {}", number, begin, happened.error().message), path());
    }
    return std::move(happened).value();
  }
}

}  // namespace stepwell::summary
