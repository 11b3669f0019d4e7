// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/table.hpp"

#include "stepwell/format/checkpoint/detail/varint.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <snappy.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell::format {
namespace {

constexpr std::uint64_t table_magic = 0xDB4775248B80FB57;
constexpr std::size_t footer_size = 48;
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

/// The contents of a block: a view of the file, or the decompressed bytes in `expanded`.
struct block {
  std::string_view stored = {};
  std::string expanded = {};
  bool is_expanded = false;
  [[nodiscard]] std::string_view contents() const noexcept { return is_expanded ? expanded : stored; }
};

result<block> expand(std::string_view stored, std::uint64_t offset, std::size_t max_bytes) {
  block made{.is_expanded = true};
  std::size_t size = 0;
  if (!snappy::GetUncompressedLength(stored.data(), stored.size(), &size) || size / snappy_max_ratio > stored.size()) {
    return damaged("a compressed block has an impossible uncompressed size", offset);
  }
  if (size > max_bytes) { return status(errc::resource_exhausted, "the table exceeds the memory limit"); }
  made.expanded.resize(size);
  if (!snappy::RawUncompress(stored.data(), stored.size(), made.expanded.data())) {
    return damaged("a block cannot be decompressed", offset);
  }
  return made;
}

result<block> read_block(std::string_view file, handle where, std::size_t max_bytes) {
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
    case 0: return block{.stored = stored};
    case 1: return expand(stored, where.offset, max_bytes);
    default: return status(errc::unimplemented, "a block has an unknown compression type");
  }
}

/// An iterator over the entries of one block. It uses only the number of restart offsets, because the offsets are for random access.
class block_cursor {
public:
  /// Returns a cursor before the first entry. @errors `data_loss` if the restart array does not fit into the block.
  static result<block_cursor> open(std::string_view contents, std::uint64_t offset) {
    if (contents.size() < 8) { return damaged("a block is too short", offset); }
    const std::uint64_t restarts = read_fixed<std::uint32_t>(contents.substr(contents.size() - 4));
    if (restarts == 0 || restarts > contents.size() / 4 - 1) {
      return damaged("a block has no restart points, or more than fit into it", offset);
    }
    return block_cursor(contents.substr(0, contents.size() - 4 * (restarts + 1)), offset);
  }

  /// Moves to the next entry. Returns false if there is none. @errors `data_loss` if the entry exceeds the block.
  result<bool> next() {
    if (rest_.empty()) { return false; }
    const auto shared = take_varint(rest_);
    const auto fresh = shared ? take_varint(rest_) : std::nullopt;
    const auto length = fresh ? take_varint(rest_) : std::nullopt;
    if (!length || *shared > key_.size() || *fresh > rest_.size() || *length > rest_.size() - *fresh) {
      return damaged("an entry extends beyond its block", offset_);
    }
    key_.resize(*shared);
    key_.append(rest_.substr(0, *fresh));
    value_ = rest_.substr(*fresh, *length);
    rest_.remove_prefix(*fresh + *length);
    return true;
  }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] std::string_view value() const noexcept { return value_; }

private:
  block_cursor(std::string_view entries, std::uint64_t offset) : rest_(entries), offset_(offset) {}

  std::string_view rest_;
  std::uint64_t offset_;
  std::string key_;
  std::string_view value_;
};

/// A visitor that checks the order of the entries and passes them to `visit`.
struct ordered_visitor {
  table_visitor visit;
  std::size_t max_block;
  std::string last_key = {};
  bool is_first = true;

  result<void> add(const std::string& key, std::string_view value, std::uint64_t offset) {
    if (!std::exchange(is_first, false) && key <= last_key) { return damaged("the keys of a block are not in ascending order", offset); }
    last_key = key;
    return visit(key, value);
  }
};

result<void> visit_data_block(std::string_view file, handle where, ordered_visitor& into) {
  auto contents = read_block(file, where, into.max_block);
  if (!contents) { return std::move(contents).error(); }
  auto cursor = block_cursor::open(contents->contents(), where.offset);
  if (!cursor) { return std::move(cursor).error(); }
  for (;;) {
    const auto more = cursor->next();
    if (!more) { return more.error(); }
    if (!*more) { return {}; }
    if (auto added = into.add(cursor->key(), cursor->value(), where.offset); !added) { return added; }
  }
}

result<void> visit_blocks(std::string_view file, handle index, ordered_visitor& into) {
  auto contents = read_block(file, index, into.max_block);
  if (!contents) { return std::move(contents).error(); }
  auto cursor = block_cursor::open(contents->contents(), index.offset);
  if (!cursor) { return std::move(cursor).error(); }
  std::uint64_t expected = 0;  // end of the previous block; prevents a crafted index from having a block read twice
  for (;;) {
    const auto more = cursor->next();
    if (!more) { return more.error(); }
    if (!*more) { return {}; }
    auto value = cursor->value();
    const auto where = take_handle(value);
    if (!where || !value.empty() || where->offset < expected) { return damaged("the index block is invalid", index.offset); }
    expected = where->offset + where->size;
    if (auto read = visit_data_block(file, *where, into); !read) { return read; }
    if (!into.is_first && into.last_key > cursor->key()) {
      return damaged("a block has keys after its key in the index block", where->offset);
    }
  }
}

/// Reads the footer and returns the handle of the index block. Also verifies the metaindex block, which has no entries.
result<handle> read_footer(std::string_view file, std::size_t max_bytes) {
  if (file.size() < footer_size) { return damaged("the table is too short for a footer", file.size()); }
  auto footer = file.substr(file.size() - footer_size);
  if (read_fixed<std::uint64_t>(footer.substr(40)) != table_magic) {
    return damaged("this is not a table: the magic number is missing", file.size() - 8);
  }
  footer.remove_suffix(8);
  const auto metaindex = take_handle(footer);
  const auto index = metaindex ? take_handle(footer) : std::nullopt;
  if (!index) { return damaged("the footer is invalid", file.size() - footer_size); }
  auto meta = read_block(file, *metaindex, max_bytes);
  if (!meta) { return std::move(meta).error(); }
  return *index;
}

}  // namespace

result<void> visit_table(std::string_view file, table_visitor visit, std::size_t max_block) {
  auto index = read_footer(file, max_block);
  if (!index) { return std::move(index).error(); }
  ordered_visitor into{visit, max_block};
  return visit_blocks(file, *index, into);
}

result<std::vector<table_entry>> read_table(std::string_view file, std::size_t max_bytes) {
  std::size_t budget = max_bytes != 0 ? max_bytes : 256 * file.size() + (std::size_t{1} << 20);
  std::vector<table_entry> entries;
  const auto keep = [&](std::string_view key, std::string_view value) -> result<void> {
    const auto cost = key.size() + value.size() + sizeof(table_entry);
    if (cost > budget) { return status(errc::resource_exhausted, "the table exceeds the memory limit"); }
    budget -= cost;
    entries.push_back({std::string(key), std::string(value)});
    return {};
  };
  if (auto read = visit_table(file, keep, budget); !read) { return std::move(read).error(); }
  return entries;
}

}  // namespace stepwell::format
