// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/io/atomic_file.hpp>
#include <stepwell/io/fenced_directory.hpp>
#include <stepwell/io/file_system.hpp>

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace io = stepwell::io;
using io::fenced_directory;
using sw::test::fault_file_system;
using sw::test::file_text;
using sw::test::operation;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Returns the names of all files below `directory` with their content, without those of the writers' own directories.
std::map<std::string, std::string> content_of(const std::string& directory) {
  std::map<std::string, std::string> all;
  for (auto entry = std::filesystem::recursive_directory_iterator(directory); entry != std::filesystem::recursive_directory_iterator();
       ++entry) {
    const auto path = entry->path().string();
    if (io::is_fence_name(io::base_name(path))) {
      entry.disable_recursion_pending();
      continue;
    }
    all[path] = entry->is_directory() ? "directory" : file_text(path);
  }
  return all;
}

/// Returns the names in `directory` that belong to the fence.
std::vector<std::string> writers_in(const std::string& directory) {
  auto names = io::posix_file_system()->list(directory).value();
  std::erase_if(names, [](const auto& name) { return !name.starts_with(".stepwell"); });
  return names;
}

/// Returns the number of files and directories in the own directory of the newest writer.
std::size_t leftovers_in(const std::string& directory) {
  const auto own = io::join_path(directory, writers_in(directory).back());
  const auto names = io::posix_file_system()->list(own).value();
  REQUIRE(names.size() == 1);
  return io::posix_file_system()->list(io::join_path(own, names.front()))->size();
}

/// All kinds of changes of a directory.
void change_everything(io::file_system& files, const std::string& directory) {
  static_cast<void>(io::write_file_atomically(files, directory + "/state", std::string_view("state")));
  static_cast<void>(files.create_directories(directory + "/best/deep"));
  static_cast<void>(io::write_file_atomically(files, directory + "/best/deep/model", std::string_view("model")));
  if (const auto log = files.open(directory + "/log", io::open_mode::append)) {
    static_cast<void>((*log)->write_at(0, bytes("late")));
    static_cast<void>((*log)->sync());
  }
  if (const auto event = files.open(directory + "/event", io::open_mode::create_new)) {
    static_cast<void>((*event)->write_at(0, bytes("late")));
  }
  static_cast<void>(files.remove(directory + "/old"));
  static_cast<void>(files.sync_directory(directory));
}

}  // namespace

TEST_CASE("a directory with a fence is changed like any other", "[io][fence]") {
  const temporary_directory directory;
  fenced_directory files(directory / "run");
  CHECK(*files.open_fence() == 1);
  REQUIRE(io::write_file_atomically(files, directory / "run/state", std::string_view("one")).ok());
  CHECK(file_text(directory / "run/state") == "one");
  REQUIRE(files.create_directories(directory / "run/best/deep").ok());
  REQUIRE(files.create_directories(directory / "run/best/deep").ok());
  REQUIRE(io::write_file_atomically(files, directory / "run/best/deep/model", std::string_view("two")).ok());
  CHECK(file_text(directory / "run/best/deep/model") == "two");
  REQUIRE(files.remove(directory / "run/best/deep/model").ok());
  REQUIRE(files.remove(directory / "run/best/deep").ok());
  CHECK(content_of(directory / "run") ==
        std::map<std::string, std::string>{{directory / "run/state", "one"}, {directory / "run/best", "directory"}});
  CHECK(files.remove(directory / "run/nothing").error().code == sw::errc::not_found);
  CHECK(leftovers_in(directory / "run") == 0);
}

TEST_CASE("a directory that is not empty is not removed through a fence", "[io][fence]") {
  const temporary_directory directory;
  fenced_directory files(directory.path());
  REQUIRE(io::write_file_atomically(files, directory / "a", std::string_view("x")).ok());
  REQUIRE(files.create_directories(directory / "best").ok());
  REQUIRE(io::write_file_atomically(files, directory / "best/model", std::string_view("x")).ok());
  CHECK_FALSE(files.remove(directory / "best").ok());
  CHECK(file_text(directory / "best/model") == "x");
}

