// SPDX-License-Identifier: Apache-2.0
//
// Crafted checkpoint indexes, and the data to which they refer.
#include "fault/crafted/scene.hpp"
#include "support/table_entries.hpp"

#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <stepwell/format/events/event.hpp>
#include <stepwell/format/events/record.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace stepwell::test {
namespace {

namespace fs = std::filesystem;

using entry_map = std::map<std::string, std::string>;

std::string table_of(const entry_map& entries) {
  format::table_writer table;
  for (const auto& [key, value] : entries) { static_cast<void>(table.add(key, value)); }
  return table.finish();
}

entry_map entries_of(const std::string& index) {
  const auto read = read_table(index);
  return read ? entry_map(read->begin(), read->end()) : entry_map();
}

}  // namespace

std::string change_entries(scene& in) {
  auto entries = entries_of(in.original("model.ckpt-4.index"));
  for (auto left = 1 + in.random.below(3); left > 0; --left) {
    auto at = std::next(entries.begin(), static_cast<std::ptrdiff_t>(in.random.below(entries.size())));
    if (in.random.one_in(6)) {
      at->second = encode(format::bundle_header{.num_shards = static_cast<std::int32_t>(in.random.extreme()), .bad_consumers = {}});
    } else if (in.random.one_in(3) && !at->first.empty()) {
      if (auto entry = format::decode_bundle_entry(at->second)) {
        switch (in.random.below(6)) {
          case 0: entry->offset = static_cast<std::int64_t>(in.random.extreme()); break;
          case 1: entry->size = static_cast<std::int64_t>(in.random.extreme()); break;
          case 2: entry->shape = {static_cast<std::int64_t>(in.random.extreme()), static_cast<std::int64_t>(in.random.extreme())}; break;
          case 3: entry->shard_id = static_cast<std::int32_t>(in.random.extreme()); break;
          case 4: entry->dtype = static_cast<dtype>(in.random.below(64)); break;
          default:
            entry->slices.assign(1 + in.random.below(20),
                                 {{static_cast<std::int64_t>(in.random.extreme()), static_cast<std::int64_t>(in.random.extreme())}});
            break;
        }
        at->second = encode(*entry);
      }
    } else {
      at->second = mutated(at->second, in.random);
    }
  }
  in.write("model.ckpt-4.index", table_of(entries));
  return "entries of an index changed";
}

namespace {

format::bundle_entry numbers_entry(std::int64_t offset, std::int64_t count, std::uint32_t crc) {
  return {.dtype = dtype::float32, .shape = {count}, .offset = offset, .size = 4 * count, .crc32c = crc, .slices = {}};
}

}  // namespace

