// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the readers of weights that Python wrote. The first byte selects: a whole file; a header of safetensors; a header of an .npy
// array; a pickle in an archive; or an index of several files. What a reader accepts, it must read in full.
#include "fuzz/tool_fuzz.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/format/weights/detail/npy.hpp>
#include <stepwell/format/weights/detail/safetensors.hpp>
#include <stepwell/format/weights/detail/state_dict.hpp>
#include <tool/commands.hpp>

#include <algorithm>
#include <limits>

namespace format = stepwell::format;

namespace {

void require(bool holds) {
  if (!holds) { std::abort(); }
}

template<class Number>
void append(std::string& text, std::uint64_t number) {
  const auto value = static_cast<Number>(number);
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Returns an archive of stored members, without checksums that match. The fuzzer cannot find checksums.
std::string archive_of(const std::vector<std::pair<std::string, std::string_view>>& members, std::uint32_t (*crc)(std::string_view)) {
  std::string made;
  std::string directory;
  for (const auto& [name, content] : members) {
    const auto offset = made.size();
    std::string both;  // the fields that both headers have
    for (const unsigned field : {20u, 0u, 0u, 0u, 0u}) { append<std::uint16_t>(both, field); }
    for (const std::uint64_t field : {std::uint64_t{crc(content)}, content.size(), content.size()}) { append<std::uint32_t>(both, field); }
    append<std::uint16_t>(both, name.size());
    append<std::uint16_t>(both, 0);
    made.append("PK\3\4").append(both).append(name).append(content);
    directory.append("PK\1\2").append(std::string("\x14\0", 2)).append(both).append(std::string(10, '\0'));
    append<std::uint32_t>(directory, offset);
    directory.append(name);
  }
  const auto begin = made.size();
  made.append(directory).append("PK\5\6").append(std::string(4, '\0'));
  for (int i = 0; i < 2; ++i) { append<std::uint16_t>(made, members.size()); }
  append<std::uint32_t>(made, directory.size());
  append<std::uint32_t>(made, begin);
  append<std::uint16_t>(made, 0);
  return made;
}

std::uint32_t crc_of(std::string_view content) {
  std::uint32_t crc = ~0u;
  for (const char letter : content) {
    crc ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) { crc = crc >> 1 ^ (crc & 1u ? 0xedb88320u : 0u); }
  }
  return ~crc;
}

/// Reads all of a file, and runs the commands of the tool on it.
void read_file(std::string text) {
  const auto files = std::make_shared<stepwell::test::memory_files>();
  const auto size = text.size();
  files->content["run/m"] = std::move(text);
  try {
    const stepwell::checkpoint_reader reader("run/m", files);
    for (const auto& entry : reader.entries()) {
      try {
        const auto held = reader.read(entry.name);
        require(held.bytes().size() == entry.size_bytes &&
                entry.size_bytes / 1100 <= size + (std::uint64_t{1} << 16));  // or 64 MiB, of shared elements
        std::vector<std::byte> joined;
        for (const auto piece : reader.pieces(entry.name)) { joined.insert(joined.end(), piece.begin(), piece.end()); }
        require(std::ranges::equal(joined, held.bytes()));
      } catch (const stepwell::error&) { continue; }
    }
    reader.verify();
  } catch (const stepwell::error& failure) { require(failure.kind() != stepwell::errc::internal); }
  stepwell::test::run_all(files, {[](auto& to) { return inspect({.target = "run/m", .stats = true}, to); },
                                  [](auto& to) { return inspect({.target = "run/m", .diff = "run/m"}, to); },
                                  [](auto& to) { return verify({.target = "run/m"}, to); }});
}

void fuzz_safetensors(stepwell::test::fuzz_bytes& bytes) {
  const auto data = bytes.byte();
  const auto header = bytes.rest();
  const auto arrays = format::decode_safetensors_header(header, data);
  if (!arrays) { return; }
  std::vector<format::safetensors_array> again;
  bool is_known = true;
  for (const auto& array : *arrays) {
    again.push_back({array.name, array.dtype, array.shape});
    is_known = is_known && array.dtype != stepwell::dtype::invalid;
  }
  const auto written = format::encode_safetensors_header(again, {});
  require(written.ok() == is_known);
  if (written) { require(format::decode_safetensors_header(std::string_view(*written).substr(8), data)->size() == arrays->size()); }
}

void fuzz_npy(std::string_view header) {
  const auto size = format::npy_header_size(header);
  if (size && *size <= header.size()) { static_cast<void>(format::decode_npy_header(header.substr(0, *size))); }
}

void fuzz_pickle(stepwell::test::fuzz_bytes& bytes) {
  const auto storage = bytes.piece();
  const auto pickle = bytes.rest();
  static_cast<void>(format::decode_state_dict(pickle));
  static_cast<void>(format::decode_old_torch_file(pickle));
  read_file(archive_of({{"a/data.pkl", pickle}, {"a/data/0", storage}}, &crc_of));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::test::fuzz_bytes bytes(data, size);
  switch (bytes.byte() % 6) {
    case 0: fuzz_safetensors(bytes); break;
    case 1: fuzz_npy(bytes.rest()); break;
    case 2: fuzz_pickle(bytes); break;
    case 3: read_file(archive_of({{"a.npy", bytes.rest()}}, &crc_of)); break;
    case 4: static_cast<void>(format::decode_shard_index(bytes.rest())); break;
    default: read_file(std::string(bytes.rest())); break;
  }
  return 0;
}
