// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/checkpoint_reader.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/sha256.hpp"
#include "support/temporary_directory.hpp"
#include "support/testdata.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/string_tensor.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sw = stepwell;
using nlohmann::json;
using sw::test::temporary_directory;

namespace {

std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Returns the elements as doubles, for types that double represents accurately enough to compare.
std::vector<double> numbers(const sw::tensor& tensor) {
  const auto widen = [&]<class T>(T) {
    const auto values = tensor.as<T>();
    return std::vector<double>(values.begin(), values.end());
  };
  switch (tensor.dtype()) {
    case sw::dtype::float32: return widen(float{});
    case sw::dtype::float64: return widen(double{});
    case sw::dtype::int8: return widen(std::int8_t{});
    case sw::dtype::int16: return widen(std::int16_t{});
    case sw::dtype::int32: return widen(std::int32_t{});
    case sw::dtype::int64: return widen(std::int64_t{});
    case sw::dtype::uint8: return widen(std::uint8_t{});
    case sw::dtype::uint16: return widen(std::uint16_t{});
    case sw::dtype::uint32: return widen(std::uint32_t{});
    case sw::dtype::uint64: return widen(std::uint64_t{});
    case sw::dtype::boolean: return widen(bool{});
    default: return {};
  }
}

double number_in(const json& value) {
  if (!value.is_string()) { return value.get<double>(); }
  const auto text = value.get<std::string>();
  return text == "nan"   ? std::numeric_limits<double>::quiet_NaN()
         : text == "inf" ? std::numeric_limits<double>::infinity()
                         : -std::numeric_limits<double>::infinity();
}

bool is_same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), 1.0);
}

void check_strings(const json& expected, const sw::tensor& read) {
  std::string joined;
  for (const auto& element : read.strings()) { joined += element; }
  CHECK(sw::test::sha256_hex(joined) == expected["sha256"].get<std::string>());
  CHECK(joined.size() == expected["string_bytes"]);
  for (std::size_t i = 0; i < expected["lengths"].size(); ++i) { CHECK(read.strings()[i].size() == expected["lengths"][i]); }
}

void check_numbers(const json& expected, const sw::tensor& read, bool is_stored_as_read) {
  if (is_stored_as_read && expected.contains("sha256")) {
    CHECK(sw::test::sha256_hex(text_of(read.bytes())) == expected["sha256"].get<std::string>());
  }
  const auto values = numbers(read);
  if (values.empty()) { return; }
  if (expected.contains("values")) {
    REQUIRE(values.size() == expected["values"].size());
    for (std::size_t i = 0; i < values.size(); ++i) { CHECK(is_same(values[i], number_in(expected["values"][i]))); }
  }
  double sum = 0;
  for (const double value : values) { sum += value; }
  CHECK(is_same(sum / static_cast<double>(values.size()), number_in(expected["sum"]) / static_cast<double>(values.size())));
}

void check_against_json(const std::string& prefix, const json& expected) {
  const sw::checkpoint_reader reader(prefix);
  reader.verify();
  const bool is_big_endian = expected["header"]["endianness"] == 1;
  std::size_t whole = 0;
  for (const auto& row : expected["tensors"]) {
    if (row["name"].is_null()) { continue; }
    ++whole;
    const auto name = row["name"].get<std::string>();
    CAPTURE(prefix, name);
    const auto* entry = reader.find(name);
    REQUIRE(entry != nullptr);
    CHECK(sw::test::tensorflow_name(sw::to_string(entry->dtype)) == row["dtype"].get<std::string>());
    CHECK(entry->shape == row["shape"].get<sw::tensor_shape>());
    CHECK(entry->is_partitioned == row.contains("partitioned"));
    CHECK(entry->is_object_graph == (name == "_CHECKPOINTABLE_OBJECT_GRAPH"));
    const auto read = reader.read(name);
    CHECK(read.shape() == entry->shape);
    if (entry->dtype == sw::dtype::string) {
      check_strings(row, read);
    } else {
      check_numbers(row, read, !is_big_endian);
    }
  }
  CHECK(reader.entries().size() == whole);
}

