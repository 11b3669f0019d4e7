// SPDX-License-Identifier: Apache-2.0
#include "bytes.hpp"

#include <stepwell/format/detail/coding.hpp>
#include <stepwell/kernel/detail/crc32c.hpp>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace test = stepwell::test;
using test::bytes_of;

namespace {

std::string three_records() {
  std::vector<std::byte> out;
  for (const auto* text : {"first", "", "and a third one"}) { format::append_record(out, bytes_of(text)); }
  return test::text_of(out);
}

// The positions where the records of `three_records` begin, and where the last one ends.
constexpr std::size_t edges[] = {0, 21, 37, 68};

std::size_t whole_before(std::size_t offset) {
  std::size_t whole = 0;
  while (whole < 3 && edges[whole + 1] <= offset) { ++whole; }
  return whole;
}

}  // namespace

TEST_CASE("EVT-4 a record is framed as the format says, to the byte", "[format][record]") {
  // The first record of an event file, as TensorFlow wrote it in 2020.
  const std::string data(
      "\x09\x00\x00\xc0\x26\x51\xa1\xd7\x41\x1a\x0d"
      "brain.Event:2",
      24);
  const std::string expected = std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12) + data + "\x9f\xcf\x2a\x6f";
  std::vector<std::byte> out;
  format::append_record(out, bytes_of(data));
  CHECK(test::text_of(out) == expected);
}

TEST_CASE("a decoder gives back what was framed, however it is fed", "[format][record]") {
  const auto stream = three_records();
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    format::record_decoder decoder;
    std::vector<std::string> read;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      decoder.feed(bytes_of(std::string_view(stream).substr(at, piece)));
      for (auto next = decoder.next(); next.ok(); next = decoder.next()) { read.push_back(test::text_of(*next)); }
    }
    CHECK(read == std::vector<std::string>{"first", "", "and a third one"});
    CHECK(decoder.pending() == 0);
    CHECK(decoder.position() == stream.size());
  }
}

TEST_CASE("a stream cut anywhere gives the whole records and says that the rest is not there yet", "[format][record]") {
  const auto stream = three_records();
  for (std::size_t size = 0; size <= stream.size(); ++size) {
    const auto read = test::records_of(std::string_view(stream).substr(0, size));
    const auto whole = whole_before(size);
    CHECK(read.data.size() == whole);
    CHECK(read.ended_by == sw::errc::truncated);
    CHECK(read.pending == size - edges[whole]);
  }
}

TEST_CASE("a flipped bit anywhere is found, and the records before it are good", "[format][record]") {
  const auto good = three_records();
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto stream = good;
    stream[bit / 8] = static_cast<char>(stream[bit / 8] ^ (1 << bit % 8));
    const auto read = test::records_of(stream);
    CHECK(read.data.size() == whole_before(bit / 8));
    CHECK(read.ended_by == sw::errc::data_loss);
  }
}

TEST_CASE("a decoder that met damage says so again, with the offset", "[format][record]") {
  auto stream = three_records();
  stream[edges[1] + 9] ^= 1;
  format::record_decoder decoder;
  decoder.feed(bytes_of(stream));
  REQUIRE(decoder.next().ok());
  for (int i = 0; i < 2; ++i) {
    const auto next = decoder.next();
    REQUIRE_FALSE(next.ok());
    CHECK(next.error().code == sw::errc::data_loss);
    CHECK(next.error().place == "offset 21");
    decoder.feed(bytes_of(three_records()));
  }
}

TEST_CASE("a decoder skips a record with damaged data, and no record with a damaged length", "[format][record]") {
  auto stream = three_records();
  stream[format::record_header_size] ^= 1;
  format::record_decoder decoder;
  decoder.feed(bytes_of(stream));
  REQUIRE_FALSE(decoder.next().ok());
  CHECK(decoder.skip());
  CHECK(decoder.position() == edges[1]);
  CHECK(decoder.next().ok());

  stream = three_records();
  stream[0] ^= 1;
  for (const std::size_t size : {stream.size(), edges[1] - 1, std::size_t{0}}) {
    format::record_decoder other;
    other.feed(bytes_of(stream).first(size));
    CHECK_FALSE(other.skip());
    CHECK(other.position() == 0);
  }
  format::record_decoder limited(4);
  limited.feed(bytes_of(three_records()));
  CHECK_FALSE(limited.skip());
}

TEST_CASE("a length above the limit is rejected, even with a good checksum", "[format][record]") {
  std::string header(12, '\0');
  auto* const at = reinterpret_cast<std::byte*>(header.data());
  for (const std::uint64_t length : {std::uint64_t{1001}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 15}) {
    format::store_little(at, length);
    format::store_little(at + 8, sw::kernel::crc32c_mask(sw::kernel::crc32c({at, 8})));
    const auto read = format::read_record(bytes_of(header), 1000);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == sw::errc::data_loss);
    const auto unlimited = format::read_record(bytes_of(header), ~std::uint64_t{0});
    REQUIRE_FALSE(unlimited.ok());
    CHECK(unlimited.error().code == sw::errc::truncated);
  }
  format::store_little(at, std::uint64_t{1000});
  format::store_little(at + 8, sw::kernel::crc32c_mask(sw::kernel::crc32c({at, 8})));
  CHECK(format::read_record(bytes_of(header), 1000).error().code == sw::errc::truncated);
}
