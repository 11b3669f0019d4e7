// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/detail/scalar_event.hpp"

#include "stepwell/format/detail/little_endian.hpp"

#include <bit>
#include <cassert>
#include <cstring>

namespace stepwell::format {
namespace {

// The bytes before the four bytes of the number, in a tensor of dtype float and rank 0 (fields 1, 2 and 4).
constexpr char tensor_before[] = {0x42, 10, 0x08, 0x01, 0x12, 0x00, 0x22, 0x04};
// The metadata after the tensor (field 9): plugin_data (1) with a plugin_name (1).
constexpr char metadata[] = {0x4a, 11, 0x0a, 9, 0x0a, 7, 's', 'c', 'a', 'l', 'a', 'r', 's'};

constexpr std::byte wall_time_tag{0x09};     // field 1, 64 bits
constexpr std::byte step_tag{0x10};          // field 2, varint
constexpr std::byte summary_tag{0x2a};       // field 5, bytes
constexpr std::byte value_tag{0x0a};         // field 1, bytes
constexpr std::byte tag_tag{0x0a};           // field 1, bytes
constexpr std::byte simple_value_tag{0x15};  // field 2, 32 bits

constexpr std::size_t varint_size(std::uint64_t value) noexcept { return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7; }

// Returns the size of a length-delimited field with its tag and its length. Empty messages are written, too; empty strings are omitted.
constexpr std::size_t field_size(std::size_t size) noexcept { return 1 + varint_size(size) + size; }

bool is_written(double value) noexcept { return std::bit_cast<std::uint64_t>(value) != 0; }

// An output that writes consecutive items.
class pen {
public:
  explicit pen(std::byte* at) noexcept : at_(at) {}

  [[nodiscard]] const std::byte* at() const noexcept { return at_; }
  void byte(std::byte value) noexcept { *at_++ = value; }
  void varint(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) { byte(static_cast<std::byte>(value | 0x80)); }
    byte(static_cast<std::byte>(value));
  }
  template<class T>
  void fixed(T value) noexcept {
    store_little(at_, value);
    at_ += sizeof value;
  }
  void raw(const void* bytes, std::size_t size) noexcept {
    if (size != 0) { std::memcpy(at_, bytes, size); }
    at_ += size;
  }

private:
  std::byte* at_;
};

std::size_t value_size_of(const scalar_event& happened, summary_style style, bool with_metadata) noexcept {
  const auto tag = happened.tag.empty() ? 0 : field_size(happened.tag.size());
  if (style == summary_style::simple) { return tag + 1 + sizeof(float); }
  return tag + sizeof tensor_before + sizeof(float) + (with_metadata ? sizeof metadata : 0);
}

}  // namespace

scalar_encoder::scalar_encoder(const scalar_event& happened, summary_style style, bool with_metadata) noexcept
    : event_(happened), style_(style), with_metadata_(with_metadata), value_size_(value_size_of(happened, style, with_metadata)),
      summary_size_(field_size(value_size_)), size_(field_size(summary_size_)) {
  if (is_written(happened.wall_time)) { size_ += 1 + sizeof(double); }
  if (happened.step != 0) { size_ += 1 + varint_size(static_cast<std::uint64_t>(happened.step)); }
}

void scalar_encoder::write(std::span<std::byte> out) const noexcept {
  assert(out.size() == size_);
  pen to(out.data());
  if (is_written(event_.wall_time)) {
    to.byte(wall_time_tag);
    to.fixed(std::bit_cast<std::uint64_t>(event_.wall_time));
  }
  if (event_.step != 0) {
    to.byte(step_tag);
    to.varint(static_cast<std::uint64_t>(event_.step));
  }
  to.byte(summary_tag);
  to.varint(summary_size_);
  to.byte(value_tag);
  to.varint(value_size_);
  if (!event_.tag.empty()) {
    to.byte(tag_tag);
    to.varint(event_.tag.size());
    to.raw(event_.tag.data(), event_.tag.size());
  }
  const auto number = std::bit_cast<std::uint32_t>(event_.value);
  if (style_ == summary_style::simple) {
    to.byte(simple_value_tag);
    to.fixed(number);
  } else {
    to.raw(tensor_before, sizeof tensor_before);
    to.fixed(number);
    if (with_metadata_) { to.raw(metadata, sizeof metadata); }
  }
  assert(to.at() == out.data() + out.size());
}

}  // namespace stepwell::format