void write_tiny(const std::string& prefix, std::int32_t shards = 1) {
  std::vector<float> w{1, 2, 3};
  std::int64_t step = 6;
  sw::detail::checkpoint_writer writer(prefix, nullptr, shards);
  writer.add("w", sw::view_of(w));
  writer.add("global_step", sw::view_of(step));
  writer.commit();
}

/// Replaces the index of a checkpoint by an index with these entries.
void write_index(const std::string& prefix, const sw::format::bundle_header& header,
                 const std::vector<std::pair<std::string, sw::format::bundle_entry>>& entries) {
  sw::format::table_writer table;
  REQUIRE(table.add("", encode(header)));
  for (const auto& [name, entry] : entries) { REQUIRE(table.add(name, encode(entry))); }
  sw::test::write_file_text(prefix + ".index", table.finish());
}

sw::tensor_shape shape_of(const sw::format::tensor_slice& slice, const sw::tensor_shape& whole) {
  sw::tensor_shape shape;
  for (std::size_t d = 0; d < whole.size(); ++d) {
    shape.push_back(slice[d].length == sw::format::slice_extent::whole ? whole[d] : slice[d].length);
  }
  return shape;
}

/// Returns the elements of a slice in row-major order. The text of an element is its coordinates in the whole tensor.
std::vector<std::string> coordinates(const sw::format::tensor_slice& slice, const sw::tensor_shape& whole) {
  const auto shape = shape_of(slice, whole);
  std::vector<std::string> texts{"at"};
  for (std::size_t d = 0; d < whole.size(); ++d) {
    std::vector<std::string> longer;
    for (const auto& text : texts) {
      for (auto i = slice[d].start; i < slice[d].start + shape[d]; ++i) { longer.push_back(text + " " + std::to_string(i)); }
    }
    texts = std::move(longer);
  }
  return texts;
}

/// The shape of a tensor, and the slices that it is stored in.
struct partition {
  sw::tensor_shape whole;
  std::vector<sw::format::tensor_slice> slices;
};

std::vector<partition> partitions() {
  return {{{}, {{}}},
          {{1}, {{{0, 1}}}},
          {{5}, {{{0, 3}}, {{3, 2}}}},
          {{5}, {{{3, 2}}, {{0, 0}}, {{0, 3}}}},
          {{0, 3}, {{{}, {0, 1}}, {{}, {1, 2}}}},
          {{4, 3}, {{{0, 1}, {}}, {{1, 3}, {0, 2}}, {{1, 3}, {2, 1}}}},
          {{3, 1, 2, 1}, {{{}, {}, {1, 1}, {}}, {{}, {}, {0, 1}, {}}}},
          {{2, 3, 4}, {{{}, {}, {0, 3}}, {{}, {0, 2}, {3, 1}}, {{0, 2}, {2, 1}, {3, 1}}}}};
}

using index_entries = std::map<std::string, sw::format::bundle_entry>;

/// Writes a checkpoint in which the tensor "s" has the strings `coordinates` and is stored in these slices, as TensorFlow stores a
/// partitioned variable. Returns the entries of its index.
index_entries write_strings_in_slices(const std::string& prefix, const sw::tensor_shape& whole,
                                      const std::vector<sw::format::tensor_slice>& slices) {
  index_entries entries{{"s", {.dtype = sw::dtype::string, .shape = whole, .slices = slices}}};
  std::string data;
  for (const auto& slice : slices) {
    const auto encoded = sw::format::encode_strings(coordinates(slice, whole));
    entries[sw::format::slice_key("s", slice)] = {.dtype = sw::dtype::string,
                                                  .shape = shape_of(slice, whole),
                                                  .offset = static_cast<std::int64_t>(data.size()),
                                                  .size = static_cast<std::int64_t>(encoded.bytes.size()),
                                                  .crc32c = encoded.crc32c,
                                                  .slices = {}};
    data += encoded.bytes;
  }
  write_index(prefix, {}, {entries.begin(), entries.end()});
  sw::test::write_file_text(prefix + ".data-00000-of-00001", data);
  return entries;
}

}  // namespace