/// Writes thousands of tensors, overlapping or side by side, with correct checksums.
std::string many_tensors(scene& in) {
  constexpr std::array<std::int64_t, 4> counts = {3, 300, 3000, 60'000};
  constexpr std::array<std::int64_t, 4> sizes = {1, 1000, 16 << 20, std::int64_t{1} << 36};
  const auto tensors = in.random.one_of(counts);
  const auto count = in.random.one_of(sizes);
  const bool is_overlapping = in.random.one_in(2) || tensors * (count / 1024) > (std::int64_t{1} << 31);  // a file has at most 16 TB
  const auto crc = kernel::crc32c_mask(kernel::crc32c_zeros(static_cast<std::uint64_t>(4 * count)));
  const std::string before(in.random.below(200), 'n');
  entry_map entries{{"", encode(format::bundle_header{.bad_consumers = {}})}};
  for (std::int64_t i = 0; i < tensors; ++i) {
    entries[before + std::to_string(i)] = encode(numbers_entry(is_overlapping ? 0 : 4 * count * i, count, crc));
  }
  in.write("model.ckpt-4.index", table_of(entries));
  in.write("model.ckpt-4.data-00000-of-00001", "");
  fs::resize_file(in.path("model.ckpt-4.data-00000-of-00001"), static_cast<std::uint64_t>(4 * count * (is_overlapping ? 1 : tensors)));
  return std::to_string(tensors) + " tensors of " + std::to_string(4 * count) + " bytes " +
         (is_overlapping ? "over the same bytes" : "in a hole");
}

/// Writes string tensors in a file hole. Each zero byte is the length of an empty string.
std::string sparse_strings(scene& in) {
  constexpr std::array<std::int64_t, 5> counts = {1, 1000, 1 << 24, std::int64_t{1} << 33, std::int64_t{1} << 39};
  const auto count = in.random.one_of(counts);
  const auto lengths = kernel::crc32c_zeros(4 * static_cast<std::uint64_t>(count));
  std::string stored;
  format::append_fixed(stored, kernel::crc32c_mask(lengths));
  const auto crc = in.random.one_in(4) ? 0U : kernel::crc32c_mask(kernel::crc32c(std::as_bytes(std::span(stored)), lengths));
  const format::bundle_entry entry{.dtype = dtype::string, .shape = {count}, .size = count + 4, .crc32c = crc, .slices = {}};
  auto entries = entries_of(in.original("model.ckpt-4.index"));
  std::erase_if(entries, [](const auto& one) { return one.first != ""; });
  entries["strings"] = encode(entry);
  in.write("model.ckpt-4.index", table_of(entries));
  in.write("model.ckpt-4.data-00000-of-00001", "");
  const auto path = in.path("model.ckpt-4.data-00000-of-00001");
  fs::resize_file(path, static_cast<std::uint64_t>(count));
  std::ofstream(path, std::ios::binary | std::ios::app) << stored;
  return std::to_string(count) + " empty strings in a hole";
}

namespace {

/// Returns a table that consists of the given block, with correct checksums.
std::string table_around(std::string block, char compression) {
  const auto sealed = [](std::string contents, char kind) {
    contents.push_back(kind);
    const auto crc = masked(contents);
    format::append_fixed(contents, crc);
    return contents;
  };
  const auto handle = [](std::uint64_t offset, std::uint64_t size) {
    std::string made;
    format::append_varint(made, offset);
    format::append_varint(made, size);
    return made;
  };
  const auto one_entry = [](const std::string& key, const std::string& value) {
    std::string made;
    format::append_varint(made, 0);
    format::append_varint(made, key.size());
    format::append_varint(made, value.size());
    made += key + value;
    format::append_fixed(made, std::uint32_t{0});
    format::append_fixed(made, std::uint32_t{1});
    return made;
  };
  const auto size = block.size();
  std::string file = sealed(std::move(block), compression);
  std::string empty;
  format::append_fixed(empty, std::uint32_t{0});
  format::append_fixed(empty, std::uint32_t{1});
  const auto meta = handle(file.size(), empty.size());
  file += sealed(empty, 0);
  const auto index_block = one_entry("\xff", handle(0, size));
  const auto index = handle(file.size(), index_block.size());
  file += sealed(index_block, 0);
  std::string footer = meta + index;
  footer.resize(40);
  format::append_fixed(footer, std::uint64_t{0xDB4775248B80FB57});
  return file + footer;
}

}  // namespace

/// Writes keys with a long common prefix. Each takes a few bytes in the file and the length of the prefix in memory.
std::string shared_prefixes(scene& in) {
  constexpr std::array<std::size_t, 4> lengths = {10, 10'000, 1'000'000, 30'000'000};
  const auto length = in.random.one_of(lengths);
  const auto count = 1 + in.random.below(100'000);
  std::string block;
  const auto add = [&](std::uint64_t shared, std::string_view fresh, std::string_view value) {
    format::append_varint(block, shared);
    format::append_varint(block, fresh.size());
    format::append_varint(block, value.size());
    block.append(fresh).append(value);
  };
  add(0, "", encode(format::bundle_header{.bad_consumers = {}}));
  const auto value = encode(numbers_entry(0, 0, kernel::crc32c_mask(0)));
  add(0, std::string(length, 'k'), value);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string number = {static_cast<char>(i >> 16), static_cast<char>(i >> 8), static_cast<char>(i)};
    add(length, number, value);
  }
  format::append_fixed(block, std::uint32_t{0});
  format::append_fixed(block, std::uint32_t{1});
  in.write("model.ckpt-4.index", table_around(std::move(block), 0));
  return std::to_string(count) + " keys that share " + std::to_string(length) + " bytes";
}

std::string compressed_claim(scene& in) {
  std::string block;
  format::append_varint(block, in.random.extreme());
  block += in.random.bytes(in.random.below(100'000));
  in.write("model.ckpt-4.index", table_around(std::move(block), 1));
  return "a compressed block with an impossible claim";
}

/// Writes an entry whose message becomes many times larger when it is parsed.
std::string swollen_entry(scene& in) {
  const auto count = 1 + in.random.below(200'000);
  const std::string slice = sized_field(7, repeated(sized_field(1, ""), 1 + in.random.below(4)));
  const auto value = in.random.one_in(2) ? sized_field(2, repeated(sized_field(2, ""), count)) : "\x08\x01" + repeated(slice, count);
  auto entries = entries_of(in.original("model.ckpt-4.index"));
  entries["swollen"] = value;
  in.write("model.ckpt-4.index", table_of(entries));
  return "an entry of " + std::to_string(value.size()) + " bytes full of empty messages";
}

/// Writes names that contain control codes of terminals.
std::string hostile_names(scene& in) {
  const std::string name = "w\x1b[2J\x9b\xc2\x9b\x7f\r" + in.random.bytes(8);
  auto entries = entries_of(in.original("model.ckpt-4.index"));
  entries[name] = encode(numbers_entry(static_cast<std::int64_t>(in.random.extreme() % 4096), 1, 7));
  in.write("model.ckpt-4.index", table_of(entries));
  format::event happened{.wall_time = 1, .step = 1, .what = format::log_message{1, name}, .source_writer = name};
  in.write("events.out.tfevents.1", in.original("events.out.tfevents.1") + record_of(encode_event(happened)));
  return "names with control bytes";
}

}  // namespace stepwell::test
