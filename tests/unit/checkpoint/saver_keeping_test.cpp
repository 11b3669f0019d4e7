// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/saver.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/saver_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::names_in;
using sw::test::save_and_settle;
using sw::test::toy_at;
using sw::test::toy_in;
using sw::test::toy_snapshot;
using sw::test::workshop;
using namespace std::chrono_literals;

TEST_CASE("CKPT-1 a saver without options keeps the newest five checkpoints, each in one shard", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make();
  for (std::int64_t step = 1; step <= 7; ++step) { save_and_settle(saver, toy_snapshot(step)); }
  CHECK(shop.steps() == "3 4 5 6 7");
  CHECK(std::filesystem::exists(shop.directory / "model.ckpt-7.data-00000-of-00001"));
  shop.clock->advance(24h * 365);  // age alone keeps no checkpoint
  save_and_settle(saver, toy_snapshot(8));
  CHECK(shop.steps() == "4 5 6 7 8");
}

TEST_CASE("STATE-7 the state file is written before an older checkpoint goes, and again after", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make({.max_to_keep = 1});
  save_and_settle(saver, toy_snapshot(1));
  const auto before = shop.files->operations();
  save_and_settle(saver, toy_snapshot(2));
  std::string order;
  for (const auto& event : shop.files->history()) {
    if (event.number <= before) { continue; }
    const bool is_old = event.path.find("model.ckpt-1.") != std::string::npos;
    const bool is_state = event.path.find("model.ckpt") == std::string::npos;
    if (event.kind == sw::test::operation::rename && is_state) { order += "state "; }
    if (event.kind == sw::test::operation::remove && is_old) { order += event.path.ends_with(".index") ? "index " : "data "; }
  }
  CHECK(order == "state index state data ");
}

TEST_CASE("STATE-7 a time of the last kept checkpoint that is in the future is ignored", "[checkpoint][saver]") {
  workshop shop;
  const auto options = sw::saver_options{.max_to_keep = 1, .keep_every_n_hours = 2};
  { shop.make(options).save_and_wait(toy_snapshot(1)); }
  auto state = sw::test::file_text(shop.directory / "checkpoint");
  const auto note = state.find("last_preserved_timestamp");
  REQUIRE(note != std::string::npos);
  sw::test::write_file_text(shop.directory / "checkpoint", state.substr(0, note) + "last_preserved_timestamp: 9e9\n");
  auto saver = shop.make(options);
  save_and_settle(saver, toy_snapshot(2));
  CHECK(shop.steps() == "1 2");  // as if the previous checkpoint had been kept two hours ago
  save_and_settle(saver, toy_snapshot(3));
  CHECK(shop.steps() == "1 3");
}

TEST_CASE("CKPT-5 CKPT-7 the newest are kept, and a step saved again is the newest", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make({.max_to_keep = 2});
  for (const std::int64_t step : {1, 2, 3}) { save_and_settle(saver, toy_snapshot(step)); }
  CHECK(shop.steps() == "2 3");
  save_and_settle(saver, toy_snapshot(2));
  CHECK(saver.checkpoints() == std::vector<std::string>{shop.directory / "model.ckpt-3", shop.directory / "model.ckpt-2"});
  save_and_settle(saver, toy_snapshot(1));
  CHECK(shop.steps() == "1 2");
  CHECK(names_in(shop.directory.path()) ==
        "checkpoint model.ckpt-1.data-00000-of-00001 model.ckpt-1.index "
        "model.ckpt-2.data-00000-of-00002 model.ckpt-2.data-00001-of-00002 model.ckpt-2.index");
  const auto state = sw::test::file_text(shop.directory / "checkpoint");
  CHECK(state.find("model.ckpt-3") == std::string::npos);
}

TEST_CASE("CKPT-8 STATE-7, D-13 a later saver knows the checkpoints of an earlier one, and keeps fewer if its options say so",
          "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    for (std::int64_t step = 1; step <= 4; ++step) { save_and_settle(saver, toy_snapshot(step)); }
  }
  auto saver = shop.make({.max_to_keep = 2});
  CHECK(saver.checkpoints().size() == 4);
  CHECK_FALSE(saver.latest().has_value());
  save_and_settle(saver, toy_snapshot(5));
  CHECK(shop.steps() == "4 5");
}

TEST_CASE("the one restored from, and pinned ones, are never deleted", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    for (std::int64_t step = 1; step <= 3; ++step) { save_and_settle(saver, toy_snapshot(step)); }
  }
  auto saver = shop.make({.max_to_keep = 1, .pinned = {"model.ckpt-1"}});
  CHECK(saver.restore_newest()->step() == 3);
  save_and_settle(saver, toy_snapshot(4));
  saver.pin(shop.directory / "model.ckpt-4");
  save_and_settle(saver, toy_snapshot(5));
  save_and_settle(saver, toy_snapshot(6));
  CHECK(shop.steps() == "1 3 4 6");
}

