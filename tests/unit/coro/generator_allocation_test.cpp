// SPDX-License-Identifier: Apache-2.0
#include "counted_allocations.hpp"
#include "support/catch.hpp"

#include <stepwell/coro/generator.hpp>

namespace {

stepwell::generator<int> up_to(int end) {
  for (int i = 0; i < end; ++i) { co_yield i; }
}

}  // namespace

TEST_CASE("a generator allocates once, however many values it yields", "[coro][generator]") {
  const auto before = allocations.load();
  long sum = 0;
  for (const int value : up_to(100'000)) { sum += value; }
  const auto after = allocations.load();
  CHECK(sum == 4999950000L);
  CHECK(after - before == 1);
}
