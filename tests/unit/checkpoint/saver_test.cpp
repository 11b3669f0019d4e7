// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/saver.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/saver_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/io/pool.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace sw = stepwell;
using sw::test::hold_data;
using sw::test::names_in;
using sw::test::save_and_settle;
using sw::test::steps_in;
using sw::test::toy_at;
using sw::test::toy_in;
using sw::test::toy_snapshot;
using sw::test::workshop;
using namespace std::chrono_literals;

constexpr std::size_t two_small = std::size_t{8} << 20;  // each snapshot counts as 4 MiB at least

static_assert(std::is_nothrow_move_constructible_v<sw::saver> && !std::is_copy_constructible_v<sw::saver>);

TEST_CASE("CKPT-4 STATE-1 a saved checkpoint is there with index, data and state file, and restores", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make();
  const auto saved = save_and_settle(saver, toy_snapshot(7));
  CHECK(saved.prefix == shop.directory / "model.ckpt-7");
  CHECK(saved.step == 7);
  CHECK(saved.size_bytes ==
        std::filesystem::file_size(saved.prefix + ".data-00000-of-00001") + std::filesystem::file_size(saved.prefix + ".index"));
  CHECK(names_in(shop.directory.path()) == "checkpoint model.ckpt-7.data-00000-of-00001 model.ckpt-7.index");
  const auto state = sw::test::file_text(shop.directory / "checkpoint");
  CHECK(state.starts_with("model_checkpoint_path: \"model.ckpt-7\"\nall_model_checkpoint_paths: \"model.ckpt-7\"\n"));
  CHECK(toy_in(sw::checkpoint_reader(saved.prefix)) == toy_at(7));
  CHECK(saver.latest()->step == 7);
  CHECK(saver.checkpoints() == std::vector<std::string>{saved.prefix});
}

TEST_CASE("strings count in the size of a saved checkpoint, and in max_staged_bytes", "[checkpoint][saver]") {
  workshop shop;
  sw::test::gate gate;
  hold_data(shop, gate);
  auto saver = shop.make({.max_staged_bytes = 3 * two_small, .when_busy = sw::when_busy::skip});
  std::string text(2 * two_small, 'x');
  const auto list = sw::variables({{"text", text}});
  const auto take = [&](std::int64_t step) {
    sw::snapshot_pool pool(sw::snapshot_size(list), 1);
    return sw::snapshot::capture(pool.acquire(), list, step);
  };
  CHECK(saver.save(take(1)) == sw::save_outcome::queued);
  CHECK(saver.backlog().writing_bytes == text.size());
  CHECK_FALSE(saver.make_room(text.size()));
  CHECK(saver.save(take(2)) == sw::save_outcome::skipped);  // two of them have more than max_staged_bytes
  gate.open();
  saver.drain();
  CHECK(saver.latest()->size_bytes >= text.size());
}

