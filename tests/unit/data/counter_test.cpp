// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/data/source.hpp>

#include <cstdint>
#include <vector>

namespace data = stepwell::data;

static_assert(data::seekable_source<data::counter_source>);

TEST_CASE("a counter gives consecutive numbers, endless or up to a count", "[data][counter]") {
  auto source = data::counter({.first = 3, .count = 2, .name = "numbers"});
  std::vector<std::uint64_t> seen;
  for (; source.peek() != nullptr; source.advance()) { seen.push_back(*source.peek()); }
  CHECK(seen == std::vector<std::uint64_t>{3, 4});
  source.advance();
  CHECK(source.position() == 2);
  CHECK(source.name() == "numbers");
  CHECK(source.fingerprint() == "numbers from 3");
  CHECK(data::counter({.count = 0}).peek() == nullptr);
}

TEST_CASE("a counter that was sought continues there", "[data][counter]") {
  auto source = data::counter({.first = 100});
  source.seek(1'000'000);
  CHECK(*source.peek() == 1'000'100);
  source.advance();
  CHECK(source.position() == 1'000'001);
  source.seek(0);
  CHECK(*source.peek() == 100);
}
