// SPDX-License-Identifier: Apache-2.0
#include <stepwell/format/checkpoint/detail/string_tensor.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace stepwell;
using namespace stepwell::format;

TEST_CASE("strings are read back, with the checksum they were written with", "[format][string_tensor]") {
  const std::vector<std::string> elements{"", "a", std::string(200, 'b'), std::string(20'000, '\xFF'), std::string("\0x", 2)};
  const auto encoded = encode_strings(elements);
  const auto decoded = decode_strings(encoded.bytes, elements.size());
  REQUIRE(decoded);
  CHECK(decoded->elements == elements);
  CHECK(decoded->crc32c == encoded.crc32c);
}

TEST_CASE("no strings are the four bytes TensorFlow writes, and no byte at all is read too", "[format][string_tensor]") {
  CHECK(encode_strings({}).bytes == "\xd8\xea\x82\xa2");
  CHECK(decode_strings("\xd8\xea\x82\xa2", 0)->elements.empty());
  CHECK(decode_strings("", 0)->elements.empty());
  CHECK_FALSE(decode_strings("", 1).ok());
}

TEST_CASE("a flipped bit in a string tensor changes its checksum or is an error", "[format][string_tensor]") {
  const std::vector<std::string> elements{"one", "", "three"};
  const auto encoded = encode_strings(elements);
  for (std::size_t bit = 0; bit < 8 * encoded.bytes.size(); ++bit) {
    auto bytes = encoded.bytes;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << (bit % 8));
    const auto decoded = decode_strings(bytes, elements.size());
    CHECK((!decoded || decoded->crc32c != encoded.crc32c));
  }
}

TEST_CASE("a string tensor cut at any length, or too long, is an error", "[format][string_tensor]") {
  const std::vector<std::string> elements{"one", "two", "three"};
  const auto whole = encode_strings(elements).bytes;
  for (std::size_t length = 0; length < whole.size(); ++length) { CHECK_FALSE(decode_strings(whole.substr(0, length), 3).ok()); }
  CHECK_FALSE(decode_strings(whole + "x", 3).ok());
}

TEST_CASE("numbers of strings and lengths that cannot be cost no memory", "[format][string_tensor]") {
  CHECK_FALSE(decode_strings("\x01\x02\x03", std::numeric_limits<std::uint64_t>::max()).ok());
  CHECK_FALSE(decode_strings(std::string(9, '\xFF') + "\x01", 1).ok());  // one string of 2^64 - 1 bytes
  CHECK_FALSE(decode_strings(std::string("\x05\x05\x05\x05\x00\x00\x00\x00", 8), 5).ok());
  CHECK_FALSE(decode_strings(std::string(11, '\xFF'), 1).ok());  // a varint that does not end
}

TEST_CASE("a string tensor is checked piece by piece as it is decoded whole", "[format][string_tensor]") {
  const auto piece_size = GENERATE(std::size_t{1}, std::size_t{3}, std::size_t{1000});
  const auto checked = [&](std::string_view bytes, std::uint64_t count) -> result<std::uint32_t> {
    string_checker checker(bytes.size(), count);
    for (std::size_t at = 0; at < bytes.size(); at += piece_size) {
      const auto piece = bytes.substr(at, piece_size);
      const bool is_hole = piece.find_first_not_of('\0') == std::string_view::npos;
      auto fed = is_hole ? checker.feed_zeros(piece.size()) : checker.feed(std::as_bytes(std::span(piece)));
      if (!fed) { return std::move(fed).error(); }
    }
    return checker.finish();
  };
  const auto check_agreement = [&](const std::string& bytes, std::uint64_t count) {
    const auto whole = decode_strings(bytes, count);
    const auto pieces = checked(bytes, count);
    CHECK(whole.ok() == pieces.ok());
    if (whole && pieces && !bytes.empty()) { CHECK(whole->crc32c == *pieces); }
  };
  for (const std::vector<std::string>& elements : {std::vector<std::string>{},
                                                   {""},
                                                   {"one", "", "three"},
                                                   std::vector<std::string>(50),
                                                   {std::string(300, '\0'), "", std::string(20, 'x')}}) {
    const auto bytes = encode_strings(elements).bytes;
    check_agreement(bytes, elements.size());
    check_agreement(bytes + "x", elements.size());
    for (std::size_t length = 0; length < bytes.size(); length += 1 + length / 8) {
      check_agreement(bytes.substr(0, length), elements.size());
    }
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 1 + bit / 16) {
      auto flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << (bit % 8));
      check_agreement(flipped, elements.size());
    }
  }
  check_agreement(std::string(9, '\xFF') + "\x01", 1);
  check_agreement(std::string(11, '\xFF'), 1);
}
