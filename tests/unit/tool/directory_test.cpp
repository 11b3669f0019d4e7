// SPDX-License-Identifier: Apache-2.0
//
// Tests of the commands for whole directories: verify and stats.
#include "support/beside_retention.hpp"
#include "support/checkpoint_files.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/paths.hpp"
#include "support/saver_rig.hpp"
#include "tool_run.hpp"

#include <tool/commands.hpp>

#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <stepwell/format/events/event.hpp>
#include <stepwell/io/fenced_directory.hpp>
#include <stepwell/io/file_system.hpp>
#include <stepwell/protocol/run_ending.hpp>
#include <stepwell/summary/writer.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

namespace sw = stepwell;
using nlohmann::json;
using sw::test::run_tool;
using sw::test::workshop;
using sw::tool::exit_code;

namespace {

void save(const workshop& shop, int from, int to) {
  auto saver = shop.make({.max_to_keep = sw::none});
  for (int step = from; step <= to; ++step) { sw::test::save_and_settle(saver, sw::test::toy_snapshot(step)); }
}

}  // namespace

TEST_CASE("verify reads every checkpoint of a directory, and notes what belongs to none", "[tool][verify]") {
  const workshop shop;
  save(shop, 1, 3);
  sw::test::write_file_text(shop.directory / "model.ckpt-9.data-00000-of-00001", "no index");
  sw::test::write_file_text(shop.directory / "model.ckpt-3.data-00001-of-00002", "another number of shards");
  sw::test::write_file_text(shop.directory / ".tmp-1-1-model.ckpt-4.index", "half an index, written aside");
  const auto said = run_tool({"verify", shop.directory.path()});
  CHECK(said.how == exit_code::good);  // orphans are not damage
  CHECK(said.err.empty());
  CHECK(said.out.find("model.ckpt-1: 6 tensors") != std::string::npos);
  CHECK(said.out.find("orphan       model.ckpt-9.data-00000-of-00001: belongs to no checkpoint") != std::string::npos);
  CHECK(said.out.find("orphan       model.ckpt-3.data-00001-of-00002") != std::string::npos);
  const auto seen = json::parse(run_tool({"verify", shop.directory.path(), "--json"}).out);
  CHECK(seen["checkpoints"].size() == 3);
  CHECK(seen["checkpoints"][0]["whole"] == true);
  CHECK(seen["orphans"].size() == 3);
}

TEST_CASE("verify lists every damaged tensor, and a checkpoint that is listed but missing", "[tool][verify]") {
  const workshop shop;
  save(shop, 1, 2);
  const auto path = shop.directory / "model.ckpt-2.data-00000-of-00001";
  auto data = sw::test::file_text(path);
  for (auto& byte : data) { byte = static_cast<char>(byte ^ 2); }
  sw::test::write_file_text(path, data);
  std::filesystem::remove(shop.directory / "model.ckpt-1.index");
  std::filesystem::remove(shop.directory / "model.ckpt-1.data-00000-of-00001");
  const auto said = run_tool({"verify", shop.directory.path()});
  CHECK(said.how == exit_code::damaged);
  CHECK(said.out.find("DAMAGED      " + (shop.directory / "model.ckpt-1")) != std::string::npos);
  CHECK(said.err.find("has no index") != std::string::npos);
  for (const auto* name : {"global_step", "layer/weights", "layer/bias", "trained"}) {
    CHECK(said.err.find("tensor \"" + std::string(name) + "\"") != std::string::npos);
  }
}

TEST_CASE("a kill while retention deletes a checkpoint leaves orphans, no damage", "[tool][verify]") {
  const workshop shop;
  save(shop, 1, 3);
  std::filesystem::remove(shop.directory / "model.ckpt-1.index");  // the first file that retention removes; the state file still lists it
  const auto said = run_tool({"verify", shop.directory.path()});
  CHECK(said.how == exit_code::good);
  CHECK(said.err.empty());
  CHECK(said.out.find("orphan       model.ckpt-1.data-00000-of-00001: belongs to no checkpoint") != std::string::npos);
  CHECK(json::parse(run_tool({"verify", shop.directory.path(), "--json"}).out)["checkpoints"].size() == 2);
  std::filesystem::remove(shop.directory / "model.ckpt-3.index");  // the newest checkpoint: neither retention nor a kill removes it
  CHECK(run_tool({"verify", shop.directory.path()}).how == exit_code::damaged);
}

