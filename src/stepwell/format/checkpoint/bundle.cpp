// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/bundle.hpp"

#include "stepwell/format/detail/parse_message.hpp"
#include "stepwell/format/proto/tensor_bundle.pb.h"

#include <fmt/format.h>
#include <algorithm>
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
  if (auto sound = check(entry); !sound) { return std::move(sound).error(); }
  return entry;
}

std::string index_name(std::string_view prefix) { return fmt::format("{}.index", prefix); }

std::string data_name(std::string_view prefix, std::int32_t shard, std::int32_t shards) {
  return fmt::format("{}.data-{:05}-of-{:05}", prefix, shard, shards);
}

}  // namespace stepwell::format