TEST_CASE("a directory is not created through a fence in place of a file, after an error, or outside a directory that was removed",
          "[io][fence]") {
  const temporary_directory directory;
  const auto disk = std::make_shared<fault_file_system>();
  fenced_directory files(directory / "run", disk);
  REQUIRE(io::write_file_atomically(files, directory / "run/file", std::string_view("x")).ok());
  CHECK(files.create_directories(directory / "run/file").error().code == sw::errc::already_exists);
  disk->inject({.kind = operation::stat, .errno_value = EACCES});
  CHECK(files.create_directories(directory / "run/best/deep").error().code == sw::errc::permission_denied);
  std::filesystem::remove_all(directory / "run");
  CHECK(files.create_directories(directory / "run/best").error().code == sw::errc::failed_precondition);
  CHECK_FALSE(std::filesystem::exists(directory / "run"));
}

TEST_CASE("files are opened for writing through a fence as without one", "[io][fence]") {
  const temporary_directory directory;
  write_file_text(directory / "log", "one\n");
  fenced_directory files(directory.path());
  {
    const auto log = files.open(directory / "log", io::open_mode::append).value();
    CHECK(log->path() == directory / "log");
    CHECK(*log->size() == 4);
    REQUIRE(log->write_at(4, bytes("two\n")).ok());
    REQUIRE(log->sync().ok());
    CHECK(leftovers_in(directory.path()) == 1);  // the record of the open file
  }
  CHECK(leftovers_in(directory.path()) == 0);
  CHECK(file_text(directory / "log") == "one\ntwo\n");
  CHECK(files.open(directory / "log", io::open_mode::create_new).error().code == sw::errc::already_exists);
  CHECK(files.open(directory / "new", io::open_mode::append).ok());
  CHECK(files.open(directory / "log", io::open_mode::overwrite).ok());
  CHECK(file_text(directory / "log").empty());
}

TEST_CASE("a newer writer takes the directory over, and the error of the late writer says who did", "[io][fence]") {
  const temporary_directory directory;
  fenced_directory late(directory.path());
  CHECK(*late.open_fence() == 1);
  CHECK(late.check().ok());
  fenced_directory newer(directory.path());
  CHECK(*newer.open_fence() == 2);
  CHECK(writers_in(directory.path()) == std::vector<std::string>{".stepwell-writer-2"});
  const auto refused = io::write_file_atomically(late, directory / "state", std::string_view("late"));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == sw::errc::failed_precondition);
  CHECK(refused.error().place == std::filesystem::canonical(directory.path()).string());
  const auto who = "process " + std::to_string(::getpid()) + " on host ";
  CHECK(refused.error().message.find(who) == 0);
  CHECK(refused.error().message.find("has taken over this directory as its writer 2; this process, writer 1,") != std::string::npos);
  CHECK(late.check().error().code == sw::errc::failed_precondition);
  CHECK(late.open_fence().error().code == sw::errc::failed_precondition);
  CHECK(late.lock(directory / "lock").error().code == sw::errc::failed_precondition);
  CHECK(io::write_file_atomically(newer, directory / "state", std::string_view("newer")).ok());
  CHECK(file_text(directory / "state") == "newer");
}

TEST_CASE("a writer that is suspended before any of its operations changes nothing after another has taken over", "[io][fence]") {
  int changed = 0;
  for (std::uint64_t at = 1;; ++at) {
    const temporary_directory directory;
    write_file_text(directory / "log", "kept\n");
    write_file_text(directory / "old", "old");
    const auto disk = std::make_shared<fault_file_system>();
    fenced_directory late(directory.path(), disk);
    REQUIRE(late.open_fence().ok());
    const auto opened = disk->operations();
    std::map<std::string, std::string> before;
    fenced_directory newer(directory.path());
    disk->before_each([&](const auto& now) {
      if (now.number != opened + at) { return; }
      REQUIRE(newer.open_fence().ok());
      REQUIRE(io::write_file_atomically(newer, directory / "own", std::string_view("newer")).ok());
      before = content_of(directory.path());
    });
    change_everything(late, directory.path());
    disk->before_each(nullptr);
    if (before.empty()) { break; }  // no operation has this number
    INFO("suspended before operation " << at << " of the writer");
    CHECK(content_of(directory.path()) == before);
    CHECK(late.check().error().code == sw::errc::failed_precondition);
    CHECK(writers_in(directory.path()) == std::vector<std::string>{".stepwell-writer-2"});
    ++changed;
  }
  CHECK(changed > 40);
}

