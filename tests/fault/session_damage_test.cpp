// SPDX-License-Identifier: Apache-2.0
//
// Tests of a training session with damaged checkpoints: it continues from an older one with a warning, or it stops
// without changing any file. checkpoint_fault_test.cpp shows that damage in every bit is found.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/base/error.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace fs = std::filesystem;
using sw::test::adding_model;
using sw::test::file_text;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

struct damage {
  std::string name;
  std::function<void(const std::string&)> inflict;  // argument: the prefix of the checkpoint
};

std::function<void(const std::string&)> flip(std::string ending, double where, int bit = 3) {
  return [=](const std::string& prefix) {
    auto bytes = file_text(prefix + ending);
    const auto at = where < 0 ? bytes.size() - static_cast<std::size_t>(-where) : static_cast<std::size_t>(where);
    bytes.at(at) = static_cast<char>(bytes[at] ^ (1 << bit));
    write_file_text(prefix + ending, bytes);
  };
}

std::function<void(const std::string&)> cut(std::string ending, std::size_t by) {
  return [=](const std::string& prefix) {
    const auto bytes = file_text(prefix + ending);
    write_file_text(prefix + ending, bytes.substr(0, by < bytes.size() ? bytes.size() - by : 0));
  };
}

std::function<void(const std::string&)> lose(std::string ending) {
  return [=](const std::string& prefix) { fs::remove(prefix + ending); };
}

const std::string first = ".data-00000-of-00002";
const std::string second = ".data-00001-of-00002";

std::vector<damage> all_kinds() {
  return {{"a bit of the first tensor", flip(first, 0)},
          {"a bit of the last tensor", flip(first, -1)},
          {"a bit of the second shard", flip(second, 1)},
          {"a bit of the first key", flip(".index", 2)},
          {"a bit of an entry", flip(".index", 40)},
          {"a bit of a block's checksum", flip(".index", -49)},
          {"a bit of the footer's handles", flip(".index", -48)},
          {"a bit of the magic number", flip(".index", -1)},
          {"the data cut by one byte", cut(first, 1)},
          {"the data cut to nothing", cut(second, 1 << 20)},
          {"the index cut by one byte", cut(".index", 1)},
          {"the index cut by half its footer", cut(".index", 24)},
          {"the index cut to nothing", cut(".index", 1 << 20)},
          {"the first shard missing", lose(first)},
          {"the second shard missing", lose(second)}};
}

/// Writes checkpoints of steps 0, 2 and 4 with two shards each.
void make_run(const std::string& directory) {
  adding_model model;
  REQUIRE(sw::test::finish_on_sound_files(model, directory, 4, 2) == -1);
  REQUIRE(sw::test::steps_in(directory) == "0 2 4");
}

}  // namespace

TEST_CASE("if the newest checkpoint is damaged, training continues from the previous one with a warning", "[fault][session][damage]") {
  for (const auto& [name, inflict] : all_kinds()) {
    CAPTURE(name);
    const temporary_directory directory;
    make_run(directory.path());
    inflict(directory / "model.ckpt-4");
    sw::test::log_capture log;
    adding_model model{.sum = 77};
    CHECK(sw::test::finish_on_sound_files(model, directory.path(), 6, 2) == 2);
    CHECK(log.contains(sw::log_level::warning, "model.ckpt-4 is damaged and skipped"));
    CHECK(same(model, sw::test::model_after(6)));
    const auto newest = sw::test::newest_in(directory.path());
    CHECK(newest.step == 6);
    CHECK(same(newest.model, sw::test::model_after(6)));
    const sw::checkpoint_reader mended(directory / "model.ckpt-4");  // saved again by the session
    mended.verify();
  }
}

TEST_CASE("a damaged newest checkpoint is restored over by the next older one, and read once", "[fault][session][damage]") {
  const temporary_directory directory;
  make_run(directory.path());
  flip(second, 1)(directory / "model.ckpt-4");
  sw::test::log_capture log;
  adding_model model{.sum = 77};
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
  CHECK(session.restored_from() == directory / "model.ckpt-2");
  CHECK(same(model, sw::test::model_after(2)));
  CHECK(log.contains(sw::log_level::warning, "the variables may hold a mixture"));  // sum of step 4 was read before weights
}

TEST_CASE("when two are damaged the third one is used", "[fault][session][damage]") {
  const temporary_directory directory;
  make_run(directory.path());
  flip(first, 0)(directory / "model.ckpt-4");
  lose(second)(directory / "model.ckpt-2");
  sw::test::log_capture log;
  adding_model model{.sum = 77};
  CHECK(sw::test::finish_on_sound_files(model, directory.path(), 6, 2) == 0);
  CHECK(log.count(sw::log_level::warning) >= 2);
  CHECK(same(model, sw::test::model_after(6)));
}

TEST_CASE("a damaged state file hides nothing", "[fault][session][damage]") {
  const temporary_directory directory;
  make_run(directory.path());
  write_file_text(directory / "checkpoint", GENERATE(as<std::string>{}, "", "model_checkpoint_path: \"mo", std::string(100, '\xff')));
  sw::test::log_capture log;
  adding_model model{.sum = 77};
  CHECK(sw::test::finish_on_sound_files(model, directory.path(), 6, 2) == 4);
  CHECK(log.count(sw::log_level::warning) >= 1);
  CHECK(same(model, sw::test::model_after(6)));
}

TEST_CASE("when all are damaged it is data loss, and not a byte of a checkpoint changes", "[fault][session][damage]") {
  for (const auto& [name, inflict] : all_kinds()) {
    CAPTURE(name);
    const temporary_directory directory;
    make_run(directory.path());
    for (const auto* step : {"0", "2", "4"}) { inflict(directory / "model.ckpt-" + step); }
    const auto before = sw::test::contents_of(directory.path());
    sw::test::log_capture log;
    adding_model model{.sum = 77};
    std::string text;
    try {
      auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
      FAIL("a session started from nothing, or from damaged bytes");
    } catch (const sw::data_loss_error& failure) {
      text = failure.what();
      CHECK(text.find("none of the 3 checkpoints") != std::string::npos);
      for (const auto* step : {"0", "2", "4"}) { CHECK(text.find(std::string("model.ckpt-") + step) != std::string::npos); }
    }
    if (!same(model, adding_model{.sum = 77})) { CHECK(text.find("the variables may hold a mixture") != std::string::npos); }
    auto after = sw::test::contents_of(directory.path());
    std::erase_if(after, [&](const auto& file) {  // the session began to write events before it read the checkpoints
      return file.first.find("tfevents") != std::string::npos && !before.contains(file.first);
    });
    CHECK(after == before);
  }
}
