// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/find_checkpoints.hpp>

#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/file_text.hpp"
#include "support/leaping_clock.hpp"
#include "support/log_capture.hpp"
#include "support/toy_variables.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/saver.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::write_file_text;
using durations = std::vector<sw::clock::duration>;
using steps = std::vector<std::int64_t>;

namespace {

/// A directory in which one party saves while another one waits for checkpoints.
struct followed_directory {
  sw::test::temporary_directory directory;
  std::shared_ptr<sw::test::leaping_clock> clock = std::make_shared<sw::test::leaping_clock>();
  sw::test::log_capture log;

  void write(std::int64_t step) const {
    sw::detail::checkpoint_writer writer(prefix(step));
    writer.add("global_step", sw::view_of(step));
    writer.commit();
  }
  void name(std::int64_t step) const {
    write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-" + std::to_string(step) + "\"");
  }
  void save(std::int64_t step) const {
    write(step);
    name(step);
  }
  [[nodiscard]] std::string prefix(std::int64_t step) const { return directory / "model.ckpt-" + std::to_string(step); }

  [[nodiscard]] sw::new_checkpoint_options waiting(std::optional<sw::seconds_value> timeout) const {
    return {.timeout = timeout, .clock = clock};
  }
  /// Returns the steps that an iterator yields until it ends.
  [[nodiscard]] steps follow(sw::checkpoints_iterator_options options) const {
    steps found;
    for (const auto& prefix : sw::checkpoints_iterator(directory.path(), std::move(options))) {
      found.push_back(sw::step_of_checkpoint(prefix).value());
    }
    return found;
  }
};

void damage(const std::string& file) {
  auto bytes = sw::test::file_text(file);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  write_file_text(file, bytes);
}

}  // namespace

TEST_CASE("waiting for a new checkpoint ends with the first whole one that the state file names", "[checkpoint][iterator]") {
  followed_directory at;
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait == 2) { at.write(5); }
    if (wait == 3) { at.name(5); }
  };
  CHECK(sw::wait_for_new_checkpoint(at.directory.path(), std::nullopt, at.waiting(60)) == at.prefix(5));
  CHECK(at.clock->waits == durations{1s, 1s, 1s});
  CHECK(at.log.contains(sw::log_level::info, "Waiting for new checkpoint at " + at.directory.path()));
  CHECK(at.log.contains(sw::log_level::info, "Found new checkpoint at " + at.prefix(5)));
  CHECK(at.log.count(sw::log_level::warning) == 0);
}

TEST_CASE("the checkpoint already known is none, and a timeout is kept to the moment", "[checkpoint][iterator]") {
  followed_directory at;
  at.save(5);
  CHECK(sw::wait_for_new_checkpoint(at.directory.path(), std::nullopt, at.waiting(0)) == at.prefix(5));
  CHECK_FALSE(sw::wait_for_new_checkpoint(at.directory.path(), at.prefix(5), at.waiting(2.5)).has_value());
  CHECK(at.clock->waits == durations{1s, 1s, 500ms});
  at.clock->waits.clear();
  auto options = at.waiting(0);
  CHECK_FALSE(sw::wait_for_new_checkpoint(at.directory / "nowhere", std::nullopt, options).has_value());
  CHECK(at.clock->waits.empty());
  options.seconds_to_sleep = 0;
  CHECK_THROWS_AS(sw::wait_for_new_checkpoint(at.directory.path(), std::nullopt, options), sw::invalid_argument_error);
}

TEST_CASE("a follower of a directory sees each new checkpoint once, and of several new ones only the newest", "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait == 3) { at.save(2); }
    if (wait == 4) {
      at.save(3);
      at.save(4);
    }
  };
  CHECK(at.follow({.wait = at.waiting(3)}) == steps{1, 2, 4});
  CHECK(at.log.contains(sw::log_level::info, "Timed-out waiting for a checkpoint."));
  CHECK(at.clock->waits.size() == 3 + 1 + 3);
}

TEST_CASE("no checkpoint comes twice if the list returns to an older one, but a checkpoint that is written again is new",
          "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait == 1) { at.save(2); }
    if (wait == 2) { at.name(1); }
    if (wait == 3) {
      at.save(2);
      std::filesystem::last_write_time(at.prefix(2) + ".index", std::filesystem::file_time_type::clock::now() + 1h);
    }
  };
  CHECK(at.follow({.wait = at.waiting(3)}) == steps{1, 2, 2});
}

