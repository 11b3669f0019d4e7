// SPDX-License-Identifier: Apache-2.0
#include "events_of.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/summary/writer.hpp>

namespace sw = stepwell;
namespace summary = stepwell::summary;
namespace test = stepwell::test;

namespace {

// Returns the name of a new event file in the directory, made at the time 1700000000.
std::string made_in(const test::temporary_directory& directory, std::string suffix = "") {
  const summary::writer writer(directory.path(), {.clock = std::make_shared<sw::manual_clock>(), .filename_suffix = std::move(suffix)});
  return std::filesystem::path(writer.path()).filename();
}

}  // namespace

TEST_CASE("EVT-2 a name begins as TensorFlow's do, and never comes twice", "[summary][event_file]") {
  const test::temporary_directory directory;
  const test::temporary_directory other;
  const auto first = made_in(directory, ".mine");
  CHECK(first.starts_with("events.out.tfevents.1700000000."));
  CHECK(first.ends_with(".mine"));
  CHECK(first != made_in(other, ".mine"));
}

TEST_CASE("D-9 a new name is greater than every event file there, also after the clock was set back", "[summary][event_file]") {
  const test::temporary_directory directory;
  std::vector<std::string> names{"events.out.tfevents.1700000000.zzz", "events.out.tfevents.1700000500.host.v2"};
  for (const auto& name : names) { test::write_file_text(directory.path() + "/" + name, ""); }
  for (const char* const name : {"checkpoint", "events.out.tfevents.-1", "model.ckpt-99999999999.index"}) {
    test::write_file_text(directory.path() + "/" + name, "");
  }
  for (int i = 0; i < 20; ++i) {
    const auto name = made_in(directory);
    for (const auto& other : names) { CHECK(other < name); }
    names.push_back(name);
  }
  CHECK(names.back().starts_with("events.out.tfevents.1700000520."));
}

TEST_CASE("files made within one second stand in the order of their making", "[summary][event_file]") {
  const test::temporary_directory directory;
  std::vector<std::string> made;
  for (int i = 0; i < 12; ++i) { made.push_back(made_in(directory)); }
  CHECK(std::ranges::is_sorted(made));
  CHECK(test::file_names_in(directory.path()) == made);
}

TEST_CASE("an event file that sorts after every possible new one causes a warning", "[summary][event_file]") {
  const test::temporary_directory directory;
  test::write_file_text(directory.path() + "/zzz.tfevents", "");
  const test::log_capture log;
  made_in(directory);
  CHECK(log.contains(sw::log_level::warning, "zzz.tfevents"));
}

TEST_CASE("a file that another process creates between the check and the creation is not touched", "[summary][event_file]") {
  const test::temporary_directory directory;
  const auto files = std::make_shared<test::fault_file_system>();
  std::string taken;
  files->before_each([&](const test::event& asked) {
    if (asked.kind != test::operation::open || !taken.empty()) { return; }
    taken = asked.path;
    test::write_file_text(taken, "somebody else's");
  });
  const summary::writer writer(directory.path(), {.file_system = files, .clock = std::make_shared<sw::manual_clock>()});
  CHECK(test::file_names_in(directory.path()).size() == 2);
  CHECK(test::file_text(taken) == "somebody else's");
  CHECK(taken < writer.path());
}
