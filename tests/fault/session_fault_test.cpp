// SPDX-License-Identifier: Apache-2.0
//
// Tests of a training session on a full, read-only or missing disk: the next boundary throws a clear error, and earlier
// checkpoints are unchanged.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/base/error.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <string>

namespace sw = stepwell;
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using sw::test::adding_model;
using sw::test::newest_in;
using sw::test::operation;
using sw::test::run_until;
using sw::test::same;
using sw::test::session_rig;
using sw::test::wait_for_saves;

namespace {

/// Returns the message of the `Error` that `action` throws, or an empty text.
template<class Error, class Action>
std::string text_of(Action&& action) {
  try {
    action();
  } catch (const Error& failure) { return failure.what(); }
  return {};
}

void check_clear(const std::string& text, const std::string& place, const std::string& advice) {
  CAPTURE(text);
  CHECK(text.find(place) != std::string::npos);
  CHECK(text.find(advice) != std::string::npos);
  CHECK(text.find("earlier checkpoints are unchanged") != std::string::npos);
}

bool has_temporary_files(const std::string& directory) { return sw::test::names_in(directory).find(".tmp-") != std::string::npos; }

/// A guard that makes a directory unwritable for this process. For the superuser, which modes do not restrict, it
/// changes the effective user.
class unwritable {
public:
  explicit unwritable(std::string directory) : directory_(std::move(directory)) {
    ::chmod(directory_.c_str(), 0555);
    if (was_root_ && ::seteuid(nobody) != 0) { WARN("SKIPPED: the superuser may write anywhere, and cannot become nobody"); }
  }
  ~unwritable() {
    if (was_root_) { static_cast<void>(::seteuid(0)); }
    ::chmod(directory_.c_str(), 0755);
  }
  [[nodiscard]] bool works() const { return ::geteuid() != 0; }

private:
  static constexpr uid_t nobody = 65534;
  std::string directory_;
  bool was_root_ = ::geteuid() == 0;
};

/// Returns the number of operations on the checkpoint directory so far.
std::uint64_t operations_in(const session_rig& rig) {
  std::uint64_t count = 0;
  for (const auto& entry : rig.files->history()) { count += entry.path.find(rig.directory.path()) != std::string::npos ? 1U : 0U; }
  return count;
}

}  // namespace

TEST_CASE("a full disk at any operation of a save is an error at the next boundary, and the previous checkpoint is intact",
          "[fault][session]") {
  sw::test::log_capture log;
  std::uint64_t failed_saves = 0;
  for (std::uint64_t number = 1;; ++number) {
    CAPTURE(number);
    session_rig rig;
    const sw::test::temporary_directory events;  // separate, so that every operation on the checkpoint directory belongs to the save
    auto options = rig.options();
    options.summary_dir = events.path();
    {
      auto session = sw::monitored_training_session(rig.model, options);
      wait_for_saves(session);
      session.run(std::int64_t{1});
      const auto before = operations_in(rig);
      rig.files->inject({.path_contains = rig.directory.path(), .nth = number, .errno_value = ENOSPC, .bytes_written = 7});
      session.run(std::int64_t{2});  // saves without waiting for the disk
      wait_for_saves(session);
      if (operations_in(rig) - before < number) { break; }
      const auto text = text_of<sw::resource_exhausted_error>([&] { session.run(std::int64_t{3}); });
      CHECK(session.global_step() == 3);  // the step itself is complete
      if (!text.empty()) {
        ++failed_saves;
        check_clear(text, rig.directory / "model.ckpt-2", "free some space on the disk");
      }
      const auto found = newest_in(rig.directory.path());
      CHECK((found.step == 2 || (found.step == 0 && !text.empty())));
      CHECK(same(found.model, sw::test::model_after(found.step)));
      run_until(session, 4);  // the failure is thrown only once; the disk has space again
      session.close();
      CHECK(newest_in(rig.directory.path()).step == 4);
    }
    adding_model later;
    CHECK(sw::test::finish_on_sound_files(later, rig.directory.path(), 4) == 4);
    CHECK(same(later, sw::test::model_after(4)));
    CHECK_FALSE(has_temporary_files(rig.directory.path()));
  }
  CHECK(failed_saves > 10);
}

