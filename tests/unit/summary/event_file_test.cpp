// SPDX-License-Identifier: Apache-2.0
#include "events_of.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/summary/detail/event_file.hpp>

namespace sw = stepwell;
namespace summary = stepwell::summary;
namespace test = stepwell::test;

namespace {

constexpr auto now = sw::clock::wall_time(std::chrono::seconds(1'700'000'000));

sw::result<summary::new_event_file> make_in(const std::string& directory, std::string_view suffix = "") {
  return summary::make_event_file(sw::io::posix_file_system(), directory, now, suffix);
}

}  // namespace

TEST_CASE("EVT-2 a name begins as TensorFlow's do, and never comes twice", "[summary][event_file]") {
  const auto first = summary::next_event_file_name({}, 1'700'000'000, ".mine");
  CHECK(first.starts_with("events.out.tfevents.1700000000."));
  CHECK(first.ends_with(".mine"));
  CHECK(first != summary::next_event_file_name({}, 1'700'000'000, ".mine"));
  CHECK(summary::next_event_file_name({}, 7).starts_with("events.out.tfevents.0000000007."));
}

TEST_CASE("D-9 a new name is greater than every event file there, also after the clock was set back", "[summary][event_file]") {
  std::vector<std::string> names{"checkpoint", "events.out.tfevents.1700000000.zzz", "events.out.tfevents.1700000500.host.v2",
                                 "events.out.tfevents.nonsense", "model.ckpt-99999999999.index"};
  for (int i = 0; i < 20; ++i) {
    const auto name = summary::next_event_file_name(names, 1'600'000'000);
    for (const auto& other : names) {
      if (other.starts_with("events.out.tfevents.1")) { CHECK(other < name); }
    }
    names.push_back(name);
  }
  CHECK(names.back().starts_with("events.out.tfevents.1700000520."));
}

TEST_CASE("files made within one second stand in the order of their making", "[summary][event_file]") {
  const test::temporary_directory directory;
  std::vector<std::string> made;
  for (int i = 0; i < 12; ++i) {
    auto file = make_in(directory.path());
    REQUIRE(file.ok());
    made.push_back(std::filesystem::path(file->path).filename());
  }
  CHECK(std::ranges::is_sorted(made));
  CHECK(test::file_names_in(directory.path()) == made);
}

TEST_CASE("an event file that sorts after ours whatever we do is warned of", "[summary][event_file]") {
  const test::temporary_directory directory;
  test::write_file_text(directory.path() + "/zzz.tfevents", "");
  const test::log_capture log;
  REQUIRE(make_in(directory.path()).ok());
  CHECK(log.contains(sw::log_level::warning, "zzz.tfevents"));
}

TEST_CASE("a name that somebody takes between looking and making is not touched", "[summary][event_file]") {
  const test::temporary_directory directory;
  const auto files = std::make_shared<test::fault_file_system>();
  bool was_taken = false;
  files->before_each([&](const test::event& asked) {
    if (asked.kind == test::operation::open && !std::exchange(was_taken, true)) { test::write_file_text(asked.path, "somebody else's"); }
  });
  auto made = summary::make_event_file(files, directory.path(), now, "");
  REQUIRE(made.ok());
  const auto names = test::file_names_in(directory.path());
  REQUIRE(names.size() == 2);
  CHECK(test::file_text(directory.path() + "/" + names[0]) == "somebody else's");
  CHECK(directory.path() + "/" + names[1] == made->path);
}

TEST_CASE("a sync says so when the file has lost its name", "[summary][event_file]") {
  const test::temporary_directory directory;
  auto made = make_in(directory.path());
  REQUIRE(made.ok());
  CHECK(made->sink->sync().ok());
  std::filesystem::remove(made->path);
  const auto synced = made->sink->sync();
  REQUIRE_FALSE(synced.ok());
  CHECK(synced.error().code == sw::errc::not_found);
  CHECK(synced.error().place == made->path);
}

TEST_CASE("where there is no directory there is an error", "[summary][event_file]") {
  const test::temporary_directory directory;
  CHECK(make_in(directory.path() + "/none").error().code == sw::errc::not_found);
}