TEST_CASE("real and synthetic checkpoints read as other readers read them", "[checkpoint][reader]") {
  const auto folder = sw::test::testdata("");
  if (folder.empty()) { return; }
  int seen = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".index") { continue; }
    const auto prefix = (file.path().parent_path() / file.path().stem()).string();
    if (!std::filesystem::exists(prefix + ".expected.json")) { continue; }  // no results of other readers were recorded
    check_against_json(prefix, json::parse(sw::test::file_text(prefix + ".expected.json")));
    ++seen;
  }
  CHECK(seen == 12);
}

TEST_CASE("a checkpoint says its step by its name, or by its tensor, or not at all", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "model.ckpt-12");
  write_tiny(directory / "final");
  CHECK(sw::checkpoint_reader(directory / "model.ckpt-12").step() == 12);
  CHECK(sw::checkpoint_reader(directory / "final").step() == 6);
  float x = 1;
  sw::detail::checkpoint_writer writer(directory / "other");
  writer.add("x", sw::view_of(x));
  writer.commit();
  CHECK_FALSE(sw::checkpoint_reader(directory / "other").step().has_value());
}

TEST_CASE("CKPT-9 D-24 a missing checkpoint or variable is a not_found_error", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  CHECK_THROWS_AS(sw::checkpoint_reader(directory / "n"), sw::not_found_error);
  CHECK_THROWS_WITH(sw::checkpoint_reader(directory / "n"), ContainsSubstring("The passed save_path is not a valid checkpoint"));
  sw::test::write_file_text(directory / "v1", "old");
  CHECK_THROWS_WITH(sw::checkpoint_reader(directory / "v1"), ContainsSubstring("version 1"));
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_FALSE(reader.contains("v"));
  CHECK_THROWS_AS(reader.read("v"), sw::not_found_error);
  std::array<std::byte, 11> target{};
  CHECK_THROWS_AS(reader.read_into("w", target), sw::invalid_argument_error);
  CHECK_THROWS_AS(reader.read_into("x", target), sw::not_found_error);
}

TEST_CASE("a missing or shortened data file is data loss", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m", 2);
  const auto second = directory / "m.data-00001-of-00002";
  SECTION("shortened") { std::filesystem::resize_file(second, std::filesystem::file_size(second) - 1); }
  SECTION("missing") { std::filesystem::remove(second); }
  CHECK_THROWS_AS(sw::checkpoint_reader(directory / "m"), sw::data_loss_error);
}

TEST_CASE("a data file that becomes shorter while it is open is data loss", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  const sw::checkpoint_reader reader(directory / "m");
  std::filesystem::resize_file(directory / "m.data-00000-of-00001", 5);
  CHECK_THROWS_AS(reader.read("w"), sw::data_loss_error);
  CHECK_THROWS_AS(reader.verify(), sw::data_loss_error);
  CHECK_FALSE(reader.is_verified());
}

TEST_CASE("entries that point outside their shard, or to a shard that is not, are data loss", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  const auto most = std::numeric_limits<std::int64_t>::max();
  const auto refused = [&](sw::format::bundle_entry entry) {
    write_index(directory / "m", {}, {{"w", std::move(entry)}});
    CHECK_THROWS_AS(sw::checkpoint_reader(directory / "m"), sw::data_loss_error);
  };
  refused({.dtype = sw::dtype::float32, .shape = {3}, .offset = 9, .size = 12, .slices = {}});
  refused({.dtype = sw::dtype::float32, .shape = {3}, .shard_id = 1, .size = 12, .slices = {}});
  refused({.dtype = sw::dtype::uint8, .shape = {most}, .size = most, .slices = {}});
  refused({.dtype = sw::dtype::uint8, .shape = {most / 2}, .offset = most / 2, .size = most / 2, .slices = {}});
  refused({.dtype = sw::dtype::string, .shape = {1}, .size = 1 << 30, .slices = {}});
}