TEST_CASE("an operation that the former writer has begun may end while another takes over", "[io][fence]") {
  const temporary_directory directory;
  fenced_directory former(directory.path());
  REQUIRE(former.open_fence().ok());
  const auto log = former.open(directory / "log", io::open_mode::append);
  REQUIRE(log.ok());
  const auto own = std::filesystem::directory_iterator(directory / ".stepwell-writer-1")->path().string();
  write_file_text(own + "/.tmp-model", "prepared");
  const auto disk = std::make_shared<fault_file_system>();
  fenced_directory newer(directory.path(), disk);
  SECTION("its file disappears") {
    int gone = 0;
    disk->before_each([&](const auto& now) {
      if (now.kind == operation::stat && now.path.ends_with("/.tmp-model")) { gone += static_cast<int>(std::filesystem::remove(now.path)); }
    });
    CHECK(newer.open_fence().ok());
    CHECK(gone == 1);
  }
  SECTION("it cannot place a file after the newer writer has looked at what it has open") {
    int refused = 0;
    disk->before_each([&](const auto& now) {
      if (io::base_name(now.path).starts_with("written-") && now.kind == operation::open) {
        std::error_code failure;
        std::filesystem::rename(io::parent_directory(now.path) + "/.tmp-model", directory / "model", failure);
        refused += static_cast<int>(bool(failure));
      }
    });
    CHECK(newer.open_fence().ok());
    CHECK(refused == 1);
    CHECK_FALSE(std::filesystem::exists(directory / "model"));
  }
  disk->before_each(nullptr);
  CHECK(writers_in(directory.path()) == std::vector<std::string>{".stepwell-writer-2"});
}

TEST_CASE("of three processes that open one directory at any pace, the last one is its writer", "[io][fence]") {
  // The first opener is suspended before each of its operations, and the second one, which opens meanwhile, before each of its own.
  for (std::uint64_t first_at = 1; first_at <= 12; ++first_at) {
    for (std::uint64_t second_at = 1; second_at <= 12; ++second_at) {
      const temporary_directory directory;
      INFO("suspended before operations " << first_at << " and " << second_at);
      const auto first_disk = std::make_shared<fault_file_system>();
      const auto second_disk = std::make_shared<fault_file_system>();
      fenced_directory first(directory.path(), first_disk);
      fenced_directory second(directory.path(), second_disk);
      fenced_directory third(directory.path());
      bool second_is_open = false;
      second_disk->before_each([&](const auto& now) {
        if (now.number == second_at) { static_cast<void>(third.open_fence()); }
      });
      first_disk->before_each([&](const auto& now) {
        if (now.number == first_at) { second_is_open = second.open_fence().ok(); }
      });
      static_cast<void>(first.open_fence());
      first_disk->before_each(nullptr);
      second_disk->before_each(nullptr);
      std::vector<std::uint64_t> numbers;
      int writers = 0;
      for (auto* const one : {&first, &second, &third}) {
        const auto number = one->open_fence();
        if (!number) { continue; }
        ++writers;
        CHECK(std::ranges::find(numbers, *number) == numbers.end());
        numbers.push_back(*number);
        CHECK(io::write_file_atomically(*one, directory / "state", std::to_string(*number)).ok());
      }
      CHECK(writers >= 1);
      const auto left = writers_in(directory.path());
      REQUIRE(left.size() == 1);
      CHECK(file_text(directory / "state") == left.front().substr(std::string(".stepwell-writer-").size()));
    }
  }
}

TEST_CASE("threads that open one directory at once have different numbers, and the highest one is its writer", "[io][fence]") {
  for (int round = 0; round < 20; ++round) {
    const temporary_directory directory;
    std::vector<std::unique_ptr<fenced_directory>> all;
    for (int i = 0; i < 3; ++i) { all.push_back(std::make_unique<fenced_directory>(directory.path())); }
    std::vector<std::uint64_t> numbers(all.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < all.size(); ++i) {
        threads.emplace_back([&, i] {
          if (const auto number = all[i]->open_fence()) { numbers[i] = *number; }  // an error if another thread has taken over meanwhile
        });
      }
    }
    int writers = 0;
    for (const auto& one : all) { writers += one->check().ok() ? 1 : 0; }
    CHECK(writers == 1);
    CHECK(writers_in(directory.path()).size() == 1);
  }
}

