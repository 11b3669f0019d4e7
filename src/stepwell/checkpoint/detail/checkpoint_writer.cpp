// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/checkpoint_writer.hpp"

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/detail/name_index.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/format/checkpoint/detail/string_tensor.hpp"
#include "stepwell/format/checkpoint/detail/table.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// Collects entries in any order and writes them as a sorted table. Keys and encoded entries lie one behind another in large blocks.
class index_builder {
public:
  index_builder() = default;
  index_builder(const index_builder&) = delete;
  index_builder& operator=(const index_builder&) = delete;

  /// Returns true if there is an entry with this key.
  [[nodiscard]] bool contains(std::string_view key) const { return keys_.find(key).has_value(); }
  /// Adds an entry. @pre There is none with this key, and the key has less than 4 GiB.
  void add(std::string_view key, const format::bundle_entry& entry) { append(key, encode(entry)); }
  /// Returns the entry of a partitioned tensor, to which the caller adds slices. Creates an empty one if there is no entry with this key.
  /// Returns null if the tensor is not partitioned.
  [[nodiscard]] format::bundle_entry* partitioned(const std::string& key);

  /// Calls `sink` with the bytes of the complete index, in pieces.
  void write(const format::bundle_header& header, function_ref<void(std::span<const std::byte>)> sink);

private:
  struct item {
    const char* text = nullptr;  ///< The key, then the encoded entry.
    std::uint32_t key_size = 0;
    std::uint32_t value_size = 0;  ///< 0: the entry is in `partitioned_`.

    [[nodiscard]] std::string_view key() const noexcept { return {text, key_size}; }
    [[nodiscard]] std::string_view value() const noexcept { return {text + key_size, value_size}; }
  };
  struct key_of {
    const std::vector<item>* items;
    std::string_view operator()(std::uint32_t number) const noexcept { return (*items)[number].key(); }
  };

  void append(std::string_view key, std::string_view value);

  std::pmr::monotonic_buffer_resource text_;
  std::vector<item> items_;
  name_index<key_of> keys_{key_of{&items_}};
  std::size_t room_ = 0;  // keys for which `keys_` has memory
  std::map<std::string, format::bundle_entry> partitioned_;
};

namespace {

constexpr std::size_t piece_size = std::size_t{1} << 20;  // size in bytes from which a piece of the index is passed on

constexpr std::size_t write_size = std::size_t{4} << 20;        // bytes of one write; a write ends at a multiple, so it covers whole pages
constexpr std::size_t most_collected = std::size_t{256} << 10;  // bytes of small tensors that are written together

void check(std::string_view name, const tensor_view& view) {
  const auto size = static_cast<std::size_t>(element_count(view.shape)) * size_of(view.dtype);
  if (size_of(view.dtype) == 0 || size != view.bytes.size()) {
    throw invalid_argument_error(
        fmt::format("tensor \"{}\" of {} {} has {} bytes", name, to_string(view.dtype), to_string(view.shape), view.bytes.size()));
  }
}

void check_name(std::string_view name, const std::string& prefix) {
  if (name.empty() || format::is_slice_key(name)) {
    throw invalid_argument_error("the name of a tensor must not be empty or begin with a zero byte", prefix);
  }
}

}  // namespace

void index_builder::append(std::string_view key, std::string_view value) {
  auto* const text = static_cast<char*>(text_.allocate(key.size() + value.size(), 1));
  std::memcpy(text, key.data(), key.size());
  if (!value.empty()) { std::memcpy(text + key.size(), value.data(), value.size()); }
  if (items_.size() == room_) {  // `keys_` would grow more often, and would read all keys each time
    room_ = std::max<std::size_t>(4 * room_, 1024);
    keys_.reserve(room_);
  }
  items_.push_back({text, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())});
  keys_.add(static_cast<std::uint32_t>(items_.size() - 1));
}

