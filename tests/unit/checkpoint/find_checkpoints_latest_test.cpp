// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/find_checkpoints.hpp>

#include "support/beside_retention.hpp"
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/testdata.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/detail/checkpoint_directory.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

void write_checkpoint(const std::string& prefix) {
  std::int64_t step = sw::step_of_checkpoint(prefix).value_or(0);
  sw::detail::checkpoint_writer writer(prefix);
  writer.add("global_step", sw::view_of(step));
  writer.commit();
}

void damage(const std::string& file) {
  auto bytes = sw::test::file_text(file);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  write_file_text(file, bytes);
}

std::string newest(const temporary_directory& directory) {
  const auto reader = sw::latest_whole_checkpoint(directory.path());
  return reader ? std::filesystem::path(reader->prefix()).filename().string() : "";
}

}  // namespace

TEST_CASE("a prefix names its step", "[checkpoint][latest]") {
  CHECK(sw::step_of_checkpoint("run/model.ckpt-500") == 500);
  CHECK(sw::step_of_checkpoint("a-b-00000007") == 7);
  CHECK_FALSE(sw::step_of_checkpoint("model").has_value());
  CHECK_FALSE(sw::step_of_checkpoint("model-").has_value());
  CHECK_FALSE(sw::step_of_checkpoint("model-1x").has_value());
  CHECK_FALSE(sw::step_of_checkpoint("model-99999999999999999999").has_value());
}

TEST_CASE("STATE-4 STATE-5 the latest checkpoint is the one that the state file names, if it exists", "[checkpoint][latest]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  CHECK_FALSE(sw::latest_checkpoint(directory.path()).has_value());
  CHECK_FALSE(sw::latest_checkpoint(directory / "nowhere").has_value());
  write_checkpoint(directory / "model.ckpt-1");
  CHECK_FALSE(sw::latest_checkpoint(directory.path()).has_value());
  CHECK(log.messages().empty());
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-1\"");
  CHECK(sw::latest_checkpoint(directory.path()) == directory / "model.ckpt-1");
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"" + (directory / "model.ckpt-1") + "\"");
  CHECK(sw::latest_checkpoint(directory.path()) == directory / "model.ckpt-1");
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"/moved/away/model.ckpt-1\"");
  CHECK(sw::latest_checkpoint(directory.path()) == directory / "model.ckpt-1");
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-2\" all_model_checkpoint_paths: \"model.ckpt-1\"");
  CHECK_FALSE(sw::latest_checkpoint(directory.path()).has_value());
  CHECK(log.contains(sw::log_level::warning, "model.ckpt-2"));
  write_file_text(directory / "checkpoint", "garbage");
  CHECK_FALSE(sw::latest_checkpoint(directory.path()).has_value());
  CHECK(log.contains(sw::log_level::warning, "does not parse"));
}

TEST_CASE("checkpoints on disk are listed by rising step", "[checkpoint][latest]") {
  const temporary_directory directory;
  CHECK(sw::list_checkpoints(directory / "nowhere").empty());
  for (const std::string name : {"model.ckpt-10", "model.ckpt-9", "model.ckpt-x", "other-3", "model.ckpt"}) {
    write_file_text(directory / name + ".index", "");
  }
  CHECK(sw::list_checkpoints(directory.path()) == std::vector<std::string>{directory / "model.ckpt-9", directory / "model.ckpt-10"});
  CHECK(sw::list_checkpoints(directory.path(), "other") == std::vector<std::string>{directory / "other-3"});
  CHECK_THROWS_AS(sw::list_checkpoints(directory / "other-3.index"), sw::invalid_argument_error);
}

TEST_CASE("a directory that claims nothing has no newest checkpoint", "[checkpoint][latest]") {
  const temporary_directory directory;
  CHECK_FALSE(sw::latest_whole_checkpoint(directory / "nowhere").has_value());
  write_file_text(directory / "model.ckpt-3.data-00000-of-00001", "an orphan claims nothing");
  CHECK_FALSE(sw::latest_whole_checkpoint(directory.path()).has_value());
}