TEST_CASE("saves are written in the background, in order, and reported", "[checkpoint][saver]") {
  workshop shop;
  std::vector<std::int64_t> told;
  {
    auto saver = shop.make({.max_to_keep = sw::none});
    saver.on_saved([&](const sw::saved_checkpoint& saved) { told.push_back(saved.step); });
    for (std::int64_t step = 1; step <= 6; ++step) { CHECK(saver.save(toy_snapshot(step)) == sw::save_outcome::queued); }
    saver.drain();
    CHECK(told == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
    CHECK_FALSE(saver.busy());
    saver.save(toy_snapshot(7));
  }
  CHECK(told.size() == 7);  // the destructor waits
  CHECK(shop.steps() == "1 2 3 4 5 6 7");
}

TEST_CASE("a buffer is free again once its snapshot is durable, before the completion is reported", "[checkpoint][saver]") {
  workshop shop;
  auto toy = toy_at(1);
  sw::snapshot_pool pool(sw::snapshot_size(toy.list()));
  auto saver = shop.make();
  std::size_t available = 0;
  saver.on_saved([&](const sw::saved_checkpoint&) { available = pool.available(); });
  saver.save_and_wait(sw::snapshot::capture(pool.acquire(), toy.list(), 1));
  CHECK(available == 2);
}

TEST_CASE("a directory has one saver at a time, by whatever path", "[checkpoint][saver]") {
  workshop shop;
  {
    auto saver = shop.make();
    CHECK_THROWS_AS(shop.make(), sw::failed_precondition_error);
    CHECK_THROWS_WITH(sw::saver(shop.directory.path() + "/./"), ContainsSubstring("process"));
    std::filesystem::create_directory_symlink(shop.directory.path(), shop.directory.path() + "-link");
    CHECK_THROWS_AS(sw::saver(shop.directory.path() + "-link"), sw::failed_precondition_error);
    std::filesystem::remove(shop.directory.path() + "-link");
    const auto moved = std::move(saver);
    CHECK_THROWS_AS(shop.make(), sw::failed_precondition_error);
  }
  CHECK_NOTHROW(shop.make());
}

TEST_CASE("the directory is made if it is missing", "[checkpoint][saver]") {
  workshop shop;
  sw::saver saver(shop.directory / "a/b", shop.with({}));
  save_and_settle(saver, toy_snapshot(1));
  CHECK(steps_in(shop.directory / "a/b") == "1");
}

TEST_CASE("options that make no sense are refused", "[checkpoint][saver]") {
  workshop shop;
  CHECK_THROWS_AS(shop.make({.basename = ""}), sw::invalid_argument_error);
  CHECK_THROWS_AS(shop.make({.basename = "a/b"}), sw::invalid_argument_error);
  CHECK_THROWS_AS(shop.make({.shards = 0}), sw::invalid_argument_error);
  CHECK_THROWS_AS(shop.make({.shards = 100'000}), sw::invalid_argument_error);
}

TEST_CASE("CKPT-3 padded, the number of a step has eight digits, and counts as the number it is", "[checkpoint][saver]") {
  workshop shop;
  const auto options = sw::saver_options{.pad_step_number = true, .max_to_keep = 2};
  {
    auto saver = shop.make(options);
    CHECK(save_and_settle(saver, toy_snapshot(7)).prefix == shop.directory / "model.ckpt-00000007");
    CHECK(save_and_settle(saver, toy_snapshot(123456789)).prefix == shop.directory / "model.ckpt-123456789");
  }
  auto saver = shop.make(options);
  CHECK(saver.checkpoints().size() == 2);
  CHECK(saver.restore_newest()->step() == 123456789);
  save_and_settle(saver, toy_snapshot(8));
  CHECK(names_in(shop.directory.path()) ==
        "checkpoint model.ckpt-00000008.data-00000-of-00001 model.ckpt-00000008.index "
        "model.ckpt-123456789.data-00000-of-00001 model.ckpt-123456789.index");
}

TEST_CASE("CKPT-4 several shards, another basename and no syncing are options", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make({.basename = "best", .shards = 3, .sync = false});
  save_and_settle(saver, toy_snapshot(2));
  CHECK(names_in(shop.directory.path()) ==
        "best-2.data-00000-of-00003 best-2.data-00001-of-00003 best-2.data-00002-of-00003 best-2.index checkpoint");
  CHECK(toy_in(*saver.restore_newest()) == toy_at(2));
  CHECK(shop.files->operations(sw::test::operation::sync) == 0);
}

TEST_CASE("CKPT-3 STATE-3 data, index and state file are each synced and renamed in that order", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make();
  const auto before = shop.files->operations();
  save_and_settle(saver, toy_snapshot(1));
  std::string order;
  for (const auto& event : shop.files->history()) {
    if (event.number <= before) { continue; }
    const auto what = event.path.find(".data-") != std::string::npos   ? "data "
                      : event.path.find(".index") != std::string::npos ? "index "
                                                                       : "state ";
    if (event.kind == sw::test::operation::sync) { order += std::string("sync ") + what; }
    if (event.kind == sw::test::operation::rename) { order += std::string("rename ") + what; }
    if (event.kind == sw::test::operation::sync_directory) { order += "directory "; }
  }
  CHECK(order == "sync data rename data directory sync index rename index directory sync state rename state directory ");
}

TEST_CASE("a save calls before_commit between data and index, and does not commit if it throws", "[checkpoint][saver]") {
  workshop shop;
  auto saver = shop.make();
  std::string there;
  saver.save(toy_snapshot(1), [&] { there = names_in(shop.directory.path()); });
  saver.drain();
  CHECK(there == "model.ckpt-1.data-00000-of-00001");
  CHECK(shop.steps() == "1");
  saver.save(toy_snapshot(2), [] { throw sw::unavailable_error("the records are not there"); });
  CHECK_THROWS_WITH(saver.drain(), ContainsSubstring("the records are not there"));
  CHECK(shop.steps() == "1");
}

TEST_CASE("if the stage is full, a save waits, is skipped, or replaces the one that waits", "[checkpoint][saver]") {
  workshop shop;
  sw::test::gate gate;
  hold_data(shop, gate);
  gate.close();
  SECTION("skip") {
    auto saver = shop.make({.max_staged_bytes = two_small, .when_busy = sw::when_busy::skip});
    CHECK(saver.save(toy_snapshot(1)) == sw::save_outcome::queued);
    CHECK(saver.save(toy_snapshot(2)) == sw::save_outcome::queued);
    CHECK(saver.save(toy_snapshot(3)) == sw::save_outcome::skipped);
    gate.open();
    saver.drain();
    CHECK(shop.steps() == "1 2");
  }
  SECTION("coalesce") {
    auto saver = shop.make({.max_staged_bytes = two_small, .when_busy = sw::when_busy::coalesce});
    saver.save(toy_snapshot(1));
    saver.save(toy_snapshot(2));
    CHECK(saver.save(toy_snapshot(3)) == sw::save_outcome::coalesced);
    CHECK(saver.save(toy_snapshot(4)) == sw::save_outcome::coalesced);
    gate.open();
    saver.drain();
    CHECK(shop.steps() == "1 4");
  }
  SECTION("wait") {
    auto saver = shop.make({.max_staged_bytes = two_small});
    saver.save(toy_snapshot(1));
    saver.save(toy_snapshot(2));
    std::atomic<bool> has_returned = false;
    std::thread third([&] {
      saver.save(toy_snapshot(3));
      has_returned = true;
    });
    gate.wait_for_somebody();
    CHECK_FALSE(has_returned);
    gate.open();
    third.join();
    saver.drain();
    CHECK(shop.steps() == "1 2 3");
  }
}

TEST_CASE("one snapshot of any size is held, and further ones as long as all fit into max_staged_bytes", "[checkpoint][saver]") {
  workshop shop;
  sw::test::gate gate;
  hold_data(shop, gate);
  gate.close();
  constexpr std::size_t mib = std::size_t{1} << 20;
  auto saver = shop.make({.max_staged_bytes = 10 * mib});
  CHECK(saver.make_room(1000 * mib));
  saver.save(toy_snapshot(1));  // counts as 4 MiB
  CHECK(saver.make_room(6 * mib));
  CHECK_FALSE(saver.make_room(6 * mib + 1));
  saver.save(toy_snapshot(2));
  CHECK_FALSE(saver.make_room(1));
  CHECK_FALSE(saver.wait_for_room(1, shop.clock->now()));
  std::stop_source stop;
  std::jthread stopper([&] {
    static_cast<void>(shop.clock->wait_for_pending(1));
    stop.request_stop();
  });
  CHECK_FALSE(saver.wait_for_room(1, shop.clock->now() + 1s, stop.get_token()));
  gate.open();
  CHECK(saver.wait_for_room(1000 * mib, sw::clock::time_point::max()));
  saver.drain();
  CHECK(shop.steps() == "1 2");
}

TEST_CASE("the buffer for the next snapshot follows the same policy", "[checkpoint][saver]") {
  workshop shop;
  sw::test::gate gate;
  auto toy = toy_at(1);
  sw::snapshot_pool pool(sw::snapshot_size(toy.list()), 2);
  hold_data(shop, gate);
  gate.close();
  const auto capture = [&](std::optional<sw::snapshot_pool::buffer> buffer, std::int64_t step) {
    REQUIRE(buffer.has_value());
    toy.set_to(step);
    return sw::snapshot::capture(std::move(*buffer), toy.list(), step);
  };
  SECTION("skip gives none") {
    auto saver = shop.make({.max_staged_bytes = two_small, .when_busy = sw::when_busy::skip});
    saver.save(capture(saver.acquire(pool), 1));
    saver.save(capture(saver.acquire(pool), 2));
    CHECK_FALSE(saver.acquire(pool).has_value());
    gate.open();
  }
  SECTION("coalesce takes that of the waiting snapshot") {
    auto saver = shop.make({.max_staged_bytes = two_small, .when_busy = sw::when_busy::coalesce});
    saver.save(capture(saver.acquire(pool), 1));
    saver.save(capture(saver.acquire(pool), 2));
    CHECK(saver.save(capture(saver.acquire(pool), 3)) == sw::save_outcome::coalesced);
    gate.open();
    saver.drain();
    CHECK(shop.steps() == "1 3");
    CHECK(toy_in(*saver.restore_newest()) == toy_at(3));
  }
  SECTION("wait waits, unless asked not to") {
    auto saver = shop.make({.max_staged_bytes = two_small});
    saver.save(capture(saver.acquire(pool), 1));
    saver.save(capture(saver.acquire(pool), 2));
    CHECK_FALSE(saver.try_acquire(pool).has_value());
    std::thread opener([&] {
      gate.wait_for_somebody();
      gate.open();
    });
    saver.save(capture(saver.acquire(pool), 3));
    opener.join();
    saver.drain();
    CHECK(shop.steps() == "1 2 3");
  }
}

TEST_CASE("draining ends at its deadline", "[checkpoint][saver]") {
  workshop shop;
  sw::test::gate gate;
  hold_data(shop, gate);
  gate.close();
  auto saver = shop.make();
  saver.save(toy_snapshot(1));
  std::thread later([&] {
    if (shop.clock->wait_for_pending(1)) { shop.clock->advance(5s); }
  });
  CHECK_THROWS_AS(saver.drain(shop.clock->now() + 5s), sw::deadline_exceeded_error);
  later.join();
  gate.open();
  CHECK_NOTHROW(saver.drain(shop.clock->now() + 1000s));
  CHECK(shop.steps() == "1");
}

TEST_CASE("a late drain is forgiven once all is written: the end waits again", "[checkpoint][saver]") {
  sw::test::log_capture log;
  workshop shop;
  sw::test::gate gate;
  hold_data(shop, gate);
  gate.close();
  std::thread opener;
  {
    auto saver = shop.make();
    saver.save(toy_snapshot(1));
    CHECK_THROWS_AS(saver.drain(shop.clock->now()), sw::deadline_exceeded_error);
    gate.open();
    saver.drain();
    gate.close();
    saver.save(toy_snapshot(2));
    gate.wait_for_somebody();
    opener = std::thread([&] {
      std::this_thread::yield();
      gate.open();
    });
  }
  opener.join();
  CHECK(shop.steps() == "1 2");
  CHECK(log.count(sw::log_level::error) == 0);
}

TEST_CASE("a saver reports how many bytes it still has to write", "[checkpoint][saver]") {
  workshop shop;
  sw::test::gate gate;
  hold_data(shop, gate);
  gate.close();
  auto saver = shop.make({.max_staged_bytes = two_small});
  CHECK(saver.backlog().empty());
  saver.save(toy_snapshot(1));
  saver.save(toy_snapshot(2));
  shop.clock->advance(3s);
  const auto seen = saver.backlog();
  CHECK(seen.writing_bytes == 433);
  CHECK(seen.waiting_bytes == 433);
  CHECK(seen.writing_for.count() == 3);
  gate.open();
  saver.drain();
  CHECK(saver.backlog().empty());
}

TEST_CASE("a saver whose pool is joined writes on the caller's thread", "[checkpoint][saver]") {
  workshop shop;
  const auto threads = std::make_shared<sw::io::pool>(1);
  auto saver = shop.make({.pool = threads});
  threads->join();
  saver.save(toy_snapshot(1));
  CHECK(saver.save_and_wait(toy_snapshot(2)).step == 2);
  CHECK(shop.steps() == "1 2");
}