format::bundle_entry* index_builder::partitioned(const std::string& key) {
  const auto known = partitioned_.find(key);
  if (known != partitioned_.end()) { return &known->second; }
  if (contains(key)) { return nullptr; }
  append(key, {});
  return &partitioned_[key];
}

void index_builder::write(const format::bundle_header& header, function_ref<void(std::span<const std::byte>)> sink) {
  const auto is_before = [](const item& a, const item& b) { return a.key() < b.key(); };
  if (!std::ranges::is_sorted(items_, is_before)) {
    keys_ = name_index<key_of>(key_of{&items_});  // the numbers change
    std::ranges::sort(items_, is_before);
  }
  format::table_writer table;
  const auto pass_on = [&](std::string_view bytes) {
    if (!bytes.empty()) { sink(std::as_bytes(std::span(bytes))); }
  };
  value_or_throw(table.add("", encode(header)));
  for (const auto& item : items_) {
    if (item.value_size != 0) {
      value_or_throw(table.add(item.key(), item.value()));
    } else if (const auto& entry = partitioned_.at(std::string(item.key())); !entry.slices.empty()) {
      value_or_throw(table.add(item.key(), encode(entry)));
    }
    if (table.ready_bytes() >= piece_size) { pass_on(table.take_ready()); }
  }
  pass_on(table.finish());
}

/// One data file. Small tensors are collected, because each append to a file is a system call.
struct checkpoint_writer::shard {
  explicit shard(io::atomic_file output) : file(std::move(output)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return file.size() + collected.size(); }

  /// Returns true if a piece of this size is written later, together with others.
  [[nodiscard]] static bool is_collected(std::size_t size) noexcept { return size < most_collected / 4; }
  /// Appends a piece of a tensor.
  void append(std::span<const std::byte> bytes) {
    if (is_collected(bytes.size())) { return collect(bytes); }
    flush();
    value_or_throw(file.append(bytes));
  }

  /// Appends zeros up to the start of a tensor of `size` bytes.
  void align(std::size_t size) {
    static constexpr std::array<std::byte, io::page_size> zeros{};
    collect(std::span(zeros).first(tensor_start(this->size(), size, 1) - this->size()));
  }

  void flush() {
    if (collected.empty()) { return; }
    trace_span span("write", "checkpoint");
    span.argument("bytes", collected.size());
    value_or_throw(file.append(collected));
    collected.clear();
  }

  io::atomic_file file;
  std::vector<std::byte> collected;  // the bytes behind those of the file

private:
  /// Flushes at multiples of the size, so that each write but the first covers whole pages.
  void collect(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto room = most_collected - static_cast<std::size_t>(size() % most_collected);
      const auto piece = bytes.first(std::min(room, bytes.size()));
      collected.insert(collected.end(), piece.begin(), piece.end());
      if (piece.size() == room) { flush(); }
      bytes = bytes.subspan(piece.size());
    }
  }
};

checkpoint_writer::checkpoint_writer(std::string prefix, std::shared_ptr<io::file_system> files, std::int32_t shards)
    : prefix_(std::move(prefix)), files_(files ? std::move(files) : io::posix_file_system()), index_(std::make_unique<index_builder>()) {
  if (shards < 1 || shards > max_shards) {
    throw invalid_argument_error(fmt::format("a checkpoint must have 1 to {} shards", max_shards), prefix_);
  }
  for (std::int32_t number = 0; number < shards; ++number) {
    shards_.emplace_back(value_or_throw(io::atomic_file::create(*files_, format::data_name(prefix_, number, shards))));
  }
}

checkpoint_writer::checkpoint_writer(checkpoint_writer&&) noexcept = default;
checkpoint_writer::~checkpoint_writer() = default;