TEST_CASE("a disk that stays full is an error at the boundary and again of close; the previous checkpoint is intact", "[fault][session]") {
  sw::test::log_capture log;
  session_rig rig;
  {
    auto session = rig.start();
    wait_for_saves(session);
    rig.files->inject(
        {.kind = operation::write, .path_contains = "model.ckpt", .errno_value = ENOSPC, .bytes_written = 7, .from_then_on = true});
    run_until(session, 2);
    wait_for_saves(session);
    check_clear(text_of<sw::resource_exhausted_error>([&] { session.run(std::int64_t{3}); }), rig.directory / "model.ckpt-2",
                "free some space");
    check_clear(text_of<sw::resource_exhausted_error>([&] { session.close(); }), rig.directory / "model.ckpt-3", "free some space");
    CHECK(session.stop_reason().cause == sw::stop_cause::error);
  }
  CHECK(rig.steps() == "0");
  adding_model later;
  CHECK(sw::test::finish_on_sound_files(later, rig.directory.path(), 3) == 0);
  CHECK_FALSE(has_temporary_files(rig.directory.path()));
}

TEST_CASE("a disk that is full at the last save is an error of close", "[fault][session]") {
  session_rig rig;
  auto session = rig.start();
  wait_for_saves(session);
  run_until(session, 1);
  rig.files->inject({.kind = operation::sync, .path_contains = ".index", .errno_value = ENOSPC});
  check_clear(text_of<sw::resource_exhausted_error>([&] { session.close(); }), rig.directory / "model.ckpt-1", "free some space");
  session.close();  // a second close does nothing
}

TEST_CASE("a failure that close throws does not prevent the last save", "[fault][session]") {
  session_rig rig;
  auto session = rig.start();
  wait_for_saves(session);
  rig.files->inject({.kind = operation::write, .path_contains = "model.ckpt-2.data", .errno_value = EIO});
  run_until(session, 2);
  wait_for_saves(session);
  CHECK_THROWS_AS(session.close(), sw::data_loss_error);  // failure of the save at step 2, which is then repeated
  CHECK(rig.steps() == "0 2");
}

TEST_CASE("HOOK-CKPT-15 under warn a full disk is logged, training continues, and a later save works", "[fault][session]") {
  sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.saves.saver.on_error = sw::on_save_error::warn();
  auto session = sw::monitored_training_session(rig.model, options);
  wait_for_saves(session);
  rig.files->inject({.kind = operation::write, .path_contains = "model.ckpt-2", .errno_value = ENOSPC, .from_then_on = true});
  run_until(session, 3);
  wait_for_saves(session);
  CHECK(log.contains(sw::log_level::warning, "free some space on the disk"));
  run_until(session, 5);
  session.close();
  CHECK(rig.steps() == "0 4 5");
  CHECK(same(newest_in(rig.directory.path()).model, sw::test::model_after(5)));
}

TEST_CASE("under retry a passing failure is tried again when its time has come; a full disk is not", "[fault][session]") {
  sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.saves.saver.on_error = sw::on_save_error::retry(3, 10s);
  auto session = sw::monitored_training_session(rig.model, options);
  wait_for_saves(session);
  const auto alarms = rig.clock->pending();

  rig.files->inject({.kind = operation::write, .path_contains = "model.ckpt-2", .errno_value = EIO});
  run_until(session, 3);
  REQUIRE(rig.clock->wait_for_pending(alarms + 1));
  CHECK(rig.steps() == "0");
  rig.clock->advance(10s);
  wait_for_saves(session);
  CHECK(rig.steps() == "0 2");

  rig.files->inject({.kind = operation::write, .path_contains = "model.ckpt-4", .errno_value = ENOSPC});
  run_until(session, 4);
  wait_for_saves(session);
  CHECK(rig.clock->pending() == alarms);
  CHECK_THROWS_AS(session.run(std::int64_t{5}), sw::resource_exhausted_error);
  session.close();
  CHECK(rig.steps() == "0 2 5");
}

TEST_CASE("a read-only directory is refused at construction, saying what to do", "[fault][session]") {
  const auto [errno_value, advice] = GENERATE(table<int, std::string>({{EACCES, "check the permissions"}, {EROFS, "read-only"}}));
  session_rig rig;
  const auto kind = GENERATE(operation::lock, operation::create_directories);
  rig.files->inject({.kind = kind, .errno_value = errno_value, .from_then_on = true});
  const auto text = text_of<sw::permission_denied_error>([&] { static_cast<void>(rig.start()); });
  CAPTURE(text);
  CHECK(text.find(rig.directory.path()) != std::string::npos);
  CHECK(text.find(advice) != std::string::npos);
  CHECK(sw::test::contents_of(rig.directory.path()).empty());
}

