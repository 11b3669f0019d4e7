// SPDX-License-Identifier: Apache-2.0
//
// A test in its own program, because it counts every byte that the process allocates.
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "unit/xtensor/xtensor_headers.hpp"

#include <stepwell/hooks/detail/value_text.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> allocated = 0;  // in bytes
}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false warning of g++ 12: these two do match

void* operator new(std::size_t size) {
  allocated.fetch_add(size, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) { return memory; }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sw = stepwell;

TEST_CASE("a histogram of an expression of a million elements allocates less than 64 KiB", "[xtensor][cost]") {
  const sw::test::temporary_directory directory;
  const xt::xtensor<float, 2> gradient = xt::ones<float>({1000, 1000});
  const xt::xtensor<float, 1> bias = xt::ones<float>({1000});
  const float rate = 0.1F;
  for (const auto style : {sw::format::summary_style::simple, sw::format::summary_style::tensor}) {
    sw::summary::writer out(directory.path(), {.style = style});
    const auto histogram = sw::summary::histogram("update", 0);
    const auto bytes_of = [&](const auto& value) {
      const std::size_t before = allocated;
      histogram.write(out, value, 1);
      return allocated - before;
    };
    CHECK(bytes_of(rate * gradient) < 64 * 1024);
    CHECK(bytes_of(gradient + bias) < 64 * 1024);
    CHECK(bytes_of(xt::view(gradient, xt::all(), xt::range(1, 900))) < 64 * 1024);
    CHECK(bytes_of(xt::transpose(gradient)) < 64 * 1024);
    out.close();
  }
}

TEST_CASE("a NaN guard of an expression allocates nothing", "[xtensor][cost]") {
  const xt::xtensor<float, 2> gradient = xt::ones<float>({1000, 1000});
  const std::size_t before = allocated;
  const bool is_bad = sw::detail::is_bad(0.1F * gradient, false) || sw::detail::is_bad(xt::view(gradient, xt::all(), 7), false);
  CHECK(allocated - before == 0);
  CHECK_FALSE(is_bad);
}