TEST_CASE("no command reads the state file once for each checkpoint that it lists", "[tool][verify]") {
  const workshop shop;
  save(shop, 1, 2);
  const auto readings_of = [&](const std::string& command, int missing) {
    std::string state = "model_checkpoint_path: \"model.ckpt-2\"\n";
    for (int i = 0; i < missing; ++i) { state += "all_model_checkpoint_paths: \"gone.ckpt-" + std::to_string(i) + "\"\n"; }
    sw::test::write_file_text(shop.directory / "checkpoint", state + "all_model_checkpoint_paths: \"model.ckpt-2\"\n");
    const auto counted = std::make_shared<sw::test::fault_file_system>();
    sw::test::tool_rig rig;
    rig.files = counted;
    static_cast<void>(rig.run({command, shop.directory.path()}));
    return std::ranges::count_if(
        counted->history(), [](const auto& one) { return one.kind == sw::test::operation::open && one.path.ends_with("/checkpoint"); });
  };
  for (const auto* command : {"verify", "inspect", "stats", "prune"}) {
    CAPTURE(command);
    CHECK(readings_of(command, 5) > 0);
    CHECK(readings_of(command, 50) == readings_of(command, 5));
  }
}

TEST_CASE("verify says of a variant that it was not checked, and does not call its checkpoint ok", "[tool][verify][golden]") {
  const std::string variant = sw::test::golden("/checkpoint/variant");  // written by TensorFlow
  const auto said = run_tool({"verify", variant});
  CHECK(said.how == exit_code::unsupported);
  CHECK(said.out == "NOT CHECKED  " + variant + ": 2 tensors, 95 B, 1 of them not checked\n");
  CHECK(said.err.find("tensor \"list\" was not checked") != std::string::npos);
  auto seen = json::parse(run_tool({"verify", variant, "--json"}).out)["checkpoints"][0];
  CHECK(seen["status"] == "not checked");
  CHECK(seen["whole"] == false);
  CHECK(seen["damages"].empty());
  CHECK(seen["not_checked"].size() == 1);
}

TEST_CASE("damage beside a variant is still damage", "[tool][verify][golden]") {
  const sw::test::temporary_directory directory;
  for (const std::string name : {"variant.index", "variant.data-00000-of-00001"}) {
    sw::test::write_file_text(directory / name, sw::test::file_text(sw::test::golden("/checkpoint/" + name)));
  }
  auto data = sw::test::file_text(directory / "variant.data-00000-of-00001");
  data.back() = static_cast<char>(data.back() ^ 1);  // in "weights"
  sw::test::write_file_text(directory / "variant.data-00000-of-00001", data);
  const auto said = run_tool({"verify", directory / "variant"});
  CHECK(said.how == exit_code::damaged);
  CHECK(said.out.starts_with("DAMAGED"));
}

TEST_CASE("a checkpoint for later readers is unsupported, and not damaged", "[tool][verify]") {
  const workshop shop;
  save(shop, 1, 2);
  sw::format::table_writer table;
  REQUIRE(table.add("", encode(sw::format::bundle_header{.min_consumer = 9, .bad_consumers = {}})));
  sw::test::write_file_text(shop.directory / "model.ckpt-2.index", table.finish());
  const auto said = run_tool({"verify", shop.directory.path()});
  CHECK(said.how == exit_code::unsupported);
  CHECK(said.out.find("UNSUPPORTED  " + (shop.directory / "model.ckpt-2")) != std::string::npos);
  CHECK(said.out.find("DAMAGED") == std::string::npos);
  CHECK(said.err.find("newer reader") != std::string::npos);
  CHECK(run_tool({"inspect", shop.directory / "model.ckpt-2"}).how == exit_code::unsupported);
}

TEST_CASE("verify of nothing is an error", "[tool][verify]") {
  const sw::test::temporary_directory directory;
  CHECK(run_tool({"verify", directory.path()}).how == exit_code::unreadable);
  CHECK(run_tool({"verify", directory / "model.ckpt-1"}).how == exit_code::unreadable);
  sw::test::write_file_text(directory / "model.ckpt-1.data-00000-of-00001", "all that a killed first save left");
  const auto said = run_tool({"verify", directory.path()});
  CHECK(said.how == exit_code::unreadable);
  CHECK(said.out.find("orphan       model.ckpt-1.data-00000-of-00001") != std::string::npos);
}

