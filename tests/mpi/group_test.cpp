// SPDX-License-Identifier: Apache-2.0
//
// All processes of a job run these tests together.
#include <stepwell/base/error.hpp>
#include <stepwell/mpi/mpi.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

std::shared_ptr<sw::group> formed(const sw::mpi::options& options = {}) {
  auto made = sw::mpi::make_group(nullptr, nullptr, options);
  made->form({.time = sw::system_clock(), .stop = {}, .until = sw::clock::time_point::max()}, {});
  return made;
}

/// The group of this job. MPI is finalised when the program ends.
sw::group& all() {
  static const auto made = formed();
  return *made;
}

/// Returns the bytes of `values` as a text.
template<class T>
std::string bits_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

constexpr std::array<std::size_t, 4> lengths{0, 1, 1000, 1'000'000};

}  // namespace

TEMPLATE_TEST_CASE("A sum adds each element over all ranks", "[mpi]", float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                   std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::complex<float>, std::complex<double>) {
  for (const auto length : lengths) {
    std::vector<TestType> values(length);
    std::vector<TestType> expected(length);
    for (std::size_t i = 0; i < length; ++i) {
      for (int rank = 0; rank < all().size(); ++rank) {
        const auto value = static_cast<TestType>(static_cast<float>(i % 11 + 2 * static_cast<std::size_t>(rank)));
        if (rank == all().rank()) { values[i] = value; }
        expected[i] = static_cast<TestType>(expected[i] + value);
      }
    }
    all().sum(values);
    CHECK((values == expected));
  }
}

TEST_CASE("All ranks get the same bits from a sum", "[mpi]") {
  std::mt19937 random(static_cast<unsigned>(all().rank()) + 1);
  std::uniform_real_distribution<double> exponent(-20, 20);
  for (const std::size_t length : {1U, 2U, 3U, 5U, 17U, 100U, 1000U, 1023U, 2500U, 5000U, 20'000U, 65'537U, 300'000U, 1'000'000U}) {
    std::vector<float> floats(length);
    std::vector<double> doubles(length);
    for (std::size_t i = 0; i < length; ++i) {
      doubles[i] = std::exp2(exponent(random)) * (random() % 2 == 0 ? 1 : -1);
      floats[i] = static_cast<float>(doubles[i]);
    }
    all().sum(floats);
    all().sum(doubles);
    CHECK_NOTHROW(all().compare("sum of floats", bits_of(floats)));
    CHECK_NOTHROW(all().compare("sum of doubles", bits_of(doubles)));
  }
}

TEST_CASE("A sum of which all other ranks give zero has the bits of the only term", "[mpi]") {
  std::vector<float> lanes(1000);
  std::vector<float> terms(1000);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    terms[i] = 0.1F * static_cast<float>(i);
    if (static_cast<int>(i) % all().size() == all().rank()) { lanes[i] = terms[i]; }
  }
  all().sum(lanes);
  CHECK(lanes == terms);
}

TEST_CASE("A NaN of one rank is a NaN in the sum of all ranks", "[mpi]") {
  for (const auto length : {1, 1000}) {
    std::vector<float> values(static_cast<std::size_t>(length), 1.0F);
    if (all().rank() == all().size() - 1) { values[0] = std::numeric_limits<float>::quiet_NaN(); }
    all().sum(values);
    CHECK(values[0] != values[0]);
  }
}

TEST_CASE("A broadcast copies the elements of rank 0", "[mpi]") {
  for (const auto length : lengths) {
    std::vector<std::int32_t> values(length);
    std::iota(values.begin(), values.end(), all().rank() * 17);
    all().broadcast(values);
    std::vector<std::int32_t> expected(length);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK((values == expected));
  }
}

TEST_CASE("A state of any size is shared", "[mpi]") {
  for (const auto length : lengths) {
    std::vector<std::byte> state(all().rank() == 0 ? length : 3, std::byte(all().rank() == 0 ? 7 : 1));
    all().share(state);
    CHECK((state == std::vector<std::byte>(length, std::byte{7})));
  }
}

TEST_CASE("A comparison names the ranks that differ", "[mpi]") {
  CHECK_NOTHROW(all().compare("model", "linear"));
  if (all().size() == 1) { return; }
  const auto last = all().size() - 1;
  CHECK_THROWS_WITH(all().compare("model", all().rank() == last ? "other" : "linear"), ContainsSubstring("rank " + std::to_string(last)));
}

TEST_CASE("A second group is independent of the first one", "[mpi]") {
  std::int64_t one = 1;
  {
    const auto second = formed({.timeout_secs = 0});
    second->sum(one);
    CHECK(one == second->size());
  }
  one = 1;
  all().sum(one);
  CHECK(one == all().size());
}

TEST_CASE("Negative options and a missing clock are errors", "[mpi]") {
  CHECK_THROWS_AS(sw::mpi::make_group(nullptr, nullptr, {.timeout_secs = -1}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::mpi::make_group(nullptr, nullptr, {.parts = -1}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::mpi::make_group(nullptr, nullptr, {.clock = nullptr}), sw::invalid_argument_error);
}

TEST_CASE("A group of one process can be formed again, and its failure does not end the process", "[mpi]") {
  if (all().size() > 1) { return; }
  const auto group = formed();
  group->abandon("a test");
  group->form({.time = sw::system_clock(), .stop = {}}, {});
  CHECK(group->generation() == 2);
}
