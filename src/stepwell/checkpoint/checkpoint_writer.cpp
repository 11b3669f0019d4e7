// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/checkpoint_writer.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/format/checkpoint/detail/string_tensor.hpp"
#include "stepwell/format/checkpoint/table.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace stepwell {
namespace {

constexpr std::size_t block_size = std::size_t{4} << 20;  // bytes of one write; a write ends at a multiple, so it covers whole pages
constexpr std::int32_t max_shards = 99'999;               // five digits in the file name

void check(const std::string& name, const tensor_view& view) {
  const auto size = static_cast<std::size_t>(element_count(view.shape)) * size_of(view.dtype);
  if (size_of(view.dtype) == 0 || size != view.bytes.size()) {
    throw invalid_argument_error(
        fmt::format("tensor \"{}\" of {} {} has {} bytes", name, to_string(view.dtype), to_string(view.shape), view.bytes.size()));
  }
}

/// Appends zeros to `file` up to the start of a tensor of `size` bytes.
void align(io::atomic_file& file, std::size_t size) {
  static constexpr std::array<std::byte, io::page_size> zeros{};
  const auto gap = detail::tensor_start(file.size(), size, 1) - file.size();
  if (gap != 0) { value_or_throw(file.append(std::span(zeros).first(gap))); }
}

}  // namespace

checkpoint_writer::checkpoint_writer(std::string prefix, std::shared_ptr<io::file_system> files, std::int32_t shards)
    : prefix_(std::move(prefix)), files_(files ? std::move(files) : io::posix_file_system()) {
  if (shards < 1 || shards > max_shards) { throw invalid_argument_error("a checkpoint must have 1 to 99999 shards", prefix_); }
  for (std::int32_t shard = 0; shard < shards; ++shard) {
    data_.push_back(value_or_throw(io::atomic_file::create(*files_, format::data_name(prefix_, shard, shards))));
  }
}

format::bundle_entry checkpoint_writer::write(const std::string& name, std::span<const std::byte> bytes, dtype type,
                                              const tensor_shape& shape) {
  if (name.empty() || format::is_slice_key(name)) {
    throw invalid_argument_error("the name of a tensor must not be empty or begin with a zero byte", prefix_);
  }
  const auto least = std::ranges::min_element(data_, {}, &io::atomic_file::size);
  align(*least, bytes.size());
  format::bundle_entry entry{.dtype = type,
                             .shape = shape,
                             .shard_id = static_cast<std::int32_t>(least - data_.begin()),
                             .offset = static_cast<std::int64_t>(least->size()),
                             .size = static_cast<std::int64_t>(bytes.size()),
                             .slices = {}};
  const auto traced = [&](std::string_view what, std::span<const std::byte> block, const auto& act) {
    trace_span span(what, "checkpoint");
    span.argument("tensor", name);
    span.argument("bytes", block.size());
    act();
  };
  std::uint32_t crc = 0;
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(block_size - least->size() % block_size, bytes.size()));
    traced("encode", block, [&] { crc = kernel::crc32c(block, crc); });
    traced("write", block, [&] { value_or_throw(least->append(block)); });
    bytes = bytes.subspan(block.size());
  }
  entry.crc32c = kernel::crc32c_mask(crc);
  return entry;
}

void checkpoint_writer::insert(std::string key, format::bundle_entry entry) {
  if (!entries_.emplace(std::move(key), std::move(entry)).second) {
    throw invalid_argument_error("two tensors of the checkpoint have the same name", prefix_);
  }
}

void checkpoint_writer::add(const std::string& name, const tensor_view& view) {
  check(name, view);
  insert(name, write(name, view.bytes, view.dtype, view.shape));
}

void checkpoint_writer::add_strings(const std::string& name, const tensor_shape& shape, std::span<const std::string> elements) {
  if (static_cast<std::size_t>(element_count(shape)) != elements.size()) {
    throw invalid_argument_error(fmt::format("tensor \"{}\" of {} has {} strings", name, to_string(shape), elements.size()));
  }
  const auto encoded = format::encode_strings(elements);
  auto entry = write(name, std::as_bytes(std::span(encoded.bytes)), dtype::string, shape);
  entry.crc32c = encoded.crc32c;
  insert(name, std::move(entry));
}

void checkpoint_writer::add_slice(const std::string& name, const tensor_shape& whole, const format::tensor_slice& slice,
                                  const tensor_view& part) {
  check(name, part);
  if (part.shape == whole) { return add(name, part); }
  const auto [at, is_new] = entries_.try_emplace(name);
  auto& entry = at->second;
  if (!is_new && (entry.slices.empty() || entry.dtype != part.dtype || entry.shape != whole)) {
    throw invalid_argument_error(
        fmt::format("could not add a slice of \"{}\": its type or full shape differs, or the whole tensor was already added", name),
        prefix_);
  }
  entry.dtype = part.dtype;
  entry.shape = whole;
  entry.slices.push_back(slice);
  insert(format::slice_key(name, slice), write(name, part.bytes, part.dtype, part.shape));
}

std::uint64_t checkpoint_writer::size_bytes() const noexcept {
  std::uint64_t size = 0;
  for (const auto& file : data_) { size += file.size(); }
  return size;
}

void checkpoint_writer::publish_data() {
  const trace_span span("sync data", "checkpoint");
  for (auto& file : data_) { value_or_throw(file.finish()); }
  for (auto& file : data_) { value_or_throw(file.rename_into_place()); }
  value_or_throw(files_->sync_directory(io::parent_directory(prefix_)));
}

void checkpoint_writer::publish_index() {
  const trace_span span("write index", "checkpoint");
  format::table_writer table;
  const format::bundle_header header{
      .num_shards = static_cast<std::int32_t>(data_.size()), .is_big_endian = std::endian::native == std::endian::big, .bad_consumers = {}};
  value_or_throw(table.add("", encode(header)));
  for (const auto& [key, entry] : entries_) { value_or_throw(table.add(key, encode(entry))); }
  const auto bytes = table.finish();
  auto file = value_or_throw(io::atomic_file::create(*files_, format::index_name(prefix_)));
  value_or_throw(file.append(std::as_bytes(std::span(bytes))));
  value_or_throw(file.finish());
  value_or_throw(file.rename_into_place());
}

void checkpoint_writer::commit(const std::function<void()>& before_index) {
  try {
    publish_data();
    if (before_index) { before_index(); }
    publish_index();
  } catch (...) {
    remove_data();
    throw;
  }
  value_or_throw(files_->sync_directory(io::parent_directory(prefix_)));
}

void checkpoint_writer::remove_data() noexcept {
  for (const auto& file : data_) {
    const auto removed = files_->remove(file.final_path());  // the writer removes files that are not yet renamed
    if (!removed && removed.error().code != errc::not_found) { log_warning(removed.error().to_string()); }
  }
}

}  // namespace stepwell