TEST_CASE("D-4 the newest whole one is found, past damaged ones, with a warning for each", "[checkpoint][latest]") {
  const temporary_directory directory;
  for (const std::string step : {"1", "2", "3", "4"}) { write_checkpoint(directory / "model.ckpt-" + step); }
  write_file_text(directory / "checkpoint",
                  "model_checkpoint_path: \"model.ckpt-4\" "
                  "all_model_checkpoint_paths: [\"model.ckpt-2\", \"model.ckpt-3\", \"model.ckpt-4\"]");
  CHECK(newest(directory) == "model.ckpt-4");
  sw::test::log_capture log;
  damage(directory / "model.ckpt-4.data-00000-of-00001");
  CHECK(newest(directory) == "model.ckpt-3");
  CHECK(log.count(sw::log_level::warning) == 1);
  CHECK(log.contains(sw::log_level::warning, "model.ckpt-4"));
  CHECK(log.contains(sw::log_level::warning, "global_step"));
  damage(directory / "model.ckpt-3.index");
  CHECK(newest(directory) == "model.ckpt-2");
  std::filesystem::remove(directory / "model.ckpt-2.data-00000-of-00001");
  CHECK(newest(directory) == "model.ckpt-1");  // found although it is not listed
  std::filesystem::remove(directory / "model.ckpt-1.index");
  CHECK_THROWS_AS(newest(directory), sw::data_loss_error);
  CHECK_THROWS_WITH(newest(directory),
                    ContainsSubstring("model.ckpt-4") && ContainsSubstring("model.ckpt-3") && ContainsSubstring("model.ckpt-2"));
}

TEST_CASE("a state file that names only what is gone is a claim, and an error", "[checkpoint][latest]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-4\"");
  CHECK_THROWS_AS(newest(directory), sw::data_loss_error);
}

TEST_CASE("STATE-4, D-4 an invalid state file is skipped with a warning", "[checkpoint][latest]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  write_checkpoint(directory / "model.ckpt-20");
  sw::test::log_capture log;
  SECTION("it does not parse") { write_file_text(directory / "checkpoint", "{"); }
  SECTION("it is empty") { write_file_text(directory / "checkpoint", ""); }
  SECTION("it is a directory") { std::filesystem::create_directory(directory / "checkpoint"); }
  CHECK(newest(directory) == "model.ckpt-20");
  CHECK(log.count(sw::log_level::warning) == 1);
  CHECK(log.contains(sw::log_level::warning, "Invalid checkpoint state loaded from " + (directory / "checkpoint")));
}

TEST_CASE("without a state file the highest step is newest", "[checkpoint][latest]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-9");
  write_checkpoint(directory / "model.ckpt-10");
  CHECK(newest(directory) == "model.ckpt-10");
}

TEST_CASE("a save killed before its last word is newer than the state file", "[checkpoint][latest]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-5");
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-5\"");
  write_checkpoint(directory / "model.ckpt-7");
  CHECK(newest(directory) == "model.ckpt-7");
}

TEST_CASE("a state file that chooses an older one, and lists the newer one too, is obeyed", "[checkpoint][latest]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-5");
  write_checkpoint(directory / "model.ckpt-7");
  write_file_text(directory / "checkpoint",
                  "model_checkpoint_path: \"model.ckpt-5\" "
                  "all_model_checkpoint_paths: [\"model.ckpt-5\", \"model.ckpt-7\"]");
  CHECK(newest(directory) == "model.ckpt-5");
}

TEST_CASE("an unlisted checkpoint is compared with the step in the listed one, where its name has none", "[checkpoint][latest]") {
  const temporary_directory directory;
  sw::detail::checkpoint_writer writer(directory / "last");
  const std::int64_t step = 6;
  writer.add("global_step", sw::view_of(step));
  writer.commit();
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"last\"");
  write_checkpoint(directory / "model.ckpt-5");
  CHECK(newest(directory) == "last");
  write_checkpoint(directory / "model.ckpt-7");
  CHECK(newest(directory) == "model.ckpt-7");
}

TEST_CASE("the list has the order of time, so training that was rolled back to a lower step continues there", "[checkpoint][latest]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-300");
  write_checkpoint(directory / "model.ckpt-250");
  write_file_text(directory / "checkpoint",
                  "model_checkpoint_path: \"model.ckpt-250\" "
                  "all_model_checkpoint_paths: [\"model.ckpt-300\", \"model.ckpt-250\"]");
  CHECK(newest(directory) == "model.ckpt-250");
}

