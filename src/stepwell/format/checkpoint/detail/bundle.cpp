// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/detail/bundle.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/detail/messages.hpp"
#include "stepwell/format/proto/tensor_bundle.pb.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace stepwell::format {
namespace {

namespace tf = ::tensorflow;
constexpr std::int32_t our_version = 1;

status damaged(std::string_view what) { return {errc::data_loss, std::string(what)}; }

/// Returns the size of the elements in bytes. Returns nullopt if the product of the dimensions above zero overflows, also if another
/// dimension is zero: a reader may multiply the other dimensions before it reaches the zero.
std::optional<std::int64_t> byte_count(dtype type, const tensor_shape& shape) {
  auto count = static_cast<std::int64_t>(std::max<std::size_t>(size_of(type), 1));
  for (const auto size : shape) {
    if (size > std::numeric_limits<std::int64_t>::max() / count) { return std::nullopt; }
    count *= std::max<std::int64_t>(size, 1);
  }
  return std::ranges::find(shape, 0) == shape.end() ? count : 0;
}

result<tensor_shape> decode(const tf::TensorShapeProto& message) {
  if (message.unknown_rank()) { return damaged("a stored tensor has no rank"); }
  tensor_shape shape;
  for (const auto& dim : message.dim()) {
    if (dim.size() < 0) { return damaged("a stored tensor has a negative dimension"); }
    shape.push_back(dim.size());
  }
  return shape;
}

tensor_slice decode(const tf::TensorSliceProto& message) {
  tensor_slice slice;
  for (const auto& extent : message.extent()) {
    const bool has_length = extent.has_length_case() == tf::TensorSliceProto::Extent::kLength;
    slice.push_back({extent.start(), has_length ? extent.length() : slice_extent::whole});
  }
  return slice;
}

void encode(const tensor_slice& slice, tf::TensorSliceProto& message) {
  for (const auto& extent : slice) {
    auto& added = *message.add_extent();
    added.set_start(extent.start);
    if (extent.length != slice_extent::whole) { added.set_length(extent.length); }
  }
}

bool fits(const tensor_slice& slice, const tensor_shape& shape) {
  return std::ranges::equal(slice, shape, [](const slice_extent& extent, std::int64_t size) {
    if (extent.length == slice_extent::whole) { return extent.start == 0; }
    return extent.start >= 0 && extent.length >= 0 && extent.start <= size && extent.length <= size - extent.start;
  });
}

result<void> check(const bundle_entry& entry) {
  if (entry.shard_id < 0 || entry.offset < 0 || entry.size < 0) { return damaged("an entry has a negative shard number, offset or size"); }
  if (entry.offset > std::numeric_limits<std::int64_t>::max() - entry.size) {
    return damaged("the offset and size of an entry are too large");
  }
  const auto bytes = byte_count(entry.dtype, entry.shape);
  if (!bytes) { return damaged("the number of elements of a shape is too large"); }
  if (!entry.slices.empty()) {
    const bool all_fit = std::ranges::all_of(entry.slices, [&](const auto& slice) { return fits(slice, entry.shape); });
    return all_fit ? result<void>() : damaged("a slice lies outside its tensor");
  }
  if (size_of(entry.dtype) != 0 && entry.size != *bytes) {
    return damaged(fmt::format("an entry has {} bytes, but its type and shape need {}", entry.size, *bytes));
  }
  return {};
}

// The encoded forms of most entries: those of tensors that are not partitioned. Protobuf takes several times as long for them, which is
// noticeable if a checkpoint has a million tensors. A tag is the number of a field and its type.

constexpr char dtype_tag = 0x08;
constexpr char shape_tag = 0x12;
constexpr char dim_tag = 0x12;       // in a shape
constexpr char dim_size_tag = 0x08;  // in a dimension
constexpr char shard_tag = 0x18;
constexpr char offset_tag = 0x20;
constexpr char size_tag = 0x28;
constexpr char crc32c_tag = 0x35;
constexpr std::size_t most_plain = 256;  // size in bytes of the largest entry that `decode_plain` decodes

/// Appends a field. A number that is zero is not stored.
void append_number(std::string& out, char tag, std::int64_t value) {
  if (value == 0) { return; }
  out.push_back(tag);
  append_varint(out, static_cast<std::uint64_t>(value));
}

/// Returns an entry as a serialized message. @pre It is not partitioned.
std::string encode_plain(const bundle_entry& entry) {
  std::string dims;
  dims.reserve(entry.shape.size() * 12);
  for (const auto size : entry.shape) {
    dims.append({dim_tag, '\0'});
    const auto begin = dims.size();
    append_number(dims, dim_size_tag, size);
    dims[begin - 1] = static_cast<char>(dims.size() - begin);  // at most 11
  }
  std::string out;
  out.reserve(48 + dims.size());
  append_number(out, dtype_tag, static_cast<std::int32_t>(entry.dtype));
  out.push_back(shape_tag);
  append_varint(out, dims.size());
  out.append(dims);
  append_number(out, shard_tag, entry.shard_id);
  append_number(out, offset_tag, entry.offset);
  append_number(out, size_tag, entry.size);
  if (entry.crc32c != 0) {
    out.push_back(crc32c_tag);
    append_fixed(out, entry.crc32c);
  }
  return out;
}

bool take_tag(std::string_view& in, char tag) {
  if (!in.starts_with(tag)) { return false; }
  in.remove_prefix(1);
  return true;
}

/// Removes a field and stores its number, if the next field has this tag. Returns false if the number is invalid or negative.
template<class Number>
bool take_number(std::string_view& in, char tag, Number& into) {
  if (!take_tag(in, tag)) { return true; }
  const auto value = take_varint(in);
  if (!value || *value > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) { return false; }
  into = static_cast<Number>(*value);
  return true;
}

/// Removes a length and as many bytes, and returns these bytes.
std::optional<std::string_view> take_sized(std::string_view& in) {
  const auto size = take_varint(in);
  if (!size || *size > in.size()) { return std::nullopt; }
  const auto sized = in.substr(0, static_cast<std::size_t>(*size));
  in.remove_prefix(sized.size());
  return sized;
}

/// Returns the entry in a serialized message whose fields are in ascending order, as TensorFlow and stepwell write them. Returns nullopt
/// for other messages, for partitioned tensors, and for entries of more than `most_plain` bytes.
std::optional<bundle_entry> decode_plain(std::string_view bytes) {
  if (bytes.size() > most_plain) { return std::nullopt; }
  bundle_entry entry;
  std::int32_t type = 0;
  if (!take_number(bytes, dtype_tag, type)) { return std::nullopt; }
  entry.dtype = static_cast<dtype>(type);
  if (take_tag(bytes, shape_tag)) {
    auto shape = take_sized(bytes);
    if (!shape) { return std::nullopt; }
    while (!shape->empty()) {
      auto dim = take_tag(*shape, dim_tag) ? take_sized(*shape) : std::nullopt;
      std::int64_t size = 0;
      if (!dim || !take_number(*dim, dim_size_tag, size) || !dim->empty()) { return std::nullopt; }
      entry.shape.push_back(size);
    }
  }
  const bool has_place = take_number(bytes, shard_tag, entry.shard_id) && take_number(bytes, offset_tag, entry.offset) &&
                         take_number(bytes, size_tag, entry.size);
  if (!has_place) { return std::nullopt; }
  if (take_tag(bytes, crc32c_tag)) {
    if (bytes.size() < sizeof entry.crc32c) { return std::nullopt; }
    entry.crc32c = read_fixed<std::uint32_t>(bytes);
    bytes.remove_prefix(sizeof entry.crc32c);
  }
  return bytes.empty() ? std::optional(std::move(entry)) : std::nullopt;
}

/// Returns the entry in any serialized message.
result<bundle_entry> decode_message(std::string_view bytes) {
  tf::BundleEntryProto message;
  if (!parse_message(message, std::as_bytes(std::span(bytes)))) { return damaged("an entry does not parse"); }
  auto shape = decode(message.shape());
  if (!shape) { return std::move(shape).error(); }
  bundle_entry entry{.dtype = static_cast<dtype>(message.dtype()),
                     .shape = std::move(*shape),
                     .shard_id = message.shard_id(),
                     .offset = message.offset(),
                     .size = message.size(),
                     .crc32c = message.crc32c(),
                     .slices = {}};
  for (const auto& slice : message.slices()) { entry.slices.push_back(decode(slice)); }
  return entry;
}

}  // namespace