TEST_CASE("stats says how a run stands", "[tool][stats]") {
  const workshop shop;
  save(shop, 1, 2);
  {
    sw::summary::writer writer(shop.directory.path(), {.clock = shop.clock});
    for (int step = 1; step <= 100; ++step) {
      shop.clock->advance(std::chrono::milliseconds(step <= 50 ? 100 : 400));
      writer.add_scalar("loss", 1.0, step);
    }
    writer.close();
  }
  const auto seen = json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out);
  CHECK(seen["last_step"] == 100);
  CHECK(seen["checkpoints"].size() == 2);
  CHECK(seen["checkpoints"][1]["step"] == 2);
  CHECK(seen["newest_checkpoint"] == shop.directory / "model.ckpt-2");
  CHECK(seen["event_files"][0]["records"] == 101);
  CHECK(seen["steps_per_second"].front().get<double>() == Approx(10).epsilon(0.01));
  CHECK(seen["steps_per_second"].back().get<double>() == Approx(2.5).epsilon(0.01));
  const auto said = run_tool({"stats", shop.directory.path()});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("last step 100") != std::string::npos);
  CHECK(said.out.find("steps/s  █") != std::string::npos);
  CHECK(said.out.find("newest: model.ckpt-2\n") != std::string::npos);
}

TEST_CASE("stats says how the last session ended", "[tool][stats]") {
  const workshop shop;
  save(shop, 1, 3);
  CHECK(run_tool({"stats", shop.directory.path()}).out.find("ended:") == std::string::npos);  // a session runs, or was killed
  sw::detail::write_ending_file(*sw::io::posix_file_system(), shop.directory.path(),
                                {sw::session_ending::failed, {sw::stop_cause::nan, "loss is nan\x1b[31m"}, 3});
  const auto said = run_tool({"stats", shop.directory.path()});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("ended:  failed at step 3, loss is nan\\x1b[31m\n") != std::string::npos);
  const auto seen = json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out);
  CHECK(seen["ending"]["how"] == "failed");
  CHECK(seen["ending"]["cause"] == "nan");
  CHECK(seen["ending"]["step"] == 3);
  sw::test::write_file_text(shop.directory / "stepwell.ending", "how: ");
  const auto damaged = run_tool({"stats", shop.directory.path()});
  CHECK(damaged.how == exit_code::damaged);
  CHECK(damaged.out.find("model.ckpt-3") != std::string::npos);
  CHECK(damaged.err.find("stepwell.ending") != std::string::npos);
}

TEST_CASE("stats names the writer of a directory with a fence, and the ranks of a group", "[tool][stats]") {
  const workshop shop;
  const auto directory = shop.directory.path();
  sw::io::fenced_directory session(directory);
  REQUIRE(session.open_fence());
  {
    sw::summary::writer events(directory);
    events.add_session_log(sw::format::session_status::unspecified, 0, {}, "generation 1 with the ranks 0, 1 of 2, connected by MPI");
    events.add_session_log(sw::format::session_status::unspecified, 3, {}, "generation 2 with the ranks 0 of 2, connected by MPI");
    events.add_session_log(sw::format::session_status::unspecified, 3, {}, "something else");
  }
  const auto said = run_tool({"stats", directory}).out;
  CHECK(said.find("running, pid " + std::to_string(::getpid()) + ", since 20") != std::string::npos);
  CHECK(said.find("group:  generation 2 with the ranks 0 of 2, connected by MPI (2 generations so far)\n") != std::string::npos);
  const auto seen = json::parse(run_tool({"stats", directory, "--json"}).out);
  CHECK(seen["group"]["generations"] == 2);
  CHECK(seen["group"]["last"] == "generation 2 with the ranks 0 of 2, connected by MPI");
}