TEST_CASE("a kill at any operation of an opening leaves a directory that the next writer opens, and no leftovers", "[io][fence]") {
  for (std::uint64_t at = 1;; ++at) {
    const temporary_directory directory;
    INFO("killed at operation " << at);
    {
      fenced_directory dead(directory.path());
      REQUIRE(dead.open_fence().ok());
      auto log = dead.open(directory / "log", io::open_mode::append).value();
      REQUIRE(log->write_at(0, bytes("kept")).ok());
      const auto disk = std::make_shared<fault_file_system>();
      disk->crash_at(at);
      fenced_directory killed(directory.path(), disk);
      static_cast<void>(killed.open_fence());
      fenced_directory next(directory.path());
      const auto number = next.open_fence();
      REQUIRE(number.ok());
      CHECK(*number >= 2);
      CHECK(writers_in(directory.path()) == std::vector<std::string>{".stepwell-writer-" + std::to_string(*number)});
      CHECK(leftovers_in(directory.path()) == 0);
      REQUIRE(log->write_at(4, bytes(" late")).ok());
      CHECK(file_text(directory / "log") == "kept");
      if (!disk->has_crashed()) { break; }
    }
  }
}

TEST_CASE("a number that is free again is not used by two writers", "[io][fence]") {
  // An opener lists the directory while writer 1 is the newest, and is suspended. Writer 2 opens, and is moved by writer 3. The opener then
  // creates the directory of a second writer 2.
  const temporary_directory directory;
  fenced_directory first(directory.path());
  REQUIRE(first.open_fence().ok());
  fenced_directory second(directory.path());
  fenced_directory third(directory.path());
  const auto disk = std::make_shared<fault_file_system>();
  bool is_first_time = true;
  disk->before_each([&](const auto& now) {
    if (now.kind != operation::create_directory || !std::exchange(is_first_time, false)) { return; }
    REQUIRE(second.open_fence().ok());
    REQUIRE(third.open_fence().ok());
  });
  write_file_text(directory / "old", "old");
  fenced_directory last(directory.path(), disk);
  CHECK(*last.open_fence() == 4);
  CHECK(second.remove(directory / "old").error().code == sw::errc::failed_precondition);
  CHECK(third.remove(directory / "old").error().code == sw::errc::failed_precondition);
  CHECK(file_text(directory / "old") == "old");
  CHECK(last.remove(directory / "old").ok());
}

TEST_CASE("the number of writers grows over the life of a directory, and the leftovers of dead writers are removed", "[io][fence]") {
  const temporary_directory directory;
  static auto& killed = *new std::vector<io::atomic_file>();  // never destroyed: a killed process removes no temporary file
  for (std::uint64_t number = 1; number <= 5; ++number) {
    fenced_directory files(directory.path());
    CHECK(*files.open_fence() == number);
    auto half = io::atomic_file::create(files, directory / "state").value();
    REQUIRE(half.append(bytes("half")).ok());
    CHECK(content_of(directory.path()).empty());
    if (number < 5) { killed.push_back(std::move(half)); }
  }
  CHECK(writers_in(directory.path()) == std::vector<std::string>{".stepwell-writer-5"});
  CHECK(leftovers_in(directory.path()) == 0);
}

TEST_CASE("a lock of a directory with a fence is held once in a process, and opens the fence", "[io][fence]") {
  const temporary_directory directory;
  fenced_directory files(directory.path());
  auto held = files.lock(directory / ".lock");
  REQUIRE(held.ok());
  CHECK(content_of(directory.path()).empty());  // no lock file
  CHECK(writers_in(directory.path()).size() == 1);
  CHECK(files.lock(directory / ".lock").error().code == sw::errc::failed_precondition);
  CHECK(files.lock(directory / "best.lock").ok());
}

TEST_CASE("after the release of all locks, a new lock takes the directory back", "[io][fence]") {
  const temporary_directory directory;
  fenced_directory first(directory.path());
  fenced_directory second(directory.path());
  { REQUIRE(first.lock(directory / ".lock").ok()); }
  { REQUIRE(second.lock(directory / ".lock").ok()); }
  CHECK_FALSE(first.check().ok());
  const auto again = first.lock(directory / ".lock");
  CHECK(again.ok());
  CHECK(first.check().ok());
  CHECK_FALSE(second.check().ok());
}