TEST_CASE("an entry that cannot be is reported with the path of a file, and the tensor in the message", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  const auto refused = [&](const std::string& name, sw::format::bundle_entry entry) {
    write_index(directory / "m", {}, {{name, std::move(entry)}});
    try {
      const sw::checkpoint_reader reader(directory / "m");
    } catch (const sw::data_loss_error& failure) { return failure.cause(); }
    return sw::status(sw::errc::internal, "nothing was thrown");
  };
  const auto other_shard = refused("w", {.dtype = sw::dtype::float32, .shape = {3}, .shard_id = 1, .size = 12, .slices = {}});
  CHECK(other_shard.place == directory / "m.index");
  CHECK(other_shard.message.find("tensor \"w\"") != std::string::npos);
  const auto outside = refused("w", {.dtype = sw::dtype::float32, .shape = {3}, .offset = 99, .size = 12, .slices = {}});
  CHECK(outside.place == directory / "m.data-00000-of-00001");
  CHECK(outside.message.find("tensor \"w\"") != std::string::npos);
}

TEST_CASE("strings that claim what cannot be are data loss, and cost no memory", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  write_index(directory / "m", {},
              {{"s", {.dtype = sw::dtype::string, .shape = {std::numeric_limits<std::int64_t>::max()}, .size = 20, .slices = {}}}});
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_THROWS_AS(reader.read("s"), sw::data_loss_error);
  CHECK_THROWS_AS(reader.verify(), sw::data_loss_error);
}

TEST_CASE("slices that are missing, overlap, leave gaps or do not fit are data loss", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  using sw::format::bundle_entry;
  using sw::format::slice_key;
  const bundle_entry row{.dtype = sw::dtype::float32, .shape = {1, 1}, .size = 4, .slices = {}};
  const sw::format::tensor_slice first{{0, 1}, {}};
  const sw::format::tensor_slice second{{1, 1}, {}};
  const auto refused = [&](std::vector<sw::format::tensor_slice> slices, std::vector<std::pair<std::string, bundle_entry>> parts) {
    parts.emplace_back("t", bundle_entry{.dtype = sw::dtype::float32, .shape = {2, 1}, .slices = std::move(slices)});
    write_index(directory / "m", {}, parts);
    CHECK_THROWS_AS(sw::checkpoint_reader(directory / "m"), sw::data_loss_error);
  };
  refused({first, second}, {{slice_key("t", first), row}});
  refused({first}, {{slice_key("t", first), row}});
  refused({first, first}, {{slice_key("t", first), row}});
  const sw::format::tensor_slice both{{0, 2}, {}};
  refused({both, second}, {{slice_key("t", both), row}, {slice_key("t", second), row}});
  const bundle_entry doubles{.dtype = sw::dtype::float64, .shape = {1, 1}, .size = 8, .slices = {}};
  refused({first, second}, {{slice_key("t", first), row}, {slice_key("t", second), doubles}});
  bundle_entry sliced_again = row;
  sliced_again.size = 8;
  sliced_again.slices = {{{}, {}}};
  refused({first, second}, {{slice_key("t", first), row}, {slice_key("t", second), sliced_again}});
}