std::string encode(const bundle_header& header) {
  tf::BundleHeaderProto message;
  message.set_num_shards(header.num_shards);
  message.set_endianness(header.is_big_endian ? tf::BundleHeaderProto::BIG : tf::BundleHeaderProto::LITTLE);
  auto& version = *message.mutable_version();
  version.set_producer(header.producer);
  version.set_min_consumer(header.min_consumer);
  for (const auto consumer : header.bad_consumers) { version.add_bad_consumers(consumer); }
  return message.SerializeAsString();
}

std::string encode(const bundle_entry& entry) {
  if (entry.slices.empty()) { return encode_plain(entry); }
  tf::BundleEntryProto message;
  message.set_dtype(static_cast<tf::DataType>(entry.dtype));
  auto& shape = *message.mutable_shape();
  for (const auto size : entry.shape) { shape.add_dim()->set_size(size); }
  message.set_shard_id(entry.shard_id);
  message.set_offset(entry.offset);
  message.set_size(entry.size);
  message.set_crc32c(entry.crc32c);
  for (const auto& slice : entry.slices) { encode(slice, *message.add_slices()); }
  return message.SerializeAsString();
}

result<bundle_header> decode_bundle_header(std::string_view bytes) {
  tf::BundleHeaderProto message;
  if (!parse_message(message, std::as_bytes(std::span(bytes)))) { return damaged("the header does not parse"); }
  const auto& version = message.version();
  bundle_header header{.num_shards = message.num_shards(),
                       .is_big_endian = message.endianness() == tf::BundleHeaderProto::BIG,
                       .producer = version.producer(),
                       .min_consumer = version.min_consumer(),
                       .bad_consumers = {version.bad_consumers().begin(), version.bad_consumers().end()}};
  if (message.endianness() != tf::BundleHeaderProto::BIG && message.endianness() != tf::BundleHeaderProto::LITTLE) {
    return damaged("the header has an unknown byte order");
  }
  if (header.num_shards < 1 || header.producer < 0) { return damaged("the header has an invalid number of shards or an invalid version"); }
  if (header.min_consumer > our_version || std::ranges::find(header.bad_consumers, our_version) != header.bad_consumers.end()) {
    return status(errc::unimplemented, "the checkpoint requires a newer reader than this one");
  }
  return header;
}

