// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes a reader with random checkpoints: every tensor is verified and read, whole and in pieces. Types, shapes and
// offsets of the entries are random. Their checksums are correct, and the sizes of numbers match the shapes, so that
// readers get past the checks.
#include "fuzz/tool_fuzz.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <stepwell/kernel/detail/crc32c.hpp>

#include <map>
#include <span>

namespace format = stepwell::format;

namespace {

format::bundle_entry made_up(stepwell::test::fuzz_bytes& bytes, std::string_view data) {
  format::bundle_entry entry{.dtype = static_cast<stepwell::dtype>(bytes.byte() % 24), .shape = {}, .slices = {}};
  std::int64_t count = 1;
  for (auto rank = bytes.byte() % 4; rank > 0; --rank) {
    entry.shape.push_back(bytes.byte());
    count *= entry.shape.back();
  }
  entry.offset = static_cast<std::int64_t>(bytes.byte() * 4);
  const auto width = static_cast<std::int64_t>(stepwell::size_of(entry.dtype));
  entry.size = width != 0 ? count * width : static_cast<std::int64_t>(bytes.byte());
  for (auto slices = bytes.byte() % 4; slices > 0; --slices) {
    auto& slice = entry.slices.emplace_back();
    for (std::size_t d = 0; d < entry.shape.size(); ++d) { slice.push_back({bytes.byte(), static_cast<std::int64_t>(bytes.byte()) - 1}); }
  }
  const bool is_inside = static_cast<std::size_t>(entry.offset) < data.size();
  const auto stored = is_inside ? data.substr(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size)) : "";
  entry.crc32c = stepwell::kernel::crc32c_mask(stepwell::kernel::crc32c(std::as_bytes(std::span(stored))));
  return entry;
}

std::string index_of(stepwell::test::fuzz_bytes& bytes, std::string_view data) {
  std::map<std::string, std::string> entries{
      {"", encode(format::bundle_header{.is_big_endian = bytes.byte() % 2 == 1, .bad_consumers = {}})}};
  for (auto left = bytes.byte() % 8; left > 0; --left) {
    const std::string name(1, static_cast<char>('a' + bytes.byte() % 8));
    const auto entry = made_up(bytes, data);
    for (const auto& slice : entry.slices) { entries[format::slice_key(name, slice)] = encode(made_up(bytes, data)); }
    entries[name] = encode(entry);
  }
  format::table_writer table;
  for (const auto& [key, value] : entries) { static_cast<void>(table.add(key, value)); }
  return table.finish();
}

/// Runs `act`, which may throw `stepwell::error`.
template<class Act>
void attempt(const Act& act) {
  try {
    act();
  } catch (const stepwell::error&) { return; }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::test::fuzz_bytes bytes(data, size);
  const auto files = std::make_shared<stepwell::test::memory_files>();
  const auto stored = bytes.piece();
  files->content["run/m.data-00000-of-00001"] = stored;
  files->content["run/m.index"] = index_of(bytes, stored);
  attempt([&] {
    const stepwell::checkpoint_reader reader("run/m", files);
    attempt([&] { reader.verify(); });
    for (const auto& entry : reader.entries()) {
      attempt([&] { static_cast<void>(reader.read(entry.name)); });
      attempt([&] {
        for (const auto piece : reader.pieces(entry.name)) { static_cast<void>(piece.size()); }
      });
    }
  });
  return 0;
}
