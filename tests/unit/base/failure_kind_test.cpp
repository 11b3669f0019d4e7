// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/detail/failure_kind.hpp>

#include <exception>
#include <optional>
#include <stdexcept>

namespace sw = stepwell;

TEST_CASE("the kind of a failure is the code of its exception, and empty for exceptions of other libraries", "[failure_kind]") {
  using sw::detail::kind_of;
  CHECK(kind_of(std::make_exception_ptr(sw::aborted_error("a peer has gone"))) == sw::errc::aborted);
  CHECK(kind_of(std::make_exception_ptr(sw::out_of_range_error("no more batches"))) == sw::errc::out_of_range);
  CHECK(kind_of(std::make_exception_ptr(sw::error(sw::status(sw::errc::truncated, "half a record")))) == sw::errc::truncated);
  CHECK(kind_of(std::make_exception_ptr(std::runtime_error("of the program"))) == std::nullopt);
  CHECK(kind_of(std::make_exception_ptr(1)) == std::nullopt);
  CHECK(kind_of(nullptr) == std::nullopt);
}

TEST_CASE("only aborted and unavailable operations are transient failures", "[failure_kind]") {
  using sw::detail::is_transient;
  CHECK(is_transient(sw::errc::aborted));
  CHECK(is_transient(sw::errc::unavailable));
  CHECK_FALSE(is_transient(sw::errc::data_loss));
  CHECK_FALSE(is_transient(sw::errc::resource_exhausted));
  CHECK_FALSE(is_transient(std::nullopt));
}
