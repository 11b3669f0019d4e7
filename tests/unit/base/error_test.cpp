// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/detail/failure_text.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>

#include <boost/core/demangle.hpp>
#include <cerrno>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace sw = stepwell;

TEST_CASE("a status reads as place, message and code", "[base][status]") {
  const sw::status failure(sw::errc::data_loss, "checksum does not match", "run/model.ckpt-3.index");
  CHECK(failure.to_string() == "run/model.ckpt-3.index: checksum does not match (data_loss)");
  CHECK(sw::status(sw::errc::aborted, "gone").to_string() == "gone (aborted)");
}

TEST_CASE("a full disk is an exhausted resource", "[base][status]") {
  CHECK(sw::status_from_errno(ENOSPC, "writing", "a").code == sw::errc::resource_exhausted);
  CHECK(sw::status_from_errno(EDQUOT, "writing", "a").code == sw::errc::resource_exhausted);
  CHECK(sw::status_from_errno(EROFS, "writing", "a").code == sw::errc::permission_denied);
  CHECK(sw::status_from_errno(ENOENT, "opening", "a").place == "a");
}

TEST_CASE("a result holds a value or the reason why there is none", "[base][result]") {
  const sw::result<int> good = 3;
  const sw::result<int> bad = sw::status(sw::errc::not_found, "no such tensor");
  REQUIRE(good.ok());
  CHECK(*good == 3);
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().code == sw::errc::not_found);
  CHECK(sw::result<void>().ok());
}

TEST_CASE("a result holds values that can only be moved", "[base][result]") {
  sw::result<std::unique_ptr<int>> made = std::make_unique<int>(7);
  const auto taken = std::move(made).value();
  CHECK(*taken == 7);
}

TEST_CASE("a result of one type never slips into a result of another", "[base][result]") {
  STATIC_REQUIRE_FALSE(std::is_constructible_v<sw::result<bool>, sw::result<int>>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<sw::result<bool>, sw::result<void>>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<int, sw::result<std::vector<int>>>);
  STATIC_REQUIRE(std::is_convertible_v<const char*, sw::result<std::string>>);
}

TEST_CASE("the type of an exception that nobody catches has a readable name", "[base][error]") {
  const auto name_of = [](const auto& failure) { return boost::core::demangle(typeid(failure).name()); };
  CHECK(name_of(sw::not_found_error("x")) == "stepwell::not_found_error");
  CHECK(name_of(sw::stop_iteration("x")) == "stepwell::stop_iteration");
  CHECK(sw::detail::text_of(std::make_exception_ptr(sw::not_found_error("gone"))) == "gone (not_found)");
  CHECK(sw::detail::text_of(std::make_exception_ptr(7)) == "an exception of type int");
}

TEST_CASE("an exception's code is that of its type", "[base][error]") {
  try {
    sw::throw_status({sw::errc::truncated, "ends inside a record"});
    FAIL("nothing thrown");
  } catch (const sw::data_loss_error& failure) { CHECK(failure.kind() == sw::errc::data_loss); }
  CHECK(sw::aborted_error(sw::status(sw::errc::unknown, "gone")).code() == sw::errc::aborted);
}

TEST_CASE("each code is thrown as its own type, and all of them are errors", "[base][error]") {
  CHECK_THROWS_AS(sw::throw_status({sw::errc::aborted, ""}), sw::aborted_error);
  CHECK_THROWS_AS(sw::throw_status({sw::errc::out_of_range, ""}), sw::out_of_range_error);
  CHECK_THROWS_AS(sw::throw_status({sw::errc::nan_loss, ""}), sw::nan_loss_error);
  CHECK_THROWS_AS(sw::throw_status({sw::errc::truncated, ""}), sw::data_loss_error);
  CHECK_THROWS_AS(sw::throw_status({sw::errc::unknown, ""}), sw::unknown_error);
  try {
    sw::value_or_throw(sw::result<int>(sw::status(sw::errc::not_found, "no tensor", "w")));
    FAIL("nothing thrown");
  } catch (const sw::error& failure) {
    CHECK(failure.kind() == sw::errc::not_found);
    CHECK(failure.code() == sw::errc::not_found);
    CHECK(std::string(failure.what()) == "w: no tensor (not_found)");
  }
}

TEST_CASE("the log says each message to the sink in force, from the threshold up", "[base][log]") {
  std::vector<std::string> heard;
  auto before = sw::set_log_sink(
      [&](sw::log_level level, std::string_view text) { heard.push_back(std::string(sw::to_string(level)) + " " + std::string(text)); });
  sw::log_debug("too quiet");
  sw::log_warning("loud");
  const auto threshold = sw::set_log_level(sw::log_level::error);
  sw::log_warning("not now");
  sw::set_log_level(threshold);
  sw::set_log_sink(std::move(before));
  CHECK(heard == std::vector<std::string>{"warning loud"});
}
