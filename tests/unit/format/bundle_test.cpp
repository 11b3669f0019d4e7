// SPDX-License-Identifier: Apache-2.0
#include <stepwell/format/checkpoint/detail/bundle.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/leveldb_table.hpp"
#include "support/testdata.hpp"

#include "stepwell/format/proto/tensor_bundle.pb.h"

#include <algorithm>
#include <filesystem>
#include <limits>

using namespace stepwell;
using namespace stepwell::format;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string made;
  for (const int value : values) { made.push_back(static_cast<char>(value)); }
  return made;
}

errc code_of(const std::string& entry) {
  const auto decoded = decode_bundle_entry(entry);
  return decoded ? errc{} : decoded.error().code;
}

}  // namespace

TEST_CASE("the header of one shard is TensorFlow's six bytes", "[format][bundle]") {
  CHECK(encode(bundle_header{}) == bytes({8, 1, 0x1a, 2, 8, 1}));
  const auto header = decode_bundle_header(bytes({8, 2, 0x10, 1, 0x1a, 2, 8, 1}));
  REQUIRE(header);
  CHECK(header->num_shards == 2);
  CHECK(header->is_big_endian);
}

TEST_CASE("a header for later readers, or none at all, is refused", "[format][bundle]") {
  CHECK(decode_bundle_header(encode(bundle_header{.min_consumer = 2, .bad_consumers = {}})).error().code == errc::unimplemented);
  CHECK(decode_bundle_header(encode(bundle_header{.bad_consumers = {3, 1}})).error().code == errc::unimplemented);
  CHECK(decode_bundle_header(encode(bundle_header{.num_shards = 0, .bad_consumers = {}})).error().code == errc::data_loss);
  CHECK(decode_bundle_header(encode(bundle_header{.producer = -1, .bad_consumers = {}})).error().code == errc::data_loss);
  CHECK(decode_bundle_header("").error().code == errc::data_loss);
  CHECK(decode_bundle_header("\x08").error().code == errc::data_loss);
  CHECK(decode_bundle_header(bytes({8, 1, 0x10, 7})).error().code == errc::data_loss);
}

TEST_CASE("a scalar's entry is byte for byte TensorFlow's", "[format][bundle]") {
  const bundle_entry entry{.dtype = dtype::int32, .shape = {}, .size = 4, .crc32c = 0x3a117ba6, .slices = {}};
  const auto stored = bytes({8, 3, 0x12, 0, 0x28, 4, 0x35, 0xa6, 0x7b, 0x11, 0x3a});
  CHECK(encode(entry) == stored);
  CHECK(*decode_bundle_entry(stored) == entry);
}

TEST_CASE("the entry of a partitioned tensor is byte for byte TensorFlow's", "[format][bundle]") {
  const bundle_entry entry{.dtype = dtype::float32, .shape = {10, 4}, .slices = {{{0, 4}, {0, 4}}, {{4, 3}, {0, 4}}, {{7, 3}, {}}}};
  const auto stored = bytes({8,    1,  0x12, 8, 0x12, 2, 8,    10, 0x12, 2, 8,    4, 0x3a, 8, 0x0a, 2, 0x10, 4, 0x0a, 2, 0x10, 4,
                             0x3a, 10, 0x0a, 4, 8,    4, 0x10, 3,  0x0a, 2, 0x10, 4, 0x3a, 8, 0x0a, 4, 8,    7, 0x10, 3, 0x0a, 0});
  CHECK(encode(entry) == stored);
  CHECK(*decode_bundle_entry(stored) == entry);
}

TEST_CASE("a dimension of size zero is an empty message", "[format][bundle]") {
  const bundle_entry entry{.dtype = dtype::float32, .shape = {0, 3}, .crc32c = 1, .slices = {}};
  CHECK(encode(entry).substr(0, 10) == bytes({8, 1, 0x12, 6, 0x12, 0, 0x12, 2, 8, 3}));
  CHECK(*decode_bundle_entry(encode(entry)) == entry);
}

TEST_CASE("an entry with fields in any order, repeated, or with names of dimensions is decoded as protobuf decodes it",
          "[format][bundle]") {
  const bundle_entry entry{.dtype = dtype::float32, .shape = {2}, .size = 8, .crc32c = 1, .slices = {}};
  CHECK(*decode_bundle_entry(bytes({0x35, 1, 0, 0, 0, 0x28, 8, 0x12, 4, 0x12, 2, 8, 2, 8, 1})) == entry);
  CHECK(*decode_bundle_entry(bytes({8, 3, 8, 1, 0x12, 4, 0x12, 2, 8, 2, 0x28, 8, 0x35, 1, 0, 0, 0})) == entry);  // the last one wins
  CHECK(*decode_bundle_entry(bytes({8, 1, 0x12, 7, 0x12, 5, 8, 2, 0x12, 1, 'x', 0x28, 8, 0x35, 1, 0, 0, 0})) == entry);  // a name
  CHECK(*decode_bundle_entry(bytes({8, 0x81, 0, 0x12, 4, 0x12, 2, 8, 2, 0x28, 8, 0x35, 1, 0, 0, 0})) == entry);          // 1 in two bytes
  CHECK(*decode_bundle_entry(bytes({8, 1, 0x12, 4, 0x12, 2, 8, 2, 0x28, 8, 0x35, 1, 0, 0, 0, 0x40, 5})) == entry);       // a later field
  CHECK(code_of(bytes({8, 1, 0x12, 5, 0x12, 2, 8, 2, 0x28, 8, 0x35, 1, 0, 0, 0})) == errc::data_loss);                   // too long a shape
  CHECK(code_of(bytes({8, 1, 0x12, 4, 0x12, 2, 8, 2, 0x28, 8, 0x35, 1, 0, 0})) == errc::data_loss);                      // cut
  CHECK(code_of(bytes({8, 1, 0x12, 2, 0x18, 1, 0x28, 8})) == errc::data_loss);                                           // unknown rank
}

