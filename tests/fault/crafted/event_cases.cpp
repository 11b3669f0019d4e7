// SPDX-License-Identifier: Apache-2.0
//
// Crafted event files.
#include "fault/crafted/scene.hpp"

#include <array>
#include <filesystem>
#include <fstream>

namespace stepwell::test {

namespace fs = std::filesystem;

std::string large_record(scene& in) {
  constexpr std::array<std::uint64_t, 7> sizes = {1ULL << 20, 20ULL << 20, 300ULL << 20, 1ULL << 30, (1ULL << 30) + 1, 1ULL << 40, ~0ULL};
  const auto size = in.random.one_of(sizes);
  std::string text = in.original("events.out.tfevents.1");
  const auto records = 1 + in.random.below(size < (1ULL << 40) ? 20 : 8);  // a file has at most 16 TB
  in.write("events.out.tfevents.1", text);
  const auto path = in.path("events.out.tfevents.1");
  for (std::uint64_t i = 0; i < records && size < (1ULL << 41); ++i) {
    std::string header;
    format::append_fixed(header, size);
    format::append_fixed(header, masked(header));
    std::string footer;
    format::append_fixed(footer, kernel::crc32c_mask(kernel::crc32c_zeros(size)));
    std::ofstream(path, std::ios::binary | std::ios::app) << header;
    fs::resize_file(path, fs::file_size(path) + size);
    std::ofstream(path, std::ios::binary | std::ios::app) << footer;
  }
  return std::to_string(records) + " records of " + std::to_string(size) + " zeros";
}

std::string swollen_event(scene& in) {
  const auto count = 1 + in.random.below(1 << in.random.below(22));
  std::string content;
  switch (in.random.below(6)) {
    case 0: content = sized_field(5, repeated(sized_field(1, ""), count)); break;  // empty values
    case 1:
      content = sized_field(5, repeated(sized_field(1, sized_field(8, "\x08\x07" + repeated("\x42\x00", count % 4096))), 9));
      break;   // strings
    case 2: {  // a tensor with one repeated value
      std::string shape;
      format::append_varint(shape, 0x08);
      format::append_varint(shape, in.random.extreme());
      const auto tensor = "\x08\x01" + sized_field(2, sized_field(2, shape)) + sized_field(5, std::string(4, '\x3f'));
      content = sized_field(5, repeated(sized_field(1, sized_field(8, tensor)), count % 1000));
      break;
    }
    case 3:
      content = sized_field(5, sized_field(1, sized_field(8, "\x08\x09" + sized_field(10, std::string(count, '\x01')))));
      break;   // int64
    case 4: {  // deep
      content = "x";
      for (int i = 0; i < 2000; ++i) { content = sized_field(1U + static_cast<unsigned>(in.random.below(12)), content); }
      break;
    }
    default: content = mutated(sized_field(5, sized_field(1, "\x0a\x04loss\x15" + in.random.bytes(4))), in.random); break;
  }
  in.write("events.out.tfevents.1", in.original("events.out.tfevents.1") + repeated(record_of(content), 1 + in.random.below(3)));
  return "an event of " + std::to_string(content.size()) + " bytes";
}

}  // namespace stepwell::test
