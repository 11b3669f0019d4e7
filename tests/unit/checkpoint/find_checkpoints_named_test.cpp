// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/find_checkpoints.hpp>

#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/saver_rig.hpp"

#include <stepwell/base/error.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::names_in;
using sw::test::operation;
using sw::test::toy_snapshot;
using sw::test::workshop;

namespace {

void save_two(const workshop& shop) {
  auto saver = shop.make({.shards = 2});
  for (const std::int64_t step : {1, 2}) { saver.save_and_wait(toy_snapshot(step)); }
  saver.drain();
}

}  // namespace

TEST_CASE("STATE-6 a checkpoint is there when its index is, and since then", "[checkpoint][named]") {
  const workshop shop;
  save_two(shop);
  const std::vector<std::string> prefixes = {shop.directory / "model.ckpt-1", shop.directory / "model.ckpt-9",
                                             shop.directory / "model.ckpt-2"};
  CHECK(sw::checkpoint_exists(prefixes[0]));
  CHECK_FALSE(sw::checkpoint_exists(prefixes[1]));
  CHECK_FALSE(sw::checkpoint_exists(shop.directory / "nowhere/model.ckpt-1"));
  const auto times = sw::get_checkpoint_mtimes(prefixes);
  REQUIRE(times.size() == 2);  // one is missing
  const auto files = sw::io::posix_file_system();
  CHECK(times[0] == files->stat(prefixes[0] + ".index")->modified);
  CHECK(times[1] == files->stat(prefixes[2] + ".index")->modified);
}

TEST_CASE("STATE-6 a checkpoint is removed with all its files, the index first", "[checkpoint][named]") {
  const workshop shop;
  save_two(shop);
  const auto prefix = shop.directory / "model.ckpt-1";
  sw::test::write_file_text(prefix + ".meta", "a graph that TensorFlow left");
  const auto before = shop.files->operations();
  sw::remove_checkpoint(prefix, shop.files);
  CHECK(names_in(shop.directory.path()) ==
        "checkpoint model.ckpt-2.data-00000-of-00002 model.ckpt-2.data-00001-of-00002 model.ckpt-2.index");
  std::vector<std::string> removed;
  for (const auto& event : shop.files->history()) {
    if (event.number > before && event.kind == operation::remove) { removed.push_back(event.path.substr(prefix.size())); }
  }
  CHECK(removed == std::vector<std::string>{".index", ".data-00000-of-00002", ".data-00001-of-00002", ".meta"});
  CHECK_NOTHROW(sw::remove_checkpoint(prefix, shop.files));
  CHECK_NOTHROW(sw::remove_checkpoint(shop.directory / "nowhere/model.ckpt-1"));
}

TEST_CASE("a checkpoint whose index must not be removed stays whole", "[checkpoint][named]") {
  const workshop shop;
  save_two(shop);
  const auto before = names_in(shop.directory.path());
  shop.files->inject({.kind = operation::remove, .path_contains = ".index", .errno_value = EACCES});
  CHECK_THROWS_AS(sw::remove_checkpoint(shop.directory / "model.ckpt-2", shop.files), sw::permission_denied_error);
  CHECK(names_in(shop.directory.path()) == before);
  sw::test::log_capture log;
  shop.files->inject({.kind = operation::remove, .path_contains = ".data-00000", .errno_value = EACCES});
  sw::remove_checkpoint(shop.directory / "model.ckpt-2", shop.files);
  CHECK(log.contains(sw::log_level::warning, "model.ckpt-2.data-00000-of-00002"));
  CHECK_FALSE(sw::checkpoint_exists(shop.directory / "model.ckpt-2"));
}