format::bundle_entry checkpoint_writer::write(std::string_view name, std::span<const std::byte> bytes, dtype type,
                                              const tensor_shape& shape) {
  const auto least = std::ranges::min_element(shards_, {}, &shard::size);
  least->align(bytes.size());
  format::bundle_entry entry{.dtype = type,
                             .shape = shape,
                             .shard_id = static_cast<std::int32_t>(least - shards_.begin()),
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
    const auto block = bytes.first(std::min(write_size - least->size() % write_size, bytes.size()));
    traced("encode", block, [&] { crc = kernel::crc32c(block, crc); });
    if (shard::is_collected(block.size())) {
      least->append(block);
    } else {
      traced("write", block, [&] { least->append(block); });
    }
    bytes = bytes.subspan(block.size());
  }
  entry.crc32c = kernel::crc32c_mask(crc);
  return entry;
}

void checkpoint_writer::check_key(std::string_view key) const {
  if (index_->contains(key)) { throw invalid_argument_error("two tensors of the checkpoint have the same name", prefix_); }
}

void checkpoint_writer::add(std::string_view name, const tensor_view& view) {
  check(name, view);
  check_name(name, prefix_);
  check_key(name);
  index_->add(name, write(name, view.bytes, view.dtype, view.shape));
}

void checkpoint_writer::add_strings(std::string_view name, const tensor_shape& shape, std::span<const std::string> elements) {
  if (static_cast<std::size_t>(element_count(shape)) != elements.size()) {
    throw invalid_argument_error(fmt::format("tensor \"{}\" of {} has {} strings", name, to_string(shape), elements.size()));
  }
  check_name(name, prefix_);
  check_key(name);
  const auto encoded = format::encode_strings(elements);
  auto entry = write(name, std::as_bytes(std::span(encoded.bytes)), dtype::string, shape);
  entry.crc32c = encoded.crc32c;
  index_->add(name, entry);
}

void checkpoint_writer::add_slice(std::string_view name, const tensor_shape& whole, const format::tensor_slice& slice,
                                  const tensor_view& part) {
  check(name, part);
  if (part.shape == whole) { return add(name, part); }
  check_name(name, prefix_);
  auto* const entry = index_->partitioned(std::string(name));
  const bool fits = entry != nullptr && (entry->slices.empty() || (entry->dtype == part.dtype && entry->shape == whole));
  if (!fits) {
    throw invalid_argument_error(
        fmt::format("could not add a slice of \"{}\": its type or full shape differs, or the whole tensor was already added", name),
        prefix_);
  }
  const auto key = format::slice_key(name, slice);
  check_key(key);
  index_->add(key, write(name, part.bytes, part.dtype, part.shape));
  entry->dtype = part.dtype;
  entry->shape = whole;
  entry->slices.push_back(slice);
}

std::uint64_t checkpoint_writer::size_bytes() const noexcept {
  std::uint64_t size = index_bytes_;
  for (const auto& shard : shards_) { size += shard.size(); }
  return size;
}

void checkpoint_writer::publish_data() {
  const trace_span span("sync data", "checkpoint");
  for (auto& shard : shards_) {
    shard.flush();
    value_or_throw(shard.file.finish());
  }
  for (auto& shard : shards_) { value_or_throw(shard.file.rename_into_place()); }
  value_or_throw(files_->sync_directory(io::parent_directory(prefix_)));
}

void checkpoint_writer::publish_index() {
  const trace_span span("write index", "checkpoint");
  const format::bundle_header header{.num_shards = static_cast<std::int32_t>(shards_.size()),
                                     .is_big_endian = std::endian::native == std::endian::big,
                                     .bad_consumers = {}};
  auto file = value_or_throw(io::atomic_file::create(*files_, format::index_name(prefix_)));
  index_->write(header, [&](std::span<const std::byte> bytes) { value_or_throw(file.append(bytes)); });
  value_or_throw(file.finish());
  value_or_throw(file.rename_into_place());
  index_bytes_ = file.size();
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
  for (const auto& shard : shards_) {
    const auto removed = files_->remove(shard.file.final_path());  // the writer removes files that are not yet renamed
    if (!removed && removed.error().code != errc::not_found) { log_warning(removed.error().to_string()); }
  }
}

}  // namespace stepwell::detail
