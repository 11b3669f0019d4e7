// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/io/file_system.hpp>

namespace io = stepwell::io;

TEST_CASE("a path is joined with one slash", "[io][path]") {
  CHECK(io::join_path("run", "a") == "run/a");
  CHECK(io::join_path("run/", "a") == "run/a");
  CHECK(io::join_path("/", "a") == "/a");
  CHECK(io::join_path("", "a") == "a");
}

TEST_CASE("a path is taken apart into the directory and the name", "[io][path]") {
  CHECK(io::parent_directory("run/a") == "run");
  CHECK(io::parent_directory("run//a/") == "run");
  CHECK(io::parent_directory("a") == ".");
  CHECK(io::parent_directory("/a") == "/");
  CHECK(io::parent_directory("/") == "/");
  CHECK(io::base_name("run/a") == "a");
  CHECK(io::base_name("run/a/") == "a");
  CHECK(io::base_name("a") == "a");
}
