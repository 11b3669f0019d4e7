// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#include <cstdlib>
#include <ctime>
#include <iomanip>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

namespace sw = stepwell;
using sw::test::temporary_directory;

namespace {

/// A name with control bytes: clear screen, alert, delete, C1 as one byte and as UTF-8, and an invalid UTF-8 end.
const std::string hostile = "w\x1b[2J\a\x7f\x9b\xc2\x9b\xff";
const std::string harmless = "w\\x1b[2J\\x07\\x7f\\x9b\\xc2\\x9b\\xff";

/// Returns the bytes that `act` writes to standard error.
template<class Act>
std::string standard_error_of(const Act& act) {
  const temporary_directory directory;
  const int before = ::dup(STDERR_FILENO);
  const int file = ::open((directory / "stderr").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  ::dup2(file, STDERR_FILENO);
  act();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(file);
  return sw::test::file_text(directory / "stderr");
}

}  // namespace

TEST_CASE("what() of an error shows control bytes of names and paths escaped", "[base][error]") {
  const sw::not_found_error missing("no tensor \"" + hostile + "\"", "run/" + hostile);
  CHECK(std::string(missing.what()) == "run/" + harmless + ": no tensor \"" + harmless + "\" (not_found)");
  CHECK(missing.cause().place == "run/" + hostile);  // unchanged, for programs
}

TEST_CASE("what() of an error keeps the ends of lines, and text in any language", "[base][error]") {
  CHECK(std::string(sw::not_found_error("missing:\n  Gewichte/\u00e4\u03c0\u4e2d").what()) ==
        "missing:\n  Gewichte/\u00e4\u03c0\u4e2d (not_found)");
}

TEST_CASE("the default log writes control bytes escaped", "[base][log]") {
  const auto before = sw::set_log_sink({});
  const auto written = standard_error_of([] { sw::log_warning("tensor " + hostile); });
  sw::set_log_sink(before);
  CHECK(written.ends_with(" stepwell warning: tensor " + harmless + "\n"));
}

TEST_CASE("a line of the default log begins with the date and the time, where there is no terminal", "[base][log]") {
  const auto before = sw::set_log_sink({});
  const auto written = standard_error_of([] { sw::log_info("a message"); });
  sw::set_log_sink(before);
  CHECK(std::regex_match(written, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ stepwell info: a message\n)")));
}

TEST_CASE("a line of the default log has the time in UTC in every time zone", "[base][log]") {
  const auto before = sw::set_log_sink({});
  const char* const given = ::getenv("TZ");
  const std::string zone = given == nullptr ? "" : given;
  const auto seconds_in = [](const char* in_zone) {
    ::setenv("TZ", in_zone, 1);
    ::tzset();
    std::istringstream line(standard_error_of([] { sw::log_info("a message"); }));
    std::tm parts{};
    line >> std::get_time(&parts, "%Y-%m-%d %H:%M:%SZ");
    CHECK(line.good());
    return ::timegm(&parts);
  };
  const auto east = seconds_in("EAST-10");
  const auto west = seconds_in("WEST+8");
  given == nullptr ? ::unsetenv("TZ") : ::setenv("TZ", zone.c_str(), 1);
  ::tzset();
  sw::set_log_sink(before);
  CHECK(west - east >= 0);
  CHECK(west - east < 3600);
}

TEST_CASE("a name with the end of a line cannot begin a line of the default log", "[base][log]") {
  const auto before = sw::set_log_sink({});
  const auto written = standard_error_of([] { sw::log_warning("tensor \"w\nstepwell error: forged\r\""); });
  sw::set_log_sink(before);
  CHECK(written.ends_with(" stepwell warning: tensor \"w\n  stepwell error: forged\\x0d\"\n"));
}
