// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/detail/table.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <snappy.h>
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace stepwell::format {
namespace {

constexpr std::uint64_t table_magic = 0xDB4775248B80FB57;
constexpr std::size_t handles_size = 40;  // size of the handles in the footer, which the magic number follows
constexpr std::size_t footer_size = handles_size + sizeof table_magic;

// --- Writing ---

constexpr std::size_t own_block_size = 524'288;  // an entry of at least this size begins a new block

std::size_t common_prefix(std::string_view a, std::string_view b) noexcept {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Returns a short key with `last` <= key < `next`.
std::string separator(std::string last, std::string_view next) {
  const auto shared = common_prefix(last, next);
  if (shared == last.size() || shared == next.size()) { return last; }
  const auto byte = static_cast<unsigned char>(last[shared]);
  if (byte < 0xFF && byte + 1 < static_cast<unsigned char>(next[shared])) {
    last.resize(shared + 1);
    ++last[shared];
  }
  return last;
}

/// Returns a short key >= `last`.
std::string successor(std::string last) {
  const auto at = last.find_first_not_of('\xFF');
  if (at != std::string::npos) {
    last.resize(at + 1);
    ++last[at];
  }
  return last;
}

}  // namespace

void table_writer::block_builder::add(std::string_view key, std::string_view value) {
  std::size_t shared = 0;
  if (since_restart_ == restart_interval_) {
    restarts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    since_restart_ = 0;
  } else {
    shared = common_prefix(last_key_, key);
  }
  append_varint(bytes_, shared);
  append_varint(bytes_, key.size() - shared);
  append_varint(bytes_, value.size());
  bytes_.append(key.substr(shared)).append(value);
  last_key_ = key;
  ++since_restart_;
}

std::string table_writer::block_builder::finish() {
  for (const auto restart : restarts_) { append_fixed(bytes_, restart); }
  append_fixed(bytes_, static_cast<std::uint32_t>(restarts_.size()));
  restarts_ = {0};
  since_restart_ = 0;
  last_key_.clear();
  return std::exchange(bytes_, {});
}

table_writer::table_writer(table_options options)
    : options_(options), data_(std::max<std::size_t>(options.restart_interval, 1)), index_(1) {}

result<void> table_writer::add(std::string_view key, std::string_view value) {
  if (last_key_ && key <= *last_key_) {
    return status(errc::invalid_argument, "the keys of a table must be unique and in ascending order", std::string(key));
  }
  if (key.size() + value.size() >= own_block_size) { flush_block(); }
  if (!unindexed_block_.empty()) { index_.add(separator(*last_key_, key), std::exchange(unindexed_block_, {})); }
  data_.add(key, value);
  last_key_ = key;
  if (data_.size_estimate() >= options_.block_size) { flush_block(); }
  return {};
}

void table_writer::flush_block() {
  if (!data_.empty()) { unindexed_block_ = append_block(data_.finish()); }
}

std::string table_writer::append_block(std::string contents) {
  std::string handle;
  append_varint(handle, taken_ + ready_.size());
  append_varint(handle, contents.size());
  contents.push_back('\0');  // not compressed; the checksum covers this byte
  const auto crc = kernel::crc32c(std::as_bytes(std::span(contents)));
  ready_.append(contents);
  append_fixed(ready_, kernel::crc32c_mask(crc));
  return handle;
}

std::string table_writer::take_ready() {
  taken_ += ready_.size();
  return std::exchange(ready_, {});
}

std::string table_writer::finish() {
  flush_block();
  auto footer = append_block(block_builder(1).finish());  // the metaindex block
  if (!unindexed_block_.empty()) { index_.add(successor(*last_key_), std::exchange(unindexed_block_, {})); }
  footer += append_block(index_.finish());
  footer.resize(handles_size);
  append_fixed(footer, table_magic);
  return std::exchange(ready_, {}).append(footer);
}

// --- Reading ---

namespace {

constexpr std::size_t trailer_size = 5;
constexpr std::size_t snappy_max_ratio = 32;  // upper bound: an element of two or three bytes expands to at most 64 bytes

status damaged(std::string_view what, std::uint64_t offset) { return {errc::data_loss, fmt::format("{} at offset {}", what, offset)}; }

struct handle {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

std::optional<handle> take_handle(std::string_view& in) {
  const auto offset = take_varint(in);
  const auto size = offset ? take_varint(in) : std::nullopt;
  return size ? std::optional(handle{*offset, *size}) : std::nullopt;
}

// Decompresses a block into `expanded`.
result<std::string_view> expand(std::string_view stored, std::uint64_t offset, std::size_t max_bytes, std::string& expanded) {
  std::size_t size = 0;
  if (!snappy::GetUncompressedLength(stored.data(), stored.size(), &size) || size / snappy_max_ratio > stored.size()) {
    return damaged("a compressed block has an impossible uncompressed size", offset);
  }
  if (size > max_bytes) { return status(errc::resource_exhausted, "the table exceeds the memory limit"); }
  expanded.resize(size);
  if (!snappy::RawUncompress(stored.data(), stored.size(), expanded.data())) { return damaged("a block cannot be decompressed", offset); }
  return expanded;
}

// Returns the contents of a block: a view of the file, or of the decompressed bytes in `expanded`.
result<std::string_view> read_block(std::string_view file, handle where, std::size_t max_bytes, std::string& expanded) {
  const auto limit = file.size() - footer_size;
  if (where.offset > limit || where.size > limit - where.offset || limit - where.offset - where.size < trailer_size) {
    return damaged("a block lies outside the table", where.offset);
  }
  const auto covered = file.substr(where.offset, where.size + 1);
  const auto stored_crc = read_fixed<std::uint32_t>(file.substr(where.offset + where.size + 1));
  if (kernel::crc32c_mask(kernel::crc32c(std::as_bytes(std::span(covered)))) != stored_crc) {
    return damaged("the checksum does not match the block", where.offset);
  }
  const auto stored = covered.substr(0, where.size);
  switch (covered.back()) {
    case 0: return stored;
    case 1: return expand(stored, where.offset, max_bytes, expanded);
    default: return status(errc::unimplemented, "a block has an unknown compression type");
  }
}

// Calls `use` with the key and the value of each entry of a block. Uses only the number of restart offsets, because the offsets are for
// random access.
template<class Use>
result<void> visit_block(std::string_view file, handle where, std::size_t max_bytes, Use use) {
  std::string expanded;
  const auto contents = read_block(file, where, max_bytes, expanded);
  if (!contents) { return contents.error(); }
  if (contents->size() < 8) { return damaged("a block is too short", where.offset); }
  const std::uint64_t restarts = read_fixed<std::uint32_t>(contents->substr(contents->size() - 4));
  if (restarts == 0 || restarts > contents->size() / 4 - 1) {
    return damaged("a block has no restart points, or more than fit into it", where.offset);
  }
  auto rest = contents->substr(0, contents->size() - 4 * (restarts + 1));
  for (std::string key; !rest.empty();) {
    const auto shared = take_varint(rest);
    const auto fresh = shared ? take_varint(rest) : std::nullopt;
    const auto length = fresh ? take_varint(rest) : std::nullopt;
    if (!length || *shared > key.size() || *fresh > rest.size() || *length > rest.size() - *fresh) {
      return damaged("an entry extends beyond its block", where.offset);
    }
    key.resize(*shared);
    key.append(rest.substr(0, *fresh));
    const auto value = rest.substr(*fresh, *length);
    rest.remove_prefix(*fresh + *length);
    if (auto used = use(key, value); !used) { return used; }
  }
  return {};
}

/// Reads the footer and returns the handle of the index block. Also verifies the metaindex block, which has no entries.
result<handle> read_footer(std::string_view file, std::size_t max_bytes) {
  if (file.size() < footer_size) { return damaged("the table is too short for a footer", file.size()); }
  auto footer = file.substr(file.size() - footer_size);
  if (read_fixed<std::uint64_t>(footer.substr(handles_size)) != table_magic) {
    return damaged("this is not a table: the magic number is missing", file.size() - 8);
  }
  footer.remove_suffix(8);
  const auto metaindex = take_handle(footer);
  const auto index = metaindex ? take_handle(footer) : std::nullopt;
  if (!index) { return damaged("the footer is invalid", file.size() - footer_size); }
  std::string expanded;
  if (const auto meta = read_block(file, *metaindex, max_bytes, expanded); !meta) { return meta.error(); }
  return *index;
}

}  // namespace

result<void> visit_table(std::string_view file, table_visitor visit, std::size_t max_block) {
  const auto index = read_footer(file, max_block);
  if (!index) { return index.error(); }
  std::optional<std::string> last_key;
  std::uint64_t expected = 0;  // end of the previous block; prevents a crafted index from having a block read twice
  const auto visit_data_block = [&](const std::string& index_key, std::string_view value) -> result<void> {
    const auto where = take_handle(value);
    if (!where || !value.empty() || where->offset < expected) { return damaged("the index block is invalid", index->offset); }
    expected = where->offset + where->size;
    const auto visit_entry = [&](const std::string& key, std::string_view content) -> result<void> {
      if (last_key && key <= *last_key) { return damaged("the keys of a block are not in ascending order", where->offset); }
      last_key = key;
      return visit(key, content);
    };
    if (auto read = visit_block(file, *where, max_block, visit_entry); !read) { return read; }
    if (last_key && *last_key > index_key) { return damaged("a block has keys after its key in the index block", where->offset); }
    return {};
  };
  return visit_block(file, *index, max_block, visit_data_block);
}

}  // namespace stepwell::format
