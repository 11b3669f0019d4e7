// SPDX-License-Identifier: Apache-2.0
#include "support/checkpoint_files.hpp"
#include "support/file_text.hpp"
#include "support/saver_rig.hpp"
#include "tool_run.hpp"

#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/io/fenced_directory.hpp>
#include <stepwell/io/file_system.hpp>
#include <stepwell/protocol/run_ending.hpp>

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace sw = stepwell;
using nlohmann::json;
using sw::test::tool_rig;
using sw::test::workshop;
using sw::tool::exit_code;

namespace {

/// A directory with five checkpoints, one hour apart.
struct pruned_run {
  workshop shop;
  tool_rig rig{.files = shop.files, .time = shop.clock};

  pruned_run() {
    auto saver = shop.make({.max_to_keep = sw::none});
    for (int step = 1; step <= 5; ++step) {
      shop.clock->advance(std::chrono::hours(1));
      sw::test::save_and_settle(saver, sw::test::toy_snapshot(step));
    }
  }
  [[nodiscard]] sw::test::said prune(std::vector<std::string> more) const {
    more.insert(more.begin(), {"prune", shop.directory.path()});
    return rig.run(std::move(more));
  }
};

}  // namespace

TEST_CASE("prune deletes only on request, and otherwise lists the files", "[tool][prune]") {
  const pruned_run run;
  const auto before = sw::test::names_in(run.shop.directory.path());
  const auto said = run.prune({"--max-to-keep", "2"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("3 checkpoints") != std::string::npos);
  CHECK(said.out.find("nothing is deleted without --yes") != std::string::npos);
  CHECK(run.prune({"--max-to-keep", "2", "--dry-run"}).out == said.out);
  CHECK(sw::test::names_in(run.shop.directory.path()) == before);
  CHECK(run.prune({"--yes", "--dry-run"}).how == exit_code::usage);
}

TEST_CASE("prune deletes what a saver with these rules would delete, and the list says so", "[tool][prune]") {
  const pruned_run run;
  CHECK(run.prune({"--max-to-keep", "2", "--yes"}).how == exit_code::good);
  CHECK(run.shop.steps() == "4 5");
  CHECK(run.shop.make().checkpoints().size() == 2);
  const auto again = run.prune({"--max-to-keep", "2", "--yes", "--json"});
  CHECK(json::parse(again.out)["freed_bytes"] == 0);
}

TEST_CASE("prune keeps the pinned, and one every so many hours", "[tool][prune]") {
  const pruned_run run;
  SECTION("pinned") {
    CHECK(run.prune({"--max-to-keep", "1", "--pin", "model.ckpt-3", "--pin", run.shop.directory / "model.ckpt-1", "--yes"}).how ==
          exit_code::good);
    CHECK(run.shop.steps() == "1 3 5");
  }
  SECTION("hours") {
    CHECK(run.prune({"--max-to-keep", "1", "--keep-every-n-hours", "2", "--yes"}).how == exit_code::good);
    CHECK(run.shop.steps() == "2 4 5");
  }
}

TEST_CASE("prune accepts a pin in every form of a TARGET, and as a step", "[tool][prune]") {
  const pruned_run run;
  const auto path = run.shop.directory / "model.ckpt-2";
  for (const auto& pin : {std::string("model.ckpt-2"), path, path + ".index", path + ".data-00000-of-00001",
                          std::string("model.ckpt-2.index"), std::string("2"), run.shop.directory / "./model.ckpt-2"}) {
    INFO(pin);
    const auto seen = json::parse(run.prune({"--max-to-keep", "1", "--pin", pin, "--json"}).out);
    CHECK(seen["checkpoints"][1]["what"] == "keep");
    CHECK(seen["checkpoints"][2]["what"] == "delete");
  }
  CHECK(run.prune({"--max-to-keep", "1", "--pin", run.shop.directory.path(), "--yes"}).how == exit_code::good);  // the newest checkpoint
  CHECK(run.shop.steps() == "5");
}

TEST_CASE("a pin or a basename that matches no checkpoint is an error of prune, and no file changes", "[tool][prune]") {
  const pruned_run run;
  sw::test::write_file_text(run.shop.directory / "model.ckpt-6.data-00000-of-00001", "left by a killed save");
  const auto before = sw::test::names_in(run.shop.directory.path());
  const auto state = sw::test::file_text(run.shop.directory / "checkpoint");
  for (const auto* pin : {"modle.ckpt-3", "model.ckpt-33", "33", "", "model.ckpt-3.idx", "/nowhere/model.ckpt-3"}) {
    INFO(pin);
    const auto said = run.prune({"--max-to-keep", "1", "--pin", "model.ckpt-4", "--pin", pin, "--yes"});
    CHECK(said.how == exit_code::unreadable);
    CHECK(said.out.empty());
    CHECK(said.err.find("\"" + std::string(pin) + "\"") != std::string::npos);
  }
  const auto other = run.prune({"--max-to-keep", "1", "--basename", "modle.ckpt", "--yes"});
  CHECK(other.how == exit_code::unreadable);
  CHECK(other.err.find("modle.ckpt-STEP") != std::string::npos);
  CHECK(other.err.find("model.ckpt-5") != std::string::npos);
  CHECK(run.prune({"--basename", "../run", "--yes"}).how == exit_code::usage);
  CHECK(sw::test::names_in(run.shop.directory.path()) == before);
  CHECK(sw::test::file_text(run.shop.directory / "checkpoint") == state);
}

TEST_CASE("prune keeps the newest whole checkpoint, though damaged ones are newer", "[tool][prune]") {
  const pruned_run run;
  for (const auto* step : {"4", "5"}) {
    const auto path = run.shop.directory / ("model.ckpt-" + std::string(step) + ".data-00000-of-00001");
    auto data = sw::test::file_text(path);
    data[0] = static_cast<char>(data[0] ^ 1);
    sw::test::write_file_text(path, data);
  }
  CHECK(run.prune({"--max-to-keep", "1", "--yes"}).how == exit_code::good);
  CHECK(run.shop.steps() == "3 4 5");  // damaged checkpoints are neither counted nor deleted
}

TEST_CASE("prune deletes nothing, not even leftovers, if no checkpoint is whole", "[tool][prune]") {
  const pruned_run run;
  for (int step = 1; step <= 5; ++step) {
    sw::test::write_file_text(run.shop.directory / ("model.ckpt-" + std::to_string(step) + ".index"), "no index");
  }
  sw::test::write_file_text(run.shop.directory / "model.ckpt-6.data-00000-of-00001", "no index at all");
  const auto before = sw::test::names_in(run.shop.directory.path());
  CHECK(run.prune({"--max-to-keep", "1", "--yes"}).how == exit_code::damaged);
  CHECK(sw::test::names_in(run.shop.directory.path()) == before);
}

TEST_CASE("prune leaves a directory alone that a process holds, and names it", "[tool][prune]") {
  const pruned_run run;
  const auto holder = run.shop.make();
  const auto said = run.prune({"--max-to-keep", "1", "--yes"});
  CHECK(said.how == exit_code::held);
  CHECK(said.err.find(std::to_string(::getpid())) != std::string::npos);
  CHECK(run.shop.steps() == "1 2 3 4 5");
  CHECK(run.prune({"--max-to-keep", "1"}).how == exit_code::good);  // only --yes needs the lock
}

TEST_CASE("prune opens the fence of a directory whose session has ended, and does not disturb one that is running", "[tool][prune]") {
  const pruned_run run;
  const auto directory = run.shop.directory.path();
  sw::io::fenced_directory session(directory);
  REQUIRE(value_or_throw(session.open_fence()) == 1);
  const auto said = run.prune({"--max-to-keep", "1", "--yes"});
  CHECK(said.how == exit_code::held);
  CHECK(said.err.find("the process " + std::to_string(::getpid())) != std::string::npos);
  CHECK(run.shop.steps() == "1 2 3 4 5");
  CHECK(session.check());

  sw::detail::write_ending_file(*sw::io::posix_file_system(), directory, {});
  CHECK(run.prune({"--max-to-keep", "1", "--yes"}).how == exit_code::good);
  CHECK(run.shop.steps() == "5");
  CHECK_FALSE(session.check());
}

TEST_CASE("prune works beside the torn lock file of a process that has ended", "[tool][prune]") {
  const pruned_run run;
  const auto torn = GENERATE(values<std::string>({"", "process 12 on ho", std::string("process 12 on") + '\0'}));
  sw::test::write_file_text(run.shop.directory / ".stepwell.lock", torn);
  CHECK(run.prune({"--max-to-keep", "1", "--yes"}).how == exit_code::good);
  CHECK(run.shop.steps() == "5");
}

TEST_CASE("prune lists and deletes the leftovers of killed saves", "[tool][prune]") {
  const pruned_run run;
  const auto orphan = run.shop.directory / "model.ckpt-6.data-00000-of-00001";
  sw::test::write_file_text(orphan, "half a save");
  CHECK(run.prune({}).out.find("left by a killed save") != std::string::npos);
  CHECK(std::filesystem::exists(orphan));
  CHECK(run.prune({"--yes"}).how == exit_code::good);
  CHECK_FALSE(std::filesystem::exists(orphan));
}

TEST_CASE("prune never deletes what no saver of this library wrote", "[tool][prune]") {
  const workshop shop;
  for (const std::string step : {"1", "2"}) {
    float w = 1;
    sw::detail::checkpoint_writer writer(shop.directory / ("model.ckpt-" + step), shop.files);
    writer.add("w", sw::view_of(w));
    writer.commit();
  }
  sw::test::write_file_text(shop.directory / "checkpoint",
                            "model_checkpoint_path: \"model.ckpt-2\"\nall_model_checkpoint_paths: \"model.ckpt-1\"\n"
                            "all_model_checkpoint_paths: \"model.ckpt-2\"\n");
  const auto said = tool_rig{.files = shop.files, .time = shop.clock}.run({"prune", shop.directory.path(), "--max-to-keep", "1", "--yes"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("not written by a saver of stepwell") != std::string::npos);
  CHECK(shop.steps() == "1 2");
}

TEST_CASE("prune of a directory that is not there makes none", "[tool][prune]") {
  const sw::test::temporary_directory directory;
  CHECK(sw::test::run_tool({"prune", directory / "run", "--yes"}).how == exit_code::unreadable);
  CHECK_FALSE(std::filesystem::exists(directory / "run"));
  CHECK(sw::test::run_tool({"prune", directory.path(), "--yes"}).how == exit_code::unreadable);
}

TEST_CASE("prune that is killed at any operation, and run again, leaves a directory that verify calls whole", "[tool][prune]") {
  for (std::uint64_t number = 1;; ++number) {
    pruned_run run;
    run.shop.files->crash_at(run.shop.files->operations() + number);
    static_cast<void>(run.prune({"--max-to-keep", "2", "--yes"}));
    const bool was_killed = run.shop.files->has_crashed();
    const auto pruned = sw::test::run_tool({"prune", run.shop.directory.path(), "--max-to-keep", "2", "--yes"});
    const auto verified = sw::test::run_tool({"verify", run.shop.directory.path()});
    INFO("killed at operation " << number << ": " << pruned.err << verified.out << verified.err);
    CHECK(pruned.how == exit_code::good);
    CHECK(verified.how == exit_code::good);
    CHECK(run.shop.steps() == "4 5");
    if (!was_killed) { break; }
  }
}