TEST_CASE("stats names the process that uses the directory, and a killed one", "[tool][stats]") {
  const workshop shop;
  {
    auto saver = shop.make();
    sw::test::save_and_settle(saver, sw::test::toy_snapshot(1));
    const auto said = run_tool({"stats", shop.directory.path()}).out;
    CHECK(said.find("running, pid " + std::to_string(::getpid()) + ", since 20") != std::string::npos);
    const auto seen = json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out);
    CHECK(seen["holder"]["pid"] == ::getpid());
    CHECK(seen["holder"]["gone"] == false);
  }
  const auto lock = shop.directory / ".stepwell.lock";
  CHECK(run_tool({"stats", shop.directory.path()}).out.find("pid") == std::string::npos);  // released
  std::array<char, 256> host{};
  REQUIRE(::gethostname(host.data(), host.size() - 1) == 0);
  constexpr const char* no_process = "999999999";  // greater than the greatest process id of Linux
  sw::test::write_file_text(lock, std::string("process ") + no_process + " on host " + host.data() + " since 2026-01-02T03:04:05Z");
  CHECK(run_tool({"stats", shop.directory.path()}).out.find("ended:  killed, pid 999999999\n") != std::string::npos);
  sw::test::write_file_text(lock,
                            std::string("process 999999999 on host ") + host.data() + " since 2026-01-02T03:04:05Z" + std::string(9, '\0'));
  CHECK(run_tool({"stats", shop.directory.path()}).out.find("ended:  killed, pid 999999999\n") != std::string::npos);
  sw::test::write_file_text(lock, "process 1 on host nowhere\x1b since 2026-01-02T03:04:05Z");
  CHECK(run_tool({"stats", shop.directory.path()}).out.find("running or killed, pid 1 on host nowhere\\x1b, since 2026-01-02T03:04:05\n") !=
        std::string::npos);
  for (const std::string torn :
       {"process 1 on ho", "process 1 on host a since 2026-01-02T03", "process 99999999999999999999 on host a since bZ", ""}) {
    sw::test::write_file_text(lock, torn);
    const auto said = run_tool({"stats", shop.directory.path()});
    CHECK(said.how == exit_code::good);
    CHECK(said.out.find("pid") == std::string::npos);
  }
}

TEST_CASE("links are searched once, a loop of links ends, and stats counts what is in the directory", "[tool][stats]") {
  const sw::test::temporary_directory directory;
  const auto run = directory / "run";
  std::filesystem::create_directories(run + "/eval");
  for (const std::string where : {"/eval", ""}) {
    sw::test::write_file_text(run + where + "/events.out.tfevents.1", sw::test::file_text(sw::test::golden("/format/events.bin")));
  }
  std::filesystem::create_directories(directory / "outside");
  sw::test::write_file_text(directory / "outside/large", std::string(1'000'000, 'x'));
  const auto count = [&] { return json::parse(run_tool({"stats", run, "--json"}).out); };
  const auto before = count();
  const auto events_before = run_tool({"events", run, "-r", "--lines"}).out;
  for (const std::string name : {"a", "b", "c", "eval/a", "eval/b"}) { std::filesystem::create_directory_symlink(".", run + "/" + name); }
  std::filesystem::create_directory_symlink("../eval", run + "/eval/up");
  std::filesystem::create_directory_symlink("../outside", run + "/data");
  std::filesystem::create_symlink("../outside/large", run + "/large");
  CHECK(before["files"] == 2);
  CHECK(count()["files"] == 2);
  CHECK(count()["bytes"] == before["bytes"]);
  CHECK(run_tool({"events", run, "-r", "--lines"}).out == events_before);
  std::filesystem::create_directory(directory / "empty");
  std::filesystem::create_directory_symlink(run, directory / "empty/link");
  for (const std::string command : {"events", "plot"}) {  // an error message searches, too
    CHECK(run_tool({command, directory / "empty"}).err.find("for example in " + (directory / "empty/link;")) != std::string::npos);
  }
  CHECK(run_tool({"events", directory / "empty", "-r"}).how == exit_code::good);  // a directory of links to runs
}

TEST_CASE("the rate of the last part of a run is not that of a wait after the last step", "[tool][stats]") {
  const workshop shop;
  sw::summary::writer writer(shop.directory.path(), {.clock = shop.clock});
  for (int step = 1; step <= 100; ++step) {
    shop.clock->advance(std::chrono::milliseconds(100));
    writer.add_scalar("loss", 1.0, step);
  }
  shop.clock->advance(std::chrono::seconds(60));  // an evaluation and a last save
  writer.add_scalar("accuracy", 1.0, 100);
  writer.close();
  CHECK(run_tool({"stats", shop.directory.path()}).out.find("up to 10, last 10, over 9.9 s") != std::string::npos);
}

