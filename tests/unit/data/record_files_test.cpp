// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/record_files.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/format/events/record.hpp>

#include <sys/stat.h>
#include <zlib.h>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Returns TFRecord framing around each text.
std::string framed(const std::vector<std::string>& texts) {
  std::vector<std::byte> out;
  for (const auto& text : texts) { sw::format::append_record(out, std::as_bytes(std::span(text))); }
  return text_of(out);
}

/// Three files with four records; the second file is empty.
struct shards {
  shards() {
    write_file_text(directory / "a", framed({"one", "two"}));
    write_file_text(directory / "b", "");
    write_file_text(directory / "c", framed({"", std::string(1000, 'x')}));
  }
  [[nodiscard]] data::record_files_options options() const {
    return {.paths = {directory / "a", directory / "b", directory / "c"}, .read_size = 7};
  }

  temporary_directory directory;
  std::vector<std::string> texts = {"one", "two", "", std::string(1000, 'x')};
};

std::vector<std::string> rest_of(data::record_files& source) {
  std::vector<std::string> seen;
  for (; source.peek() != nullptr; source.advance()) { seen.push_back(text_of(*source.peek())); }
  return seen;
}

/// Returns `text` in the format that `format` means for zlib.
std::string compressed(const std::string& text, int format) {
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string made(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  made.resize(stream.total_out);
  ::deflateEnd(&stream);
  return made;
}

static_assert(data::seekable_source<data::record_files> && data::epoch_source<data::record_files>);

}  // namespace

TEST_CASE("record_files gives the records of all files in their order", "[data][record_files]") {
  const shards files;
  data::record_files source(files.options());
  CHECK(rest_of(source) == files.texts);
  CHECK(source.position() == 4 * 16 + 6 + 1000);
  source.advance();
  CHECK(source.peek() == nullptr);
  CHECK(source.fingerprint() == "a and 2 more, 1070 bytes");
}

TEST_CASE("record_files continues at a position as if it had read up to it", "[data][record_files]") {
  const shards files;
  auto options = files.options();
  options.epochs = 3;
  data::record_files unbroken(options);
  std::vector<std::uint64_t> positions;
  for (; unbroken.peek() != nullptr; unbroken.advance()) { positions.push_back(unbroken.position()); }
  REQUIRE(positions.size() == 12);
  data::record_files sought(options);
  for (std::size_t i = positions.size(); i-- > 0;) {
    sought.seek(positions[i]);
    CHECK(text_of(*sought.peek()) == files.texts[i % 4]);
    CHECK(sought.epoch() == i / 4);
    CHECK(sought.is_last_of_epoch() == (i % 4 == 3));
    CHECK(sought.is_at_epoch_start() == (i % 4 == 0));
    auto rest = rest_of(sought);
    CHECK(rest.size() == 12 - i);
  }
  CHECK(sought.position_of(0, 19) == positions[1]);
  CHECK(sought.position_of(2, 0) == positions[2]);
  CHECK_THROWS_AS(sought.position_of(3, 0), sw::out_of_range_error);
}

TEST_CASE("a damaged record is data loss that names file and offset", "[data][record_files]") {
  const temporary_directory directory;
  const auto path = directory / "damaged";
  const auto whole = framed({"one", "two"});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    write_file_text(path, bytes);
    data::record_files source({.paths = {path}});
    try {
      static_cast<void>(rest_of(source));
      FAIL("byte " << i << " was changed unnoticed");
    } catch (const sw::data_loss_error& failure) {
      CHECK_THAT(failure.what(), ContainsSubstring(path));
      CHECK_THAT(failure.what(), ContainsSubstring(i < 19 ? "offset 0" : "offset 19"));
    }
  }
  write_file_text(path, whole.substr(0, whole.size() - 1));
  data::record_files cut({.paths = {path}});
  CHECK(text_of(*cut.peek()) == "one");
  cut.advance();
  CHECK_THROWS_WITH(cut.peek(), ContainsSubstring("ends inside a record"));
  CHECK_THROWS_WITH(cut.peek(), ContainsSubstring("ends inside a record"));
  CHECK(cut.position() == 19);
}

TEST_CASE("a position between two records, a long record and a missing file are errors", "[data][record_files]") {
  const shards files;
  data::record_files source(files.options());
  source.seek(5);
  CHECK_THROWS_AS(source.peek(), sw::data_loss_error);
  source.seek(0);
  CHECK(text_of(*source.peek()) == "one");
  auto options = files.options();
  options.max_record_size = 999;
  data::record_files limited(options);
  CHECK_THROWS_WITH(rest_of(limited), ContainsSubstring("above the limit of 999"));
  CHECK_THROWS_AS(data::record_files({.paths = {files.directory / "absent"}}), sw::not_found_error);
}

