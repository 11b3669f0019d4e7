// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/format/detail/coding.hpp>

#include <string>
#include <vector>

namespace format = stepwell::format;

TEST_CASE("good text is left alone", "[format][utf8]") {
  for (const std::string text : {"", "a", "loss/train", "eight bytes and then some", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                 "12345678\xc3\xa9", "1234567\xc3\xa9", "\xef\xbf\xbd", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    CHECK(format::is_utf8(text));
    CHECK(format::to_utf8(text) == text);
  }
}

TEST_CASE("each bad byte becomes a replacement character", "[format][utf8]") {
  const std::string mark = "\xef\xbf\xbd";
  const std::vector<std::pair<std::string, std::string>> cases{{"\x80", mark},
                                                               {"a\xff"
                                                                "b",
                                                                "a" + mark + "b"},
                                                               {"\xc3", mark},
                                                               {"\xc3(", mark + "("},
                                                               {"\xe2\x82", mark + mark},
                                                               {"\xc0\xaf", mark + mark},
                                                               {"\xe0\x80\xaf", mark + mark + mark},
                                                               {"\xed\xa0\x80", mark + mark + mark},
                                                               {"\xf4\x90\x80\x80", mark + mark + mark + mark},
                                                               {"\xf5\x80\x80\x80", mark + mark + mark + mark},
                                                               {"12345678\x9c", "12345678" + mark}};
  for (const auto& [bad, good] : cases) {
    CHECK_FALSE(format::is_utf8(bad));
    CHECK(format::to_utf8(bad) == good);
    CHECK(format::is_utf8(good));
  }
}