TEST_CASE("a file without permission to read it is an error, never a silent restart", "[checkpoint][latest]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-1\"");
  for (const std::string part : {"/checkpoint", ".index", ".data-"}) {
    CAPTURE(part);
    const auto files = std::make_shared<sw::test::fault_file_system>();
    files->inject({.kind = sw::test::operation::open, .path_contains = part, .errno_value = EACCES});
    CHECK_THROWS_AS(sw::latest_whole_checkpoint(directory.path(), "model.ckpt", files), sw::permission_denied_error);
  }
  const auto files = std::make_shared<sw::test::fault_file_system>();
  files->inject({.kind = sw::test::operation::list, .errno_value = EACCES});
  CHECK_THROWS_AS(sw::latest_whole_checkpoint(directory.path(), "model.ckpt", files), sw::permission_denied_error);
}

TEST_CASE("training continues from a directory of TensorFlow", "[checkpoint][latest]") {
  const auto folder = sw::test::testdata("ckpt/tf1_estimator");
  if (folder.empty()) { return; }
  CHECK(sw::latest_checkpoint(folder) == folder + "/model.ckpt-10000");
  const auto reader = sw::latest_whole_checkpoint(folder);
  REQUIRE(reader);
  CHECK(reader->is_verified());
  CHECK(reader->step() == 10000);
}

TEST_CASE("readers beside a run that saves never take a deleted checkpoint for a damaged one", "[checkpoint][latest][beside]") {
  sw::test::log_capture log;
  const auto kept = GENERATE(1, 3);
  sw::test::busy_directory run(kept);
  const auto check = [&](const std::function<bool(const std::string&, const std::shared_ptr<sw::io::file_system>&)>& reads) {
    run.at_each_operation([&](const auto& files) { CHECK(reads(run.path(), files)); });
  };
  SECTION("latest_whole_checkpoint") {
    check([](const auto& directory, const auto& files) {
      const auto found = sw::latest_whole_checkpoint(directory, sw::default_checkpoint_basename, files);
      return found && sw::test::toy_in(*found) == sw::test::toy_at(*found->step());
    });
  }
  SECTION("open_newest, and the restore") {
    check([](const auto& directory, const auto& files) {
      const auto found = sw::open_newest(directory, sw::default_checkpoint_basename, files);
      return found && sw::test::toy_in(*found) == sw::test::toy_at(*found->step());
    });
  }
  SECTION("latest_checkpoint") {
    check([](const auto& directory, const auto& files) { return sw::latest_checkpoint(directory, files).has_value(); });
  }
  SECTION("wait_for_new_checkpoint") {
    check([](const auto& directory, const auto& files) {
      return sw::wait_for_new_checkpoint(directory, std::nullopt, {.timeout = 0, .file_system = files}).has_value();
    });
  }
  SECTION("checkpoints_iterator") {
    const bool all = GENERATE(false, true);
    check([all](const auto& directory, const auto& files) {
      int count = 0;
      for ([[maybe_unused]] const auto& prefix :
           sw::checkpoints_iterator(directory, {.wait = {.timeout = 0, .file_system = files}, .all_listed = all})) {
        ++count;
      }
      return count >= 1;
    });
  }
  SECTION("the files of all checkpoints, as the board and `stats` show them") {
    check([](const auto& directory, const auto& files) {
      const auto all = sw::detail::find_checkpoint_files(*files, directory);
      return !all.empty() && std::ranges::all_of(all, [&](const auto& one) { return one.size_bytes > all.front().size_bytes / 2; });
    });
  }
  SECTION("a reader of one checkpoint, which is read or is not there") {
    check([](const auto& directory, const auto& files) {
      const auto newest = sw::latest_checkpoint(directory);
      try {
        return sw::test::toy_in(sw::checkpoint_reader(newest.value(), files)) == sw::test::toy_at(*sw::step_of_checkpoint(*newest));
      } catch (const sw::not_found_error&) { return true; }
    });
  }
  CHECK(log.count(sw::log_level::warning) == 0);
}