TEST_CASE("where files can be locked, a fence that is only a substitute changes no call", "[io][fence]") {
  const temporary_directory directory;
  const auto history = [&](bool has_fence, const std::string& name) {
    const auto disk = std::make_shared<fault_file_system>();
    std::shared_ptr<io::file_system> files = disk;
    if (has_fence) { files = std::make_shared<fenced_directory>(directory / name, disk, io::fence_use::if_not_lockable); }
    REQUIRE(files->create_directories(directory / name).ok());
    const auto held = files->lock(directory / (name + "/.lock"));
    REQUIRE(held.ok());
    write_file_text(directory / (name + "/old"), "old");
    change_everything(*files, directory / name);
    std::vector<operation> kinds;
    for (const auto& one : disk->history()) { kinds.push_back(one.kind); }
    return kinds;
  };
  CHECK(history(true, "a") == history(false, "b"));
}

TEST_CASE("where files cannot be locked, a fence takes the place of the lock", "[io][fence]") {
  const int reason = GENERATE(ENOLCK, EOPNOTSUPP, ENOSYS);
  const temporary_directory directory;
  const auto disk = std::make_shared<fault_file_system>();
  disk->inject({.kind = operation::lock, .errno_value = reason, .from_then_on = true});
  fenced_directory files(directory.path(), disk, io::fence_use::if_not_lockable);
  const auto event = files.open(directory / "event", io::open_mode::create_new).value();  // before the lock
  REQUIRE(event->write_at(0, bytes("kept")).ok());
  const auto held = files.lock(directory / ".lock");
  REQUIRE(held.ok());
  CHECK(writers_in(directory.path()).size() == 1);
  fenced_directory newer(directory.path(), disk, io::fence_use::if_not_lockable);
  REQUIRE(newer.lock(directory / ".lock").ok());
  CHECK(io::write_file_atomically(files, directory / "state", std::string_view("x")).error().code == sw::errc::failed_precondition);
  REQUIRE(event->write_at(4, bytes(" late")).ok());
  CHECK(file_text(directory / "event") == "kept");
}

TEST_CASE("a lock that another process holds is still refused", "[io][fence]") {
  const temporary_directory directory;
  const auto held = io::posix_file_system()->lock(directory / ".lock");
  fenced_directory files(directory.path(), nullptr, io::fence_use::if_not_lockable);
  CHECK(files.lock(directory / ".lock").error().code == sw::errc::failed_precondition);
  CHECK(writers_in(directory.path()) == std::vector<std::string>{});
}

TEST_CASE("a fence covers all paths that lead to its directory, and no other ones", "[io][fence]") {
  const temporary_directory directory;
  std::filesystem::create_directory(directory / "run");
  std::filesystem::create_symlink(directory / "run", directory / "link");
  fenced_directory late(directory / "link");
  REQUIRE(late.open_fence().ok());
  fenced_directory newer(directory / "run");
  REQUIRE(newer.open_fence().ok());
  for (const std::string path : {"link/a", "run/a", "run/./a", "run/../run/a"}) {
    INFO(path);
    CHECK(io::write_file_atomically(late, directory / path, std::string_view("x")).error().code == sw::errc::failed_precondition);
  }
  CHECK(io::write_file_atomically(late, directory / "running", std::string_view("x")).ok());
  CHECK(io::write_file_atomically(late, directory / "run/../other", std::string_view("x")).ok());
}

TEST_CASE("a directory that was moved away is not changed at its path", "[io][fence]") {
  const temporary_directory directory;
  fenced_directory files(directory / "run");
  REQUIRE(files.open_fence().ok());
  std::filesystem::rename(directory / "run", directory / "moved");
  std::filesystem::create_directory(directory / "run");
  const auto refused = io::write_file_atomically(files, directory / "run/a", std::string_view("x"));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == sw::errc::failed_precondition);
  CHECK(refused.error().message.find("moved or removed") != std::string::npos);
  CHECK(content_of(directory / "run").empty());
}