TEST_CASE("a checkpoint is pinned by its name, its path, one of its files, its step, or before it is saved", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make({.max_to_keep = sw::none});
    for (std::int64_t step = 1; step <= 5; ++step) { save_and_settle(saver, toy_snapshot(step)); }
  }
  auto saver = shop.make(
      {.max_to_keep = 1, .pinned = {"model.ckpt-1", shop.directory / "model.ckpt-2.index", "model.ckpt-3.data-00000-of-00001", "4", "7"}});
  saver.pin("model.ckpt-8");
  for (std::int64_t step = 6; step <= 10; ++step) { save_and_settle(saver, toy_snapshot(step)); }
  CHECK(shop.steps() == "1 2 3 4 7 8 10");
  saver.pin("10");
  save_and_settle(saver, toy_snapshot(11));
  CHECK(shop.steps() == "1 2 3 4 7 8 10 11");
}

TEST_CASE("a pin that matches no checkpoint and none that can be saved later is an error, and no file changes", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    for (const std::int64_t step : {2, 4}) { save_and_settle(saver, toy_snapshot(step)); }
  }
  sw::test::write_file_text(shop.directory / "model.ckpt-3.data-00000-of-00001", "left by a killed save");
  const auto before = names_in(shop.directory.path());
  for (const auto* pin : {"modle.ckpt-2", "model.ckpt-3", "3", "model.ckpt", "/elsewhere/model.ckpt-2", "best", ""}) {
    INFO(pin);
    CHECK_THROWS_AS(shop.make({.pinned = {"model.ckpt-2", pin}}), sw::not_found_error);
    CHECK(names_in(shop.directory.path()).find(before) == 0);  // a lock file may follow
  }
  auto saver = shop.make();
  CHECK_THROWS_AS(saver.pin("model.ckpt-3"), sw::not_found_error);
  CHECK_THROWS_AS(saver.pin("modle.ckpt-9"), sw::not_found_error);
}

TEST_CASE("D-13 of the restored checkpoints only the last one stays, so many recoveries do not fill the disk", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make({.max_to_keep = 1});
  for (std::int64_t step = 1; step <= 20; ++step) {
    save_and_settle(saver, toy_snapshot(step));
    CHECK(saver.restore_newest()->step() == step);
  }
  save_and_settle(saver, toy_snapshot(21));
  CHECK(shop.steps() == "20 21");
}

TEST_CASE("checkpoints that no saver of ours wrote are never deleted", "[checkpoint][saver]") {
  workshop shop;
  std::int64_t step = 1;
  {
    sw::detail::checkpoint_writer writer(shop.directory / "model.ckpt-1");
    writer.add("global_step", sw::view_of(step));
    writer.commit();
    sw::test::write_file_text(shop.directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-1\"");
  }
  auto saver = shop.make({.max_to_keep = 1});
  for (const std::int64_t next : {2, 3}) { save_and_settle(saver, toy_snapshot(next)); }
  CHECK(shop.steps() == "1 3");
  CHECK(saver.checkpoints() == std::vector<std::string>{shop.directory / "model.ckpt-3"});
}

TEST_CASE("CKPT-6 STATE-7, D-13 one checkpoint of each period of hours is kept forever, also over restarts", "[checkpoint][saver]") {
  workshop shop;
  for (std::int64_t step = 1; step <= 7; ++step) {
    auto saver = shop.make({.max_to_keep = 1, .keep_every_n_hours = 2});
    shop.clock->advance(1h);
    save_and_settle(saver, toy_snapshot(step));
  }
  CHECK(shop.steps() == "2 4 6 7");  // saved at hours 1 to 7; the first saver was made at hour 0
}

TEST_CASE("the start removes and logs the leftovers of killed saves, and nothing else", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    save_and_settle(saver, toy_snapshot(1));
  }
  const auto put = [&](const std::string& name) { sw::test::write_file_text(shop.directory / name, "x"); };
  for (const std::string name : {".tmp-1-2-model.ckpt-9.index", ".tmp-1-2-checkpoint", "model.ckpt-9.data-00000-of-00001",
                                 "model.ckpt-1.data-00000-of-00002", ".tmp-1-3-model.ckpt-9.data-00000-of-00001"}) {
    put(name);
  }
  for (const std::string name : {"other-9.data-00000-of-00001", ".tmp-1-2-events", ".tmp-1-2-my-model.ckpt-3.index",
                                 ".tmp-1-2-my-checkpoint", "model.ckpt-x.data-00000-of-00001", "model.ckpt-9.meta"}) {
    put(name);
  }
  sw::test::log_capture log;
  auto saver = shop.make();
  CHECK(names_in(shop.directory.path()) ==
        ".tmp-1-2-events .tmp-1-2-my-checkpoint .tmp-1-2-my-model.ckpt-3.index "
        "checkpoint model.ckpt-1.data-00000-of-00001 model.ckpt-1.index "
        "model.ckpt-9.meta model.ckpt-x.data-00000-of-00001 other-9.data-00000-of-00001");
  CHECK(log.contains(sw::log_level::info, "model.ckpt-9.data-00000-of-00001"));
  CHECK(log.contains(sw::log_level::info, "model.ckpt-1.data-00000-of-00002"));
  CHECK(toy_in(*saver.restore_newest()) == toy_at(1));
}