TEST_CASE("a damaged checkpoint is passed over with one warning, until its files change", "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  const auto data = at.prefix(2) + ".data-00000-of-00001";
  const auto moved = at.directory / "moved";
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait == 1) {
      at.save(2);
      std::filesystem::rename(data, moved);  // simulates a copy in which the index arrived first
    }
    if (wait == 5) { std::filesystem::rename(moved, data); }
    if (wait == 6) {
      at.save(3);
      damage(at.prefix(3) + ".data-00000-of-00001");
    }
    if (wait == 8) { at.save(4); }
  };
  CHECK(at.follow({.wait = at.waiting(5)}) == steps{1, 2, 4});
  CHECK(at.log.count(sw::log_level::warning) == 2);
  CHECK(at.log.contains(sw::log_level::warning, at.prefix(2) + " is damaged"));
  CHECK(at.log.contains(sw::log_level::warning, at.prefix(3) + " is damaged"));
}

TEST_CASE("a state file that cannot be read as one is complained about once", "[checkpoint][iterator]") {
  followed_directory at;
  write_file_text(at.directory / "checkpoint", "garbage");
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait != 4) { return; }
    at.save(1);
    std::filesystem::last_write_time(at.directory / "checkpoint", std::filesystem::file_time_type::clock::now() + 1h);
  };
  CHECK(at.follow({.wait = at.waiting(5)}) == steps{1});
  CHECK(at.log.count(sw::log_level::warning) == 1);
}

TEST_CASE("between two checkpoints there is at least the interval, counted from when the first was given", "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  at.clock->meanwhile = [&](std::size_t wait) { at.save(static_cast<std::int64_t>(wait) + 1); };
  steps found;
  for (const auto& prefix : sw::checkpoints_iterator(at.directory.path(), {.min_interval_secs = 60, .wait = at.waiting(5)})) {
    found.push_back(sw::step_of_checkpoint(prefix).value());
    if (found.size() == 4) { break; }
    at.clock->time += found.size() == 1 ? 20s : 90s;  // time spent on this checkpoint
  }
  CHECK(found == steps{1, 2, 3, 4});
  CHECK(at.clock->waits == durations{40s, 1s, 1s});
}

TEST_CASE("after a time-out, timeout_fn decides whether the iteration continues", "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait == 5) { at.save(2); }
  };
  int asked = 0;
  CHECK(at.follow({.wait = at.waiting(2), .timeout_fn = [&] { return ++asked == 4; }}) == steps{1, 2});
  CHECK(asked == 4);
  CHECK(at.clock->waits.size() == 2 * 2 + 1 + 2 * 2);
}

TEST_CASE("a stop ends the wait at once, and the iteration", "[checkpoint][iterator]") {
  followed_directory at;
  std::stop_source source;
  auto waiting = at.waiting(std::nullopt);
  waiting.stop_token = source.get_token();
  int asked = 0;
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait == 3) { source.request_stop(); }
  };
  CHECK(at.follow({.wait = waiting, .timeout_fn = [&] { return ++asked > 0; }}).empty());
  CHECK(asked == 0);
  CHECK_FALSE(at.log.contains(sw::log_level::info, "Timed-out"));
}

TEST_CASE("a stop from another thread wakes the waiting thread", "[checkpoint][iterator]") {
  const sw::test::temporary_directory directory;
  sw::test::log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  std::stop_source source;
  std::thread another([&] {
    while (!clock->wait_for_pending(1)) {}
    source.request_stop();  // the clock does not move
  });
  CHECK_FALSE(sw::wait_for_new_checkpoint(directory.path(), std::nullopt, {.stop_token = source.get_token(), .clock = clock}).has_value());
  another.join();
}

