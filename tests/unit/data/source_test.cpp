// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/data/source.hpp>

#include <concepts>
#include <cstdint>
#include <string>

namespace data = stepwell::data;

namespace {

/// A source with only the required members.
struct bare_source {
  const int* peek() { return value < 3 ? &value : nullptr; }
  void advance() { ++value; }
  int value = 0;
};

struct bare_seekable : bare_source {
  [[nodiscard]] std::uint64_t position() const { return static_cast<std::uint64_t>(value); }
  void seek(std::uint64_t position) { value = static_cast<int>(position); }
  [[nodiscard]] std::string name() const { return "numbers"; }
};

struct no_advance {
  const int* peek();
};
struct peeks_a_value {
  int peek();
  void advance();
};
struct peeks_void {
  void* peek();
  void advance();
};
struct position_without_seek : bare_source {
  [[nodiscard]] std::uint64_t position() const;
};
struct signed_position : bare_source {
  [[nodiscard]] int position() const;
  void seek(std::uint64_t);
};
struct position_that_changes : bare_source {
  std::uint64_t position();
  void seek(std::uint64_t);
};

static_assert(data::batch_source<bare_source> && data::batch_source<bare_source&> && data::batch_source<bare_seekable>);
static_assert(!data::batch_source<no_advance> && !data::batch_source<peeks_a_value> && !data::batch_source<peeks_void>);
static_assert(!data::batch_source<const bare_source> && !data::batch_source<int>);
static_assert(data::seekable_source<bare_seekable> && data::seekable_source<bare_seekable&>);
static_assert(!data::seekable_source<bare_source> && !data::seekable_source<position_without_seek>);
static_assert(!data::seekable_source<signed_position> && !data::seekable_source<position_that_changes>);
static_assert(std::same_as<data::batch_of<bare_source&>, int>);

}  // namespace

TEST_CASE("a source without a name has the empty one", "[data][source]") {
  CHECK(data::name_of(bare_source()).empty());
  const bare_seekable named;
  CHECK(data::name_of(named) == "numbers");
}

TEST_CASE("a name that is made at each call is not referred to", "[data][source]") {
  struct renamed : bare_source {
    [[nodiscard]] std::string name() const { return "a name too long to stand inside the string itself"; }
  };
  const auto name = data::name_of(renamed());
  CHECK(name == "a name too long to stand inside the string itself");
}
