// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/io/file_system.hpp>

#include <filesystem>

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

TEST_CASE("an absolute path does not depend on the working directory any more", "[io][path]") {
  const auto here = std::filesystem::current_path().string();
  CHECK(*io::absolute_path("run/a") == here + "/run/a");
  CHECK(*io::absolute_path("./run/") == here + "/run/");
  CHECK(*io::absolute_path(".//.//run") == here + "/run");
  CHECK(*io::absolute_path(".") == here);
  CHECK(*io::absolute_path("./") == here);
  CHECK(*io::absolute_path("../run") == here + "/../run");
  CHECK(*io::absolute_path("/run/./a") == "/run/./a");
  CHECK(io::absolute_path("")->empty());
}
