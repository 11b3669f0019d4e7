// SPDX-License-Identifier: Apache-2.0
//
// A test in its own program, because it counts every allocation of the process.
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "unit/coro/counted_allocations.hpp"

#include <stepwell/summary/metric_writer.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace summary = stepwell::summary;

TEST_CASE("adding a number allocates nothing, with columns and without", "[summary][metrics]") {
  const stepwell::test::temporary_directory directory;
  const auto columns = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"loss", "a longer name of a column"});
  summary::csv_writer csv(directory / "metrics.csv", {.columns = columns});
  const std::size_t before = allocations;
  for (int step = 1; step <= 1'000; ++step) {
    csv.add_scalar("loss", -1.2345678901234567e-100 * step, step);
    csv.add_scalar("a longer name of a column", step, step);
  }
  CHECK(allocations - before == 0);
}
