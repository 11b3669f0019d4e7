// SPDX-License-Identifier: Apache-2.0
#include <stepwell/format/checkpoint/detail/table.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/leveldb_table.hpp"
#include "support/table_entries.hpp"
#include "support/testdata.hpp"

#include <filesystem>
#include <map>
#include <random>

using namespace stepwell;
using namespace stepwell::format;
using stepwell::test::key_value;

namespace {

/// The index of a checkpoint with one int32 scalar "Variable", written by TensorFlow 1.13.
const std::string_view tiny_index(
    "\x00\x00\x06\x08\x01\x1a\x02\x08\x01"
    "\x00\x08\x0bVariable\x08\x03\x12\x00\x28\x04\x35\xa6\x7b\x11\x3a"
    "\x00\x00\x00\x00\x01\x00\x00\x00\x00\xc6\x01\xb7\x11"
    "\x00\x00\x00\x00\x01\x00\x00\x00\x00\xc0\xf2\xa1\xb0"
    "\x00\x01\x02W\x00\x27\x00\x00\x00\x00\x01\x00\x00\x00\x00\x0e\x8c\xe2\x61"
    "\x2c\x08\x39\x0e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\x57\xfb\x80\x8b\x24\x75\x47\xdb",
    124);

std::string write_ours(const std::vector<key_value>& entries, table_options options = {}) {
  table_writer writer(options);
  for (const auto& [key, value] : entries) { REQUIRE(writer.add(key, value)); }
  return writer.finish();
}

/// Returns entries whose keys have long, short and no common prefixes and contain all byte values. Values have up to
/// `max_value` bytes.
std::vector<key_value> random_entries(std::uint64_t seed, std::size_t count, std::size_t max_value) {
  std::mt19937_64 bits(seed);
  std::map<std::string, std::string> sorted;
  sorted[""] = "header";
  while (sorted.size() < count) {
    std::string key = bits() % 3 == 0 ? "" : "layer_" + std::to_string(bits() % 40) + "/";
    for (auto n = bits() % 9; n > 0; --n) { key.push_back(static_cast<char>(bits() % 4 == 0 ? 0xFF : bits() % 256)); }
    std::string value(bits() % (max_value + 1), '\0');
    for (auto& byte : value) { byte = static_cast<char>(bits()); }
    sorted[key] = value;
  }
  return {sorted.begin(), sorted.end()};
}

}  // namespace

TEST_CASE("a small index of TensorFlow's is read and written to the same bytes", "[format][table]") {
  const auto entries = test::read_table(tiny_index);
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  CHECK((*entries)[0] == key_value{"", std::string("\x08\x01\x1a\x02\x08\x01", 6)});
  CHECK((*entries)[1].first == "Variable");
  CHECK(write_ours(*entries) == tiny_index);
}

TEST_CASE("an empty table is written as LevelDB writes it", "[format][table]") {
  CHECK(write_ours({}) == test::write_with_leveldb({}, 4096, 16));
  const auto entries = test::read_table(write_ours({}));
  REQUIRE(entries);
  CHECK(entries->empty());
}