TEST_CASE("a directory that may not be written is refused at construction", "[checkpoint][saver]") {
  workshop shop;
  shop.files->inject({.kind = sw::test::operation::lock, .errno_value = EROFS});
  CHECK_THROWS_AS(shop.make(), sw::permission_denied_error);
}

TEST_CASE("a checkpoint that may not be read stops a saver from taking over", "[checkpoint][saver]") {
  workshop shop;
  { shop.make().save_and_wait(toy_snapshot(1)); }
  shop.files->inject({.kind = sw::test::operation::open, .path_contains = ".index", .errno_value = EACCES});
  CHECK_THROWS_AS(shop.make(), sw::permission_denied_error);
}

TEST_CASE("CKPT-6 a failed deletion is logged, and tried again after the next save", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  auto saver = shop.make({.max_to_keep = 1});
  save_and_settle(saver, toy_snapshot(1));
  shop.files->inject({.kind = sw::test::operation::remove, .path_contains = "model.ckpt-1.index", .errno_value = EPERM});
  save_and_settle(saver, toy_snapshot(2));
  CHECK(shop.steps() == "1 2");
  CHECK(log.contains(sw::log_level::warning, "model.ckpt-1"));
  save_and_settle(saver, toy_snapshot(3));
  CHECK(shop.steps() == "3");
}

TEST_CASE("CKPT-8 damaged checkpoints do not count as kept, and stay", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  {
    auto saver = shop.make();
    for (std::int64_t step = 1; step <= 3; ++step) { save_and_settle(saver, toy_snapshot(step)); }
  }
  auto bytes = sw::test::file_text(shop.directory / "model.ckpt-3.data-00000-of-00001");
  bytes[5] = static_cast<char>(~bytes[5]);
  sw::test::write_file_text(shop.directory / "model.ckpt-3.data-00000-of-00001", bytes);
  std::filesystem::remove(shop.directory / "model.ckpt-1.data-00000-of-00001");
  auto saver = shop.make({.max_to_keep = 2});
  CHECK(saver.restore_newest()->step() == 2);
  CHECK(saver.checkpoints() == std::vector<std::string>{shop.directory / "model.ckpt-2"});
  save_and_settle(saver, toy_snapshot(4));
  CHECK(shop.steps() == "1 2 3 4");
}

TEST_CASE("when none is whole nothing is overwritten", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  { shop.make().save_and_wait(toy_snapshot(1)); }
  std::filesystem::resize_file(shop.directory / "model.ckpt-1.data-00000-of-00001", 3);
  const auto before = names_in(shop.directory.path());
  {
    auto saver = shop.make();
    CHECK_THROWS_AS(saver.restore_newest(), sw::data_loss_error);
  }
  CHECK(names_in(shop.directory.path()) == before);
}

TEST_CASE("data without an index stays when the state file still calls it newest", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  { shop.make().save_and_wait(toy_snapshot(1)); }
  std::filesystem::rename(shop.directory / "model.ckpt-1.index", shop.directory / "saved.index");
  {
    auto saver = shop.make();
    CHECK_THROWS_AS(saver.restore_newest(), sw::data_loss_error);
  }
  std::filesystem::rename(shop.directory / "saved.index", shop.directory / "model.ckpt-1.index");
  CHECK(toy_in(*shop.make().restore_newest()) == toy_at(1));
}

TEST_CASE("CKPT-7 without a state file nothing is listed, so nothing is deleted", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    for (const std::int64_t step : {1, 2, 3}) { save_and_settle(saver, toy_snapshot(step)); }
  }
  std::filesystem::remove(shop.directory / "checkpoint");
  for (const std::int64_t step : {4, 5}) {
    auto saver = shop.make({.max_to_keep = 1});
    save_and_settle(saver, toy_snapshot(step));
  }
  CHECK(shop.steps() == "1 2 3 5");
}