result<bundle_entry> decode_bundle_entry(std::string_view bytes) {
  auto plain = decode_plain(bytes);
  auto decoded = plain ? result<bundle_entry>(std::move(*plain)) : decode_message(bytes);
  if (!decoded) { return decoded; }
  if (auto sound = check(*decoded); !sound) { return std::move(sound).error(); }
  return decoded;
}

// --- Slice keys are an ordered code: the encoded bytes sort in the same order as the encoded values. ---

namespace {

void append_big_endian(std::string& out, std::uint64_t value, std::size_t bytes) {
  while (bytes-- > 0) { out.push_back(bytes < 8 ? static_cast<char>(value >> (8 * bytes)) : '\0'); }
}

void append_unsigned(std::string& out, std::uint64_t value) {
  const auto bytes = static_cast<std::size_t>((std::bit_width(value) + 7) / 8);
  out.push_back(static_cast<char>(bytes));
  append_big_endian(out, value, bytes);
}

void append_text(std::string& out, std::string_view text) {
  for (const char byte : text) {
    out.push_back(byte);
    if (byte == '\0') { out.push_back('\xFF'); }
    if (byte == '\xFF') { out.push_back('\0'); }
  }
  out.append({'\0', '\x01'});
}

/// Returns the number of bytes for a signed number. `magnitude` is the number itself, or its complement if it is negative. Each byte holds
/// 7 bits of the number, and one bit in total is the sign.
std::size_t signed_bytes(std::uint64_t magnitude) { return static_cast<std::size_t>(std::bit_width(magnitude)) / 7 + 1; }

void append_signed(std::string& out, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  const auto bytes = signed_bytes(bits);
  std::string code;
  append_big_endian(code, bits, bytes);
  for (std::size_t bit = 0; bit < bytes; ++bit) {  // the number of leading ones is the number of bytes
    code[bit / 8] = static_cast<char>(code[bit / 8] | 0x80 >> (bit % 8));
  }
  for (char& byte : code) { out.push_back(value < 0 ? static_cast<char>(~byte) : byte); }
}

}  // namespace

std::string slice_key(std::string_view name, const tensor_slice& slice) {
  std::string key;
  append_unsigned(key, 0);
  append_text(key, name);
  append_unsigned(key, slice.size());
  for (const auto& extent : slice) {
    append_signed(key, extent.start);
    append_signed(key, extent.length);
  }
  return key;
}

std::string index_name(std::string_view prefix) { return fmt::format("{}{}", prefix, index_suffix); }

std::string data_name(std::string_view prefix, std::int32_t shard, std::int32_t shards) {
  return fmt::format("{}.data-{:05}-of-{:05}", prefix, shard, shards);
}

}  // namespace stepwell::format