TEST_CASE("a tensor of strings in slices is verified slice by slice, and read and restored as a whole", "[checkpoint][reader]") {
  const auto [whole, slices] = GENERATE(from_range(partitions()));
  const temporary_directory directory;
  write_strings_in_slices(directory / "m", whole, slices);
  const sw::checkpoint_reader reader(directory / "m");
  CAPTURE(sw::to_string(whole), slices.size());
  reader.verify();
  reader.verify("s");
  CHECK(reader.find("s")->is_partitioned);
  const auto expected = coordinates(sw::format::tensor_slice(whole.size()), whole);
  const auto read = reader.read("s");
  CHECK(read.dtype() == sw::dtype::string);
  CHECK(read.shape() == whole);
  CHECK(std::vector<std::string>(read.strings().begin(), read.strings().end()) == expected);
  CHECK_THROWS_AS(reader.pieces("s"), sw::invalid_argument_error);

  std::vector<std::string> restored(expected.size());
  sw::restore(sw::variable_list{{"s", std::span(restored), whole}}, reader);
  CHECK(restored == expected);
}

TEST_CASE("a tensor of numbers in slices is read as a whole", "[checkpoint][reader]") {
  const auto [whole, slices] = GENERATE(from_range(partitions()));
  const auto in_order = coordinates(sw::format::tensor_slice(whole.size()), whole);
  const temporary_directory directory;
  sw::detail::checkpoint_writer writer(directory / "m");
  for (const auto& slice : slices) {
    std::vector<std::int32_t> values;
    for (const auto& text : coordinates(slice, whole)) {
      values.push_back(static_cast<std::int32_t>(std::ranges::find(in_order, text) - in_order.begin()));
    }
    writer.add_slice("n", whole, slice, {sw::dtype::int32, shape_of(slice, whole), sw::view_of(values).bytes});
  }
  writer.commit();
  const auto read = sw::checkpoint_reader(directory / "m").read("n");
  CAPTURE(sw::to_string(whole), slices.size());
  REQUIRE(read.as<std::int32_t>().size() == in_order.size());
  for (std::size_t i = 0; i < in_order.size(); ++i) { CHECK(read.as<std::int32_t>()[i] == static_cast<std::int32_t>(i)); }
}

TEST_CASE("a damaged slice of a tensor of strings is data loss", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_strings_in_slices(directory / "m", {5}, {{{0, 3}}, {{3, 2}}});
  auto data = sw::test::file_text(directory / "m.data-00000-of-00001");
  data[GENERATE_COPY(std::size_t{0}, data.size() / 2, data.size() - 1)] ^= 1;
  sw::test::write_file_text(directory / "m.data-00000-of-00001", data);
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_THROWS_AS(reader.verify(), sw::data_loss_error);
  CHECK_THROWS_AS(reader.verify("s"), sw::data_loss_error);
  CHECK_THROWS_AS(reader.read("s"), sw::data_loss_error);
  CHECK_THROWS_WITH(reader.read("s"), ContainsSubstring("tensor \"s\""));
}

TEST_CASE("a slice with other numbers of strings than its bytes have is data loss, and costs no memory", "[checkpoint][reader]") {
  const temporary_directory directory;
  const auto most = std::numeric_limits<std::int64_t>::max();
  const auto claimed = GENERATE_COPY(std::int64_t{1}, std::int64_t{3}, std::int64_t{1000}, std::int64_t{1} << 40, most - 3);
  const sw::format::tensor_slice first{{0, 3}};
  auto entries = write_strings_in_slices(directory / "m", {5}, {first, {{3, 2}}});
  auto second = entries.extract(sw::format::slice_key("s", {{3, 2}}));
  const sw::format::tensor_slice other{{3, claimed}};
  second.key() = sw::format::slice_key("s", other);
  second.mapped().shape = {claimed};
  entries.insert(std::move(second));
  entries["s"].shape = {3 + claimed};
  entries["s"].slices = {first, other};
  write_index(directory / "m", {}, {entries.begin(), entries.end()});
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_THROWS_AS(reader.verify(), sw::data_loss_error);
  CHECK_THROWS_AS(reader.read("s"), sw::data_loss_error);
  if (claimed >= 1000) { CHECK_THROWS_WITH(reader.read("s"), ContainsSubstring("it has fewer bytes than strings")); }
}