TEST_CASE("after a stop one last look is made: a trainer that was closed before it has its last checkpoint found",
          "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  std::stop_source source;
  auto waiting = at.waiting(std::nullopt);
  waiting.stop_token = source.get_token();
  SECTION("which ends the wait") {
    at.clock->meanwhile = [&](std::size_t wait) {
      if (wait != 2) { return; }
      at.save(2);  // the last checkpoint
      source.request_stop();
    };
    CHECK(at.follow({.wait = waiting}) == steps{1, 2});
  }
  SECTION("which comes within the interval") {
    at.clock->meanwhile = [&](std::size_t) {
      at.save(2);
      source.request_stop();
    };
    CHECK(at.follow({.min_interval_secs = 60, .wait = waiting}) == steps{1, 2});
    CHECK(at.clock->waits == durations{60s});
  }
  SECTION("which comes while the one before is worked with") {
    steps found;
    for (const auto& prefix : sw::checkpoints_iterator(at.directory.path(), {.wait = waiting})) {
      found.push_back(sw::step_of_checkpoint(prefix).value());
      at.save(found.back() + 1);  // saves another checkpoint each time
      source.request_stop();
    }
    CHECK(found == steps{1, 2});
  }
  SECTION("which came before the first look") {
    source.request_stop();
    CHECK(at.follow({.wait = waiting}) == steps{1});
  }
  SECTION("which comes together with a timeout") {
    waiting.timeout = 2;
    at.clock->meanwhile = [&](std::size_t wait) {
      if (wait != 2) { return; }
      at.save(2);
      source.request_stop();
    };
    CHECK(at.follow({.wait = waiting}) == steps{1, 2});
  }
  SECTION("which comes when it is asked whether more will come") {
    waiting.timeout = 2;
    const auto asked = [&] {
      at.save(2);
      source.request_stop();
      return false;
    };
    CHECK(at.follow({.wait = waiting, .timeout_fn = asked}) == steps{1, 2});
  }
}

TEST_CASE("a cancellation ends the iteration without another look", "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  std::stop_source source;
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait != 2) { return; }
    at.save(2);
    source.request_stop();
  };
  CHECK(at.follow({.wait = at.waiting(std::nullopt), .cancel_token = source.get_token()}) == steps{1});
}

TEST_CASE("all listed checkpoints of a finished run are given on request, oldest first, and none twice", "[checkpoint][iterator]") {
  followed_directory at;
  const auto list = [&](const std::string& listed) {
    write_file_text(at.directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-" + listed.substr(listed.rfind(' ') + 1) + "\"\n");
    std::istringstream words(listed);
    std::ofstream file(at.directory / "checkpoint", std::ios::app);
    for (std::string step; words >> step;) { file << "all_model_checkpoint_paths: \"model.ckpt-" << step << "\"\n"; }
  };
  for (const std::int64_t step : {300, 250, 260, 270}) { at.write(step); }
  SECTION("past damaged ones") {
    list("300 250 260 270");
    damage(at.prefix(250) + ".data-00000-of-00001");
    damage(at.prefix(260) + ".index");
    CHECK(at.follow({.wait = at.waiting(0), .all_listed = true}) == steps{300, 270});
    CHECK(at.log.count(sw::log_level::warning) == 2);
  }
  SECTION("also of a run that goes on, up to what is listed at a stop") {
    std::stop_source source;
    auto waiting = at.waiting(std::nullopt);
    waiting.stop_token = source.get_token();
    list("300 250");
    at.clock->meanwhile = [&](std::size_t) {
      list("250 260 270");
      source.request_stop();
    };
    CHECK(at.follow({.wait = waiting, .all_listed = true}) == steps{300, 250, 260, 270});
  }
}

TEST_CASE("a saver's own checkpoints are followed while it keeps only the newest", "[checkpoint][iterator]") {
  followed_directory at;
  sw::saver saver(at.directory.path(), {.max_to_keep = 1, .file_system = sw::test::fast_faulty_files()});
  saver.save_and_wait(sw::test::toy_snapshot(10));
  steps found;
  for (const auto& prefix : sw::checkpoints_iterator(at.directory.path(), {.wait = at.waiting(0)})) {
    const auto step = sw::step_of_checkpoint(prefix).value();
    CHECK(sw::test::toy_in(sw::checkpoint_reader(prefix)) == sw::test::toy_at(step));
    found.push_back(step);
    if (step < 30) { saver.save_and_wait(sw::test::toy_snapshot(step + 10)); }
  }
  CHECK(found == steps{10, 20, 30});
}

TEST_CASE("a directory that must not be read is an error, not a long wait", "[checkpoint][iterator]") {
  followed_directory at;
  at.save(1);
  auto waiting = at.waiting(std::nullopt);
  const auto files = sw::test::fast_faulty_files();
  waiting.file_system = files;
  files->inject({.kind = sw::test::operation::open, .path_contains = ".index", .errno_value = EACCES});
  CHECK_THROWS_AS(at.follow({.wait = waiting}), sw::permission_denied_error);
}