TEST_CASE("STATE-2 a checkpoint is the same one by any spelling of its directory", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    for (const std::int64_t step : {1, 2}) { save_and_settle(saver, toy_snapshot(step)); }
  }
  const auto absolute = shop.directory / "model.ckpt-2";
  sw::test::write_file_text(shop.directory / "checkpoint", "model_checkpoint_path: \"" + absolute +
                                                               "\"\n"
                                                               "all_model_checkpoint_paths: \"model.ckpt-2\"\n"
                                                               "all_model_checkpoint_paths: \"./model.ckpt-1\"\n"
                                                               "all_model_checkpoint_paths: \"" +
                                                               absolute + "\"\n");
  auto saver = shop.make({.max_to_keep = 1, .pinned = {shop.directory.path() + "/./model.ckpt-1"}});
  CHECK(saver.checkpoints() == std::vector<std::string>{shop.directory / "model.ckpt-1", shop.directory / "model.ckpt-2"});
  for (const std::int64_t step : {3, 4}) { save_and_settle(saver, toy_snapshot(step)); }
  CHECK(shop.steps() == "1 4");
}

TEST_CASE("a checkpoint that is listed by another path and newer by its number is listed once, as the newest", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    for (const std::int64_t step : {1, 2, 3}) { save_and_settle(saver, toy_snapshot(step)); }
  }
  const auto same = "../" + sw::io::base_name(shop.directory.path()) + "/model.ckpt-3";
  sw::test::write_file_text(shop.directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-2\"\nall_model_checkpoint_paths: \"" +
                                                               same + "\"\nall_model_checkpoint_paths: \"model.ckpt-1\"\n");
  auto saver = shop.make();
  CHECK(saver.checkpoints() ==
        std::vector<std::string>{shop.directory / "model.ckpt-1", shop.directory / "model.ckpt-2", shop.directory / "model.ckpt-3"});
}

TEST_CASE("STATE-2 listed checkpoints of another directory stay listed, also with relative paths", "[checkpoint][saver]") {
  workshop shop;
  {
    sw::saver other(shop.directory / "other", shop.with({}));
    save_and_settle(other, toy_snapshot(1));
  }
  std::filesystem::create_directory(shop.directory / "run");
  sw::test::write_file_text(shop.directory / "run/checkpoint", "model_checkpoint_path: \"../other/model.ckpt-1\"");
  const auto run = std::filesystem::relative(shop.directory / "run").string();
  {
    sw::saver saver(run, shop.with({}));
    CHECK(toy_in(*saver.restore_newest()) == toy_at(1));
    CHECK(saver.checkpoints() == std::vector<std::string>{*sw::io::absolute_path(run) + "/../other/model.ckpt-1"});
    save_and_settle(saver, toy_snapshot(2));
  }
  std::filesystem::remove(shop.directory / "run/model.ckpt-2.index");
  sw::test::log_capture log;
  sw::saver saver(run, shop.with({}));
  CHECK(toy_in(*saver.restore_newest()) == toy_at(1));
}

TEST_CASE("an unlisted checkpoint replaces the listed ones if all of them are damaged", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  {
    auto saver = shop.make();
    for (const std::int64_t step : {1, 2, 3}) { save_and_settle(saver, toy_snapshot(step)); }
  }
  sw::test::write_file_text(shop.directory / "checkpoint",
                            "model_checkpoint_path: \"model.ckpt-3\"\n"
                            "all_model_checkpoint_paths: \"model.ckpt-2\"\n");
  for (const std::string name : {"model.ckpt-2.data-00000-of-00001", "model.ckpt-3.data-00000-of-00001"}) {
    auto bytes = sw::test::file_text(shop.directory / name);
    bytes[5] = static_cast<char>(~bytes[5]);
    sw::test::write_file_text(shop.directory / name, bytes);
  }
  auto saver = shop.make({.max_to_keep = 1});
  CHECK(saver.restore_newest()->step() == 1);
  CHECK(saver.checkpoints() == std::vector<std::string>{shop.directory / "model.ckpt-1"});
  save_and_settle(saver, toy_snapshot(4));
  CHECK(shop.steps() == "1 2 3 4");
}

TEST_CASE("a saver whose directory was moved away does not write into the new one of that name", "[checkpoint][saver]") {
  workshop shop;
  const auto path = shop.directory / "run";
  sw::saver first(path, shop.with({}));
  save_and_settle(first, toy_snapshot(1));
  std::filesystem::rename(path, shop.directory / "kept");
  {
    sw::saver second(path, shop.with({}));
    save_and_settle(second, toy_snapshot(1));
    const auto before = sw::test::file_text(path + "/checkpoint");
    CHECK_THROWS_AS(first.save_and_wait(toy_snapshot(2)), sw::failed_precondition_error);
    CHECK(sw::test::file_text(path + "/checkpoint") == before);
  }
  CHECK_THROWS_AS(first.save_and_wait(toy_snapshot(2)), sw::failed_precondition_error);
  CHECK(sw::test::steps_in(path) == "1");
  CHECK(sw::test::steps_in(shop.directory / "kept") == "1");
}
