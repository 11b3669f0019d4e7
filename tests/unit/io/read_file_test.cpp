// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/io/atomic_file.hpp>
#include <stepwell/io/detail/read_file.hpp>

#include <string>

namespace sw = stepwell;
namespace io = stepwell::io;
using stepwell::test::temporary_directory;

TEST_CASE("a whole file is read, up to the size the caller allows", "[io][read_file]") {
  const temporary_directory directory;
  const auto files = io::posix_file_system();
  REQUIRE(io::write_file_atomically(*files, directory / "a", std::string_view("four")).ok());
  CHECK(*io::read_text_file(*files, directory / "a", 4) == "four");
  CHECK(io::read_file(*files, directory / "a", 4)->size() == 4);
  const auto refused = io::read_file(*files, directory / "a", 3);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == sw::errc::invalid_argument);
  CHECK(refused.error().message.find("it has 4 bytes, at most 3 are expected") != std::string::npos);
}

TEST_CASE("reading what is not a file is an error", "[io][read_file]") {
  const temporary_directory directory;
  const auto files = io::posix_file_system();
  CHECK(io::read_file(*files, directory / "a", 10).error().code == sw::errc::not_found);
  CHECK_FALSE(io::read_file(*files, directory.path(), 1 << 20).ok());
}
