// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/table.hpp"

#include "stepwell/format/checkpoint/detail/varint.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace stepwell::format {
namespace {

constexpr std::uint64_t table_magic = 0xDB4775248B80FB57;
constexpr std::size_t handles_size = 40;         // size of the handles in the footer, which the magic number follows
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

void detail::block_builder::add(std::string_view key, std::string_view value) {
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

std::string detail::block_builder::finish() {
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
  if (!is_first_ && key <= last_key_) {
    return status(errc::invalid_argument, "the keys of a table must be unique and in ascending order", std::string(key));
  }
  if (key.size() + value.size() >= own_block_size) { flush_block(); }
  if (has_pending_) { add_index_entry(separator(last_key_, key)); }
  data_.add(key, value);
  last_key_ = key;
  is_first_ = false;
  if (data_.size_estimate() >= options_.block_size) { flush_block(); }
  return {};
}

void table_writer::flush_block() {
  if (data_.empty()) { return; }
  pending_ = append_block(data_.finish());
  has_pending_ = true;
}

table_writer::handle table_writer::append_block(std::string contents) {
  const handle where{file_.size(), contents.size()};
  contents.push_back('\0');  // not compressed; the checksum covers this byte
  const auto crc = kernel::crc32c(std::as_bytes(std::span(contents)));
  file_.append(contents);
  append_fixed(file_, kernel::crc32c_mask(crc));
  return where;
}

void table_writer::append_handle(std::string& out, handle where) {
  append_varint(out, where.offset);
  append_varint(out, where.size);
}

void table_writer::add_index_entry(std::string key) {
  std::string value;
  append_handle(value, pending_);
  index_.add(key, value);
  has_pending_ = false;
}

std::string table_writer::finish() {
  flush_block();
  const auto metaindex = append_block(detail::block_builder(1).finish());
  if (has_pending_) { add_index_entry(successor(last_key_)); }
  const auto index = append_block(index_.finish());
  std::string footer;
  append_handle(footer, metaindex);
  append_handle(footer, index);
  footer.resize(handles_size);
  append_fixed(footer, table_magic);
  return std::exchange(file_, {}).append(footer);
}

}  // namespace stepwell::format