TEST_CASE("stats prints only ASCII if the locale has no more", "[tool][stats]") {
  const workshop shop;
  save(shop, 1, 1);
  sw::summary::writer writer(shop.directory.path(), {.clock = shop.clock, .filename_suffix = ".π"});
  for (int step = 1; step <= 10; ++step) {
    shop.clock->advance(std::chrono::milliseconds(100));
    writer.add_scalar("loss", 1.0, step);
  }
  writer.close();
  std::ostringstream out;
  sw::tool::console to{.out = out, .err = out, .ascii = true};
  CHECK(sw::tool::run({"stats", shop.directory.path()}, to) == exit_code::good);
  CHECK(std::ranges::all_of(out.str(), [](char letter) { return static_cast<unsigned char>(letter) < 0x80; }));
  CHECK(out.str().find(".\\xcf\\x80") != std::string::npos);
  CHECK(out.str().find("steps/s  ####") == std::string::npos);
  CHECK(out.str().find("steps/s  @@@@") != std::string::npos);
}

TEST_CASE("stats names the checkpoint saved last, not the highest step, with and without a state file", "[tool][stats]") {
  const workshop shop;
  save(shop, 8, 8);
  save(shop, 5, 5);  // as after a rollback of the training
  const auto newest = [&] { return json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out)["newest_checkpoint"]; };
  CHECK(newest() == shop.directory / "model.ckpt-5");
  std::filesystem::remove(shop.directory / "checkpoint");
  CHECK(newest() == shop.directory / "model.ckpt-5");
}

TEST_CASE("stats of a resumed run counts neither the settings written at step 0 nor the time between sessions", "[tool][stats]") {
  const workshop shop;
  const auto train = [&](std::int64_t from, std::int64_t to) {
    sw::summary::writer writer(shop.directory.path(), {.clock = shop.clock});
    writer.add_session_log(sw::format::session_status::start, from);
    writer.add_hparams({{"learning_rate", 0.1}});
    writer.add_text("settings", "the same in every session", 0);
    for (auto step = from; step <= to; ++step) {
      shop.clock->advance(std::chrono::milliseconds(100));
      writer.add_scalar("loss", 1.0, step);
    }
    writer.close();
  };
  train(1, 100);
  shop.clock->advance(std::chrono::hours(24));
  train(91, 200);
  auto seen = json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out);
  CHECK(seen["last_step"] == 200);
  CHECK(seen["sessions"] == 2);
  CHECK(seen["running_seconds"].get<double>() == Approx(9.9 + 10.9));
  REQUIRE(seen["steps_per_second"].size() == 40);
  for (const auto& rate : seen["steps_per_second"]) { CHECK(rate.get<double>() == Approx(10).epsilon(0.01)); }
  CHECK(run_tool({"stats", shop.directory.path()}).out.find("last 10, over 20.8 s in 2 sessions") != std::string::npos);
}

TEST_CASE("stats shows the last step of the last session, not the greatest one", "[tool][stats]") {
  const workshop shop;
  const auto train = [&](std::int64_t from, std::int64_t to) {
    sw::summary::writer writer(shop.directory.path(), {.clock = shop.clock});
    writer.add_session_log(sw::format::session_status::start, from);
    for (auto step = from; step <= to; ++step) {
      shop.clock->advance(std::chrono::milliseconds(100));
      writer.add_scalar("loss", 1.0, step);
    }
    writer.close();
  };
  const auto last = [&] { return json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out)["last_step"].get<int>(); };
  train(1, 100);
  CHECK(last() == 100);
  train(41, 40);  // a resume from an earlier checkpoint
  CHECK(last() == 40);
  train(41, 60);
  CHECK(last() == 60);
}

TEST_CASE("stats takes the rate of a short session from its checkpoints, and none from values at one step", "[tool][stats]") {
  const workshop shop;
  const auto train = [&](std::int64_t from, bool saves) {
    sw::summary::writer writer(shop.directory.path(), {.clock = shop.clock});
    writer.add_session_log(sw::format::session_status::start, from);
    for (auto step = from; step < from + 5; ++step) {
      shop.clock->advance(std::chrono::milliseconds(500));
      if (step == from) { writer.add_scalar("loss", 1.0, step); }
      if (step == from) { shop.clock->advance(std::chrono::milliseconds(1)); }
      if (step == from) { writer.add_scalar("accuracy", 1.0, step); }
      if (saves) { writer.add_session_log(sw::format::session_status::checkpoint, step, "model.ckpt"); }
    }
    writer.close();
  };
  train(1, false);
  const auto nothing = json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out);
  CHECK(nothing["steps_per_second"].empty());
  CHECK(nothing["sessions"] == 0);
  train(1, true);
  const auto seen = json::parse(run_tool({"stats", shop.directory.path(), "--json"}).out);
  CHECK(seen["sessions"] == 1);
  CHECK(seen["running_seconds"].get<double>() == Approx(2.001));
  CHECK(seen["steps_per_second"].back().get<double>() == Approx(2));
}