TEST_CASE("options of record_files that make no sense are refused by name", "[data][record_files]") {
  const shards files;
  CHECK_THROWS_WITH(data::record_files({}), ContainsSubstring("paths is empty"));
  CHECK_THROWS_WITH(data::record_files({.paths = {"x"}, .max_record_size = 0}), ContainsSubstring("max_record_size is 0"));
  CHECK_THROWS_WITH(data::record_files({.paths = {"x"}, .read_size = 0}), ContainsSubstring("read_size is 0"));
}

TEST_CASE("record_files without a record, or over a pipe or a device, fails at once and says what to do", "[data][record_files]") {
  const shards files;
  CHECK_THROWS_WITH(data::record_files({.paths = {files.directory / "b"}}),
                    ContainsSubstring("the files have no records; check how they were written or copied") && ContainsSubstring("/b"));
  REQUIRE(::mkfifo((files.directory / "pipe").c_str(), 0666) == 0);
  for (const std::string& path : {files.directory / "pipe", std::string("/dev/null"), files.directory / "."}) {
    CHECK_THROWS_AS(data::record_files({.paths = {files.directory / "a", path}}), sw::error);
  }
  CHECK_THROWS_WITH(data::record_files({.paths = {files.directory / "pipe"}}), ContainsSubstring("give the path of another file"));
  CHECK_THROWS_AS(data::record_files({.paths = {"/proc/self/maps"}}), sw::data_loss_error);  // a regular file of size 0
}

TEST_CASE("record_files warns about an empty file beside others", "[data][record_files]") {
  const shards files;
  const sw::test::log_capture log;
  const data::record_files source(files.options());
  CHECK(log.contains(sw::log_level::warning, "these files are empty and have no records: " + (files.directory / "b")));
}

TEST_CASE("record_files reads files compressed with gzip and zlib, and continues at each position", "[data][record_files]") {
  const shards files;
  const auto first = framed({"one", "two"});
  const auto last = framed({"", std::string(1000, 'x')});
  for (const int format : {MAX_WBITS, MAX_WBITS + 16}) {
    write_file_text(files.directory / "a", compressed(first, format));
    write_file_text(files.directory / "c", compressed(last.substr(0, 20), format) + compressed(last.substr(20), format));
    for (const std::size_t read_size : {1U, 7U, 1U << 18U}) {
      auto options = files.options();
      options.read_size = read_size;
      options.epochs = 2;
      data::record_files whole(options);
      CHECK(whole.fingerprint() == "a and 2 more, 1070 bytes");
      std::vector<std::pair<std::uint64_t, std::string>> expected;
      for (; whole.peek() != nullptr; whole.advance()) { expected.emplace_back(whole.position(), text_of(*whole.peek())); }
      REQUIRE(expected.size() == 8);
      data::record_files jumping(options);
      for (const std::size_t i : {7U, 3U, 0U, 5U, 1U, 6U, 2U, 4U, 4U}) {
        jumping.seek(expected[i].first);
        CHECK(text_of(*jumping.peek()) == expected[i].second);
      }
    }
  }
}

TEST_CASE("damaged and incomplete compressed files are errors wherever they are cut", "[data][record_files]") {
  const shards files;
  const auto options = data::record_files_options{.paths = {files.directory / "a"}};
  const auto whole = compressed(framed({"one", "two"}), MAX_WBITS + 16);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file_text(files.directory / "a", whole.substr(0, size));
    const auto read = [&] {
      data::record_files source(options);
      return rest_of(source);
    };
    CHECK_THROWS_AS(read(), sw::data_loss_error);
  }
}

TEST_CASE("tf.Example messages in record files are parsed on several threads, in order", "[data][record_files]") {
  const temporary_directory directory;
  std::vector<std::string> messages;
  for (std::int64_t i = 0; i < 100; ++i) {
    messages.push_back(encode(sw::format::example{{{"label", std::vector{i}}, {"pixels", std::vector{0.5F, static_cast<float>(i)}}}}));
  }
  write_file_text(directory / "train", framed(messages));
  auto source = data::parallel_map(data::record_files({.paths = {directory / "train"}}), data::parse_example, {.threads = 3, .depth = 8});
  std::int64_t next = 0;
  for (; source.peek() != nullptr; source.advance(), ++next) {
    CHECK(sw::value_or_throw(integers(*source.peek(), "label")).front() == next);
    CHECK(source.is_last_of_epoch() == (next == 99));
  }
  CHECK(next == 100);
  CHECK_THROWS_AS(data::parse_example(std::as_bytes(std::span(std::string_view("\x0a\xff")))), sw::data_loss_error);
}