TEST_CASE("entries of any rank are stored and read back", "[format][bundle]") {
  for (const std::size_t rank : {std::size_t{1}, std::size_t{20}, std::size_t{100}, std::size_t{200}}) {
    bundle_entry entry{.dtype = dtype::uint8, .shape = tensor_shape(rank, 1), .shard_id = 7, .offset = 1LL << 40, .slices = {}};
    entry.shape.back() = 1LL << 33;
    entry.size = 1LL << 33;
    CHECK(*decode_bundle_entry(encode(entry)) == entry);
  }
}

TEST_CASE("entries that cannot be are refused", "[format][bundle]") {
  const auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(code_of("\x08") == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::float32, .shape = {2}, .size = 7, .slices = {}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::float32, .shape = {-2}, .size = 8, .slices = {}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::float32, .shape = {most, 2}, .size = 8, .slices = {}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::float32, .shape = {most, most, 0}, .size = 0, .slices = {}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::float32, .shape = {1 << 20, 0, 1 << 20}, .size = 0, .slices = {}})) == errc{});
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::uint8, .shape = {2}, .offset = -1, .size = 2, .slices = {}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::uint8, .shape = {2}, .offset = most, .size = 2, .slices = {}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::uint8, .shape = {2}, .shard_id = -1, .size = 2, .slices = {}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::uint8, .shape = {2}, .slices = {{{0, 2}, {0, 1}}}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::uint8, .shape = {2}, .slices = {{{1, 2}}}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::uint8, .shape = {2}, .slices = {{{most, most}}}})) == errc::data_loss);
  CHECK(code_of(encode(bundle_entry{.dtype = dtype::string, .shape = {2}, .size = 99, .slices = {}})) == errc{});
  CHECK(code_of(encode(bundle_entry{.dtype = static_cast<dtype>(27), .shape = {2}, .size = 2, .slices = {}})) == errc{});
}

TEST_CASE("slice keys are TensorFlow's ordered codes", "[format][bundle]") {
  CHECK(slice_key("embedding/rows", {{4, 3}, {0, 4}}) == bytes({0}) + "embedding/rows" + bytes({0, 1, 1, 2, 0x84, 0x83, 0x80, 0x84}));
  const auto code = [](std::int64_t value) { return slice_key("", {{value, 0}}).substr(5); };
  CHECK(code(0) == bytes({0x80, 0x80}));
  CHECK(code(63) == bytes({0xbf, 0x80}));
  CHECK(code(64) == bytes({0xc0, 0x40, 0x80}));
  CHECK(code(8191) == bytes({0xdf, 0xff, 0x80}));
  CHECK(code(8192) == bytes({0xe0, 0x20, 0x00, 0x80}));
  CHECK(code(1 << 20) == bytes({0xf0, 0x10, 0, 0, 0x80}));
  CHECK(code(-1) == bytes({0x7f, 0x80}));
  CHECK(code(-2048) == bytes({0x38, 0x00, 0x80}));
  CHECK(slice_key(bytes({'a', 0, 0xff}), {}) == bytes({0, 'a', 0, 0xff, 0xff, 0, 0, 1, 0}));
}

TEST_CASE("slice keys sort as their numbers", "[format][bundle]") {
  std::int64_t before = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t value :
       {std::int64_t{-9000}, std::int64_t{-64}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{63}, std::int64_t{64}, std::int64_t{8191},
        std::int64_t{8192}, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
    CHECK(slice_key("n", {{before, 1}}) < slice_key("n", {{value, 1}}));
    before = value;
  }
}

TEST_CASE("file names have five digits", "[format][bundle]") {
  CHECK(index_name("run/model.ckpt-3") == "run/model.ckpt-3.index");
  CHECK(data_name("model.ckpt-3", 1, 12) == "model.ckpt-3.data-00001-of-00012");
}

TEST_CASE("every entry of the real and synthetic checkpoints is rewritten byte for byte", "[format][bundle]") {
  const auto folder = test::testdata("");
  if (folder.empty()) { return; }
  std::size_t seen = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".index") { continue; }
    CAPTURE(file.path());
    const auto entries = test::read_with_leveldb(test::file_text(file.path().string()));
    for (const auto& [key, value] : entries) {
      if (key.empty()) {
        CHECK(encode(*decode_bundle_header(value)) == value);
        continue;
      }
      const auto entry = decode_bundle_entry(value);
      REQUIRE(entry);
      CHECK(encode(*entry) == value);
      for (const auto& slice : entry->slices) {
        CHECK(std::ranges::any_of(entries, [&](const auto& one) { return one.first == slice_key(key, slice); }));
      }
      ::tensorflow::BundleEntryProto oracle;
      REQUIRE(oracle.ParseFromString(value));
      CHECK(oracle.offset() == entry->offset);
      CHECK(oracle.crc32c() == entry->crc32c);
      ++seen;
    }
  }
  CHECK(seen > 900);
}