TEST_CASE("tables of any size are byte for byte LevelDB's, and both read them", "[format][table]") {
  const auto [block, restart] = GENERATE(table<std::size_t, int>({{262'144, 16}, {512, 4}, {64, 1}, {1, 16}, {4096, 3}}));
  const auto seed = GENERATE(range(1, 5));
  const auto entries = random_entries(static_cast<std::uint64_t>(seed), 700, 60);
  const auto bytes = write_ours(entries, {block, static_cast<std::size_t>(restart)});
  CHECK(bytes == test::write_with_leveldb(entries, block, restart));
  CHECK(test::read_with_leveldb(bytes) == entries);
  const auto read = test::read_table(bytes);
  REQUIRE(read);
  CHECK(*read == entries);
}

TEST_CASE("a table of several default blocks is LevelDB's too, unless an entry is huge", "[format][table]") {
  const auto entries = random_entries(9, 400, 5000);
  CHECK(write_ours(entries) == test::write_with_leveldb(entries, 262'144, 16));
}

TEST_CASE("an entry of half a MiB begins a block of its own", "[format][table]") {
  const std::vector<key_value> entries{{"a", "small"}, {"b", std::string(524'288, 'x')}, {"c", "small"}};
  const auto bytes = write_ours(entries);
  CHECK(bytes.substr(0, 22) == write_ours({{"a", "small"}}).substr(0, 22));  // covers a whole block with its restarts and trailer
  CHECK(test::read_with_leveldb(bytes) == entries);
  const std::vector<key_value> less{{"a", "small"}, {"b", std::string(524'286, 'x')}, {"c", "small"}};
  CHECK(write_ours(less) == test::write_with_leveldb(less, 262'144, 16));
}

TEST_CASE("keys that do not ascend are refused", "[format][table]") {
  table_writer writer;
  REQUIRE(writer.add("", "header"));
  CHECK(writer.add("", "again").error().code == errc::invalid_argument);
  REQUIRE(writer.add("b\xFF", ""));
  CHECK_FALSE(writer.add("b", "").ok());
  CHECK_FALSE(writer.add("a", "").ok());
  CHECK(writer.add("c", "").ok());
}

TEST_CASE("blocks compressed with snappy are read", "[format][table]") {
  std::vector<key_value> entries{{"", "header"}};
  for (int i = 100; i < 400; ++i) { entries.emplace_back("dense/kernel/" + std::to_string(i), std::string(200, 'v')); }
  const auto bytes = test::write_with_leveldb(entries, 1024, 16, leveldb::kSnappyCompression);
  REQUIRE(bytes.size() < 30'000);
  const auto read = test::read_table(bytes);
  REQUIRE(read);
  CHECK(*read == entries);
}

TEST_CASE("no flipped bit in a table goes unnoticed, but for the padding of the footer", "[format][table]") {
  const auto entries = random_entries(3, 40, 20);
  for (const auto& whole : {std::string(tiny_index), write_ours(entries, {128, 4})}) {
    const auto before = test::read_table(whole);
    REQUIRE(before);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      auto bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << (bit % 8));
      const auto after = test::read_table(bytes);
      const bool in_footer = bit / 8 >= whole.size() - 48;
      const bool is_noticed = !after || (in_footer && *after == *before);
      if (!is_noticed) { FAIL("bit " << bit << " of " << whole.size() << " bytes"); }
    }
  }
}

TEST_CASE("a table cut at any length is an error", "[format][table]") {
  const auto whole = write_ours(random_entries(4, 60, 20), {256, 4});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto read = test::read_table(std::string_view(whole).substr(0, length));
    REQUIRE_FALSE(read.ok());
    REQUIRE(read.error().code == errc::data_loss);
  }
}

TEST_CASE("a compressed block cannot ask for more memory than allowed", "[format][table]") {
  const auto bytes = test::write_with_leveldb({{"key", std::string(2'000'000, 'v')}}, 4096, 16, leveldb::kSnappyCompression);
  REQUIRE(bytes.size() < 200'000);
  CHECK(test::read_table(bytes, 1'000'000).error().code == errc::resource_exhausted);
  CHECK(test::read_table(bytes, 3'000'000).ok());
}

TEST_CASE("every uncompressed index of the real and the synthetic checkpoints is rewritten bit by bit", "[format][table]") {
  const auto folder = test::testdata("");
  if (folder.empty()) { return; }
  int rewritten = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".index") { continue; }
    CAPTURE(file.path());
    const auto bytes = test::file_text(file.path().string());
    const auto read = test::read_table(bytes);
    REQUIRE(read);
    CHECK(*read == test::read_with_leveldb(bytes));
    const auto name = file.path().parent_path().filename().string() + "/" + file.path().stem().string();
    if (name == "tf2_snappy/variables" || name == "synthetic/many_blocks_snappy") { continue; }
    const auto options = name == "synthetic/many_blocks" ? table_options{512, 4} : table_options{};
    CHECK(write_ours(*read, options) == bytes);
    ++rewritten;
  }
  CHECK(rewritten >= 10);
}

TEST_CASE("a table that is taken piece by piece has the same bytes", "[format][table]") {
  const auto entries = random_entries(11, 3000, 200);
  const table_options options{.block_size = 4096};
  table_writer writer(options);
  std::string pieces;
  std::size_t count = 0;
  for (const auto& [key, value] : entries) {
    REQUIRE(writer.add(key, value));
    if (writer.ready_bytes() < 10'000) { continue; }
    pieces += writer.take_ready();
    ++count;
    CHECK(writer.ready_bytes() == 0);
  }
  pieces += writer.finish();
  CHECK(count > 10);
  CHECK(pieces == write_ours(entries, options));
}