TEST_CASE("the other tensors are read beside a variant or an unknown dtype", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  write_index(directory / "m", {}, {{"v", {.dtype = sw::dtype::variant, .shape = {}, .size = 3, .slices = {}}}});
  const sw::checkpoint_reader reader(directory / "m");
  reader.verify();
  CHECK_THROWS_AS(reader.read("v"), sw::unimplemented_error);
  CHECK_THROWS_AS(reader.verify("v"), sw::unimplemented_error);
  write_index(directory / "m", {.min_consumer = 9, .bad_consumers = {}}, {});
  CHECK_THROWS_AS(sw::checkpoint_reader(directory / "m"), sw::unimplemented_error);
}

TEST_CASE("a boolean that is neither true nor false is data loss", "[checkpoint][reader]") {
  const temporary_directory directory;
  const std::uint8_t two = 2;
  sw::detail::checkpoint_writer writer(directory / "b");
  writer.add("flag", {sw::dtype::boolean, {}, sw::view_of(two).bytes});
  writer.commit();
  CHECK_THROWS_AS(sw::checkpoint_reader(directory / "b").read("flag"), sw::data_loss_error);
  CHECK_THROWS_AS(sw::checkpoint_reader(directory / "b").verify(), sw::data_loss_error);  // found before anything is restored
}

TEST_CASE("the pieces of a tensor are its elements, a bounded part at a time", "[checkpoint][reader]") {
  const temporary_directory directory;
  std::vector<double> many(300'000);  // 2.3 MiB
  for (std::size_t i = 0; i < many.size(); ++i) { many[i] = static_cast<double>(i); }
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("many", sw::view_of(many));
  writer.add("none", {sw::dtype::float64, {0}, {}});
  writer.add_strings("words", {1}, std::vector<std::string>{"a"});
  writer.commit();
  const sw::checkpoint_reader reader(directory / "m");
  std::string read;
  std::size_t largest = 0;
  for (const auto piece : reader.pieces("many")) {
    largest = std::max(largest, piece.size());
    read += text_of(piece);
  }
  CHECK(read == text_of(std::as_bytes(std::span(many))));
  CHECK(largest == std::size_t{1} << 20);
  for (const auto piece : reader.pieces("none")) { FAIL(piece.size()); }
  CHECK_THROWS_AS(reader.pieces("words"), sw::invalid_argument_error);
  CHECK_THROWS_AS(reader.pieces("other"), sw::not_found_error);
}

TEST_CASE("the pieces of a damaged tensor end in an error, and one tensor can be verified alone", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "m");
  auto data = sw::test::file_text(directory / "m.data-00000-of-00001");
  data[11] = 'x';  // in the last element of "w"
  sw::test::write_file_text(directory / "m.data-00000-of-00001", data);
  const sw::checkpoint_reader reader(directory / "m");
  const auto read_all = [&](const char* name) {
    for ([[maybe_unused]] const auto piece : reader.pieces(name)) {}
  };
  reader.verify("global_step");
  CHECK_NOTHROW(read_all("global_step"));
  CHECK_THROWS_AS(reader.verify("w"), sw::data_loss_error);
  CHECK_THROWS_AS(read_all("w"), sw::data_loss_error);
  CHECK_THROWS_AS(reader.verify("v"), sw::not_found_error);
}

TEST_CASE("a reader says in how many data files, and under which checksums, tensors are stored", "[checkpoint][reader]") {
  const temporary_directory directory;
  write_tiny(directory / "a", 1);
  write_tiny(directory / "b", 2);
  const sw::checkpoint_reader a(directory / "a");
  const sw::checkpoint_reader b(directory / "b");
  CHECK(a.shards() == 1);
  CHECK(b.shards() == 2);
  CHECK(a.find("w")->crc32c != 0);
  CHECK(a.find("w")->crc32c == b.find("w")->crc32c);
  CHECK(a.find("w")->crc32c != a.find("global_step")->crc32c);
}