TEST_CASE("a directory that becomes read-only is an error at the next boundary", "[fault][session]") {
  const auto errno_value = GENERATE(EACCES, EROFS);
  session_rig rig;
  auto session = rig.start();
  wait_for_saves(session);
  rig.files->inject({.kind = operation::open, .path_contains = "model.ckpt", .errno_value = errno_value, .from_then_on = true});
  run_until(session, 2);
  wait_for_saves(session);
  check_clear(text_of<sw::permission_denied_error>([&] { session.run(std::int64_t{3}); }), rig.directory / "model.ckpt-2",
              errno_value == EACCES ? "check the permissions" : "read-only");
  CHECK_THROWS_AS(session.close(), sw::permission_denied_error);
  CHECK(rig.steps() == "0");
}

TEST_CASE("a directory that may really not be written: the same errors", "[fault][session]") {
  session_rig rig;
  adding_model other;
  {
    const unwritable holding(rig.directory.path());
    if (!holding.works()) { return; }
    CHECK_THROWS_AS(sw::monitored_training_session(other, {.checkpoint_dir = rig.directory.path()}), sw::permission_denied_error);
  }
  auto session = rig.start();
  wait_for_saves(session);
  {
    const unwritable holding(rig.directory.path());
    run_until(session, 2);
    wait_for_saves(session);
    check_clear(text_of<sw::permission_denied_error>([&] { session.run(std::int64_t{3}); }), rig.directory.path(), "check the permissions");
  }
  session.close();
  CHECK(rig.steps() == "0 3");
}

TEST_CASE("a removed directory is an error at the next boundary; after it is made again, a new session starts", "[fault][session]") {
  sw::test::log_capture log;
  session_rig rig;
  const auto inside = rig.directory / "run";
  {
    auto options = rig.options();
    options.checkpoint_dir = inside;
    auto session = sw::monitored_training_session(rig.model, options);
    wait_for_saves(session);
    fs::remove_all(inside);
    run_until(session, 2);
    wait_for_saves(session);
    const auto text = text_of<sw::not_found_error>([&] { session.run(std::int64_t{3}); });
    CAPTURE(text);
    CHECK(text.find(inside) != std::string::npos);
    CHECK(text.find("the directory was removed") != std::string::npos);
    CHECK_THROWS_AS(session.close(), sw::not_found_error);
  }
  CHECK_FALSE(fs::exists(inside));
  fs::create_directory(inside);
  adding_model later;
  CHECK(sw::test::finish_on_sound_files(later, inside, 4) == -1);
  CHECK(sw::test::steps_in(inside) == "0 2 4");
}

TEST_CASE("an event file that cannot be written is an error once, at the next boundary", "[fault][session]") {
  sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.summaries.save_steps = 1;
  options.step_counter.every_n_steps = 1;
  auto session =
      sw::monitored_training_session(rig.model, options, sw::summaries(sw::summary::scalar("loss", &adding_model::result::loss)));
  wait_for_saves(session);
  run_until(session, 1);
  rig.files->inject({.kind = operation::write, .path_contains = "tfevents", .errno_value = ENOSPC, .bytes_written = 5});
  rig.clock->advance(121s);
  const auto text = text_of<sw::resource_exhausted_error>([&] {
    for (std::int64_t i = 0; i < 3; ++i) {  // the first due event flushes on the background thread
      session.run(session.global_step() + 1);
      rig.settle();
    }
  });
  CAPTURE(text);
  CHECK(text.find("tfevents") != std::string::npos);
  CHECK(text.find("free some space") != std::string::npos);
  run_until(session, 6);
  session.close();  // no failure is thrown twice; later events were dropped with a warning
  CHECK(log.contains(sw::log_level::warning, "after a failed write"));
  CHECK(newest_in(rig.directory.path()).step == 6);
}

TEST_CASE("an event file of checkpoint notes or step rates alone is listened to as well", "[fault][session]") {
  sw::test::log_capture log;
  session_rig rig;
  const bool has_rates = GENERATE(false, true);
  auto options = rig.options();
  if (has_rates) { options.step_counter.every_n_steps = 1; }
  if (has_rates) { options.summary_dir = rig.directory / "events"; }
  auto session = sw::monitored_training_session(rig.model, options);
  wait_for_saves(session);
  rig.files->inject({.kind = operation::write, .path_contains = "tfevents", .errno_value = ENOSPC});
  const auto run_on = [&] {
    for (std::int64_t i = 0; i < 6; ++i) {
      rig.clock->advance(121s);
      session.run(session.global_step() + 1);
      wait_for_saves(session);
      rig.settle();
    }
  };
  CHECK_THROWS_AS(run_on(), sw::resource_exhausted_error);
  session.close();
}