TEST_CASE("stats gives no rate from a checkpoint of one session to one of the next", "[tool][stats]") {
  const workshop shop;
  const auto train = [&](int step, double from, double to) {
    save(shop, step, step);
    const auto index = shop.directory / ("model.ckpt-" + std::to_string(step) + ".index");
    std::filesystem::last_write_time(
        index, std::filesystem::file_time_type::clock::from_sys(std::chrono::sys_seconds(std::chrono::seconds(static_cast<int>(to)))));
    sw::summary::writer writer(shop.directory.path(), {.clock = shop.clock});
    writer.add_event({.wall_time = from,
                      .step = step,
                      .what = sw::format::session_log{.status = sw::format::session_status::start, .checkpoint_path = {}, .message = {}},
                      .source_writer = {}});
    writer.close();
  };
  train(1, 1'000'000'000, 1'000'000'010);
  train(2, 1'000'090'000, 1'000'090'010);
  const auto said = run_tool({"stats", shop.directory.path()}).out;
  const auto at = said.find("model.ckpt-2");
  const auto line = said.substr(at, said.find('\n', at) - at);
  CHECK(line.ends_with(" -"));
}

TEST_CASE("stats of a directory without a run is an error that says what was searched for", "[tool][stats]") {
  const sw::test::temporary_directory directory;
  sw::test::write_file_text(directory / "notes.txt", "no run");
  const auto said = run_tool({"stats", directory.path()});
  CHECK(said.how == exit_code::unreadable);
  CHECK(said.out.empty());
  CHECK(said.err.find("no checkpoint (*.index) and no event file (*tfevents*)") != std::string::npos);
  CHECK(run_tool({"stats", directory / "run"}).how == exit_code::unreadable);
  CHECK(run_tool({"stats", directory / "notes.txt"}).err.find("this is a file") != std::string::npos);
}

TEST_CASE("a line of bars shows numbers against the greatest of them", "[tool][stats]") {
  CHECK(sw::tool::spark_line({0, 1, 4, 8}) == " ▁▄█");
  CHECK(sw::tool::spark_line({0, 0}) == "  ");
  CHECK(sw::tool::spark_line({}).empty());
}

TEST_CASE("commands beside a run that saves show what is there, and call nothing damaged", "[tool][beside]") {
  sw::test::log_capture log;
  const auto kept = GENERATE(1, 3);
  sw::test::busy_directory run(kept);
  const sw::test::temporary_directory written;
  const std::vector<std::vector<std::string>> commands{
      {"verify"},
      {"verify", "--json"},
      {"inspect"},
      {"inspect", "--stats", "--json"},
      {"inspect", "--print", "layer/weights"},
      {"inspect", "--diff", run.path() + "/."},
      {"export", "--npz", written / "all.npz"},
      {"export", "--npy", written / "all"},
      {"export", "--safetensors", written / "all.safetensors"},
      {"stats"},
      {"stats", "--json"},
      {"prune", "--max-to-keep", "2"},
      {"prune", "--max-to-keep", "2", "--json"},
  };
  for (auto line : commands) {
    const bool is_diff = line.back().starts_with(run.path());
    const bool has_values = line.size() == 3 && line[1] == "--print";
    line.insert(line.begin() + 1, run.path());
    run.at_each_operation([&](const auto& files) {
      const auto said = sw::test::tool_rig{.files = files}.run(line);
      INFO(line.front() << ": " << said.out << said.err);
      CHECK((said.how == exit_code::good || (is_diff && said.how == exit_code::differs)));
      CHECK(said.err.empty());
      CHECK((is_diff || said.out.find(line.front() == "export" ? "all" : has_values ? "" : "model.ckpt-") != std::string::npos));
      for (const auto* wrong : {"orphan  ", "left by a killed save", " 0 B  ", "\"bytes\":0,", "damaged", "DAMAGED"}) {
        CHECK(said.out.find(wrong) == std::string::npos);
      }
    });
  }
  CHECK(log.count(sw::log_level::warning) == 0);
}
