// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/record.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cassert>

namespace stepwell::format {
namespace {

constexpr std::size_t length_size = 8;

std::uint32_t masked_crc(std::span<const std::byte> bytes) noexcept { return kernel::crc32c_mask(kernel::crc32c(bytes)); }

bool matches(std::span<const std::byte> bytes, const std::byte* stored) noexcept {
  return masked_crc(bytes) == load_little<std::uint32_t>(stored);
}

/// Returns the checksum of the eight bytes of a length, bit by bit, for the table below.
constexpr std::uint32_t crc_of_length(std::uint64_t length) noexcept {
  constexpr std::uint32_t polynomial = 0x82F63B78;
  std::uint32_t crc = ~std::uint32_t{0};
  for (int bit = 0; bit < 64; ++bit) {
    const bool is_odd = ((crc ^ static_cast<std::uint32_t>(length >> bit)) & 1) != 0;
    crc = (crc >> 1) ^ (is_odd ? polynomial : 0);
  }
  return ~crc;
}

constexpr auto short_lengths = [] {
  std::array<std::uint32_t, 256> made{};
  for (std::size_t length = 0; length < made.size(); ++length) { made[length] = kernel::crc32c_mask(crc_of_length(length)); }
  return made;
}();

/// Returns the masked checksum of the length `size`, which `stored` holds. The lengths of scalars are found in a table.
std::uint32_t masked_crc_of_length(std::size_t size, std::span<const std::byte> stored) noexcept {
  return size < short_lengths.size() ? short_lengths[size] : masked_crc(stored);
}

status cut_short(std::size_t have, std::uint64_t need) {
  return {errc::truncated, fmt::format("record is truncated: {} of {} bytes are present", have, need)};
}

status checksum_mismatch(std::string_view part) {
  return {errc::data_loss, fmt::format("checksum of the record's {} does not match", part)};
}

}  // namespace

void seal_record(std::span<std::byte> frame) noexcept {
  assert(frame.size() >= record_overhead);
  const auto data = record_data(frame);
  store_little(frame.data(), std::uint64_t{data.size()});
  store_little(frame.data() + length_size, masked_crc_of_length(data.size(), frame.first(length_size)));
  store_little(data.data() + data.size(), masked_crc(data));
}

void append_record(std::vector<std::byte>& out, std::span<const std::byte> data) {
  const auto at = out.size();
  out.resize(at + record_overhead + data.size());
  const auto frame = std::span(out).subspan(at);
  std::ranges::copy(data, record_data(frame).begin());
  seal_record(frame);
}

result<std::span<const std::byte>> read_record(std::span<const std::byte> bytes, std::uint64_t limit) {
  if (bytes.size() < record_header_size) { return cut_short(bytes.size(), record_header_size); }
  if (!matches(bytes.first(length_size), bytes.data() + length_size)) { return checksum_mismatch("length"); }
  const auto length = load_little<std::uint64_t>(bytes.data());
  if (length > limit) { return status(errc::data_loss, fmt::format("record of {} bytes is above the limit of {}", length, limit)); }
  if (bytes.size() - record_header_size < length || bytes.size() - record_header_size - length < record_footer_size) {
    return cut_short(bytes.size(), record_overhead + length);
  }
  const auto data = bytes.subspan(record_header_size, static_cast<std::size_t>(length));
  if (!matches(data, data.data() + data.size())) { return checksum_mismatch("data"); }
  return data;
}

void record_decoder::feed(std::span<const std::byte> bytes) {
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(consumed_));
  consumed_ = 0;
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
}

std::optional<std::uint64_t> record_decoder::next_length() const {
  const auto header = std::span<const std::byte>(pending_).subspan(consumed_);
  if (header.size() < record_header_size || !matches(header.first(length_size), header.data() + length_size)) { return std::nullopt; }
  return load_little<std::uint64_t>(header.data());
}

bool record_decoder::skip() {
  const auto length = next_length();
  if (!length || *length > limit_ || pending() < record_overhead || pending() - record_overhead < *length) { return false; }
  consumed_ += record_overhead + *length;
  position_ += record_overhead + *length;
  return true;
}

result<std::span<const std::byte>> record_decoder::next() {
  auto data = read_record(std::span<const std::byte>(pending_).subspan(consumed_), limit_);
  if (!data) {
    auto failure = std::move(data).error();
    failure.place = fmt::format("offset {}", position_);
    return failure;
  }
  consumed_ += record_overhead + data->size();
  position_ += record_overhead + data->size();
  return data;
}

}  // namespace stepwell::format
