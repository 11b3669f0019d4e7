// SPDX-License-Identifier: Apache-2.0
#include "events_of.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/summary/metric_writer.hpp>
#include <stepwell/summary/writer.hpp>

#include <thread>

namespace sw = stepwell;
namespace summary = stepwell::summary;
namespace test = stepwell::test;
using summary::writer;

TEST_CASE("EVT-12 all names of a directory lead to the same writer", "[summary][shared]") {
  const test::temporary_directory directory;
  const auto first = writer::shared(directory.path() + "/run");
  std::filesystem::create_directory_symlink(directory.path() + "/run", directory.path() + "/link");
  CHECK(writer::shared(directory.path() + "/run/") == first);
  CHECK(writer::shared(directory.path() + "/./run/../run") == first);
  CHECK(writer::shared(directory.path() + "/link") == first);
  CHECK(writer::shared(directory.path() + "/other") != first);
  CHECK(test::file_names_in(directory.path() + "/run").size() == 1);
}

TEST_CASE("a shared writer closes with its last holder, and the next one makes a later file", "[summary][shared]") {
  const test::temporary_directory directory;
  auto first = writer::shared(directory.path());
  auto second = first;
  const auto path = first->path();
  first->add_scalar("loss", 1, 1);
  first.reset();
  CHECK(test::events_of(path).size() == 1);
  second.reset();
  CHECK(test::events_of(path).size() == 2);
  CHECK(writer::shared(directory.path())->path() > path);
}

TEST_CASE("a closed shared writer is replaced", "[summary][shared]") {
  const test::temporary_directory directory;
  const auto first = writer::shared(directory.path());
  first->close();
  const auto second = writer::shared(directory.path());
  CHECK(second != first);
  CHECK_FALSE(second->is_closed());
  CHECK(writer::shared(directory.path()) == second);
}

TEST_CASE("a metric file that is given after the shared writer was made causes a warning, and gets nothing", "[summary][shared][metrics]") {
  const test::temporary_directory directory;
  const test::log_capture log;
  summary::writer_options options;
  options.metrics = {std::make_shared<summary::csv_writer>(directory.path() + "/metrics.csv")};
  const auto first = writer::shared(directory.path(), options);
  CHECK(writer::shared(directory.path(), options) == first);
  CHECK(writer::shared(directory.path()) == first);
  CHECK_FALSE(log.contains(sw::log_level::warning, "nothing is written to it"));
  options.metrics.push_back(std::make_shared<summary::csv_writer>(directory.path() + "/late.csv"));
  CHECK(writer::shared(directory.path(), options) == first);
  CHECK(log.contains(sw::log_level::warning, "nothing is written to it"));
}

TEST_CASE("EVT-12 threads that ask at the same time get one writer", "[summary][shared]") {
  const test::temporary_directory directory;
  std::vector<std::shared_ptr<writer>> seen(4);
  std::vector<std::thread> threads;
  for (auto& one : seen) {
    threads.emplace_back([&] { one = writer::shared(directory.path()); });
  }
  for (auto& thread : threads) { thread.join(); }
  for (const auto& one : seen) { CHECK(one == seen[0]); }
  CHECK(test::file_names_in(directory.path()).size() == 1);
}
