// SPDX-License-Identifier: Apache-2.0
#include <stepwell/creation/session_manager.hpp>

#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/creation_rig.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/two_part_model.hpp"

#include <stepwell/model/model_session.hpp>

#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::creation_rig;
using sw::test::message_of;
using sw::test::two_part_model;
using sw::test::write_two_part_checkpoint;
using raw = sw::model_session<two_part_model>;
using manager = sw::session_manager<raw>;
using names = std::vector<std::string>;

namespace {

auto tells(std::string what) {
  return [what = std::move(what)](two_part_model& model) { model.tell(what); };
}
names global_names(const two_part_model& model) { return model.uninitialized_variables(); }
names all_names(const two_part_model& model) {
  auto all = model.uninitialized_variables();
  for (auto& name : model.uninitialized_local_variables()) { all.push_back(std::move(name)); }
  return all;
}

/// Returns a manager like one made by a scaffold.
manager whole_manager(sw::seconds_value recovery_wait = 1) {
  return manager({.local_init_op = [](two_part_model& model) { model.init_local_variables(); },
                  .ready_op = all_names,
                  .ready_for_local_init_op = global_names,
                  .recovery_wait = recovery_wait});
}

struct manager_rig : creation_rig {
  two_part_model model;
  raw session{model};
  sw::test::temporary_directory directory;
};

}  // namespace

TEST_CASE("SM-1 asking whether local initialisation may begin makes no sense without one", "[session][manager]") {
  CHECK_THROWS_AS(manager({.ready_for_local_init_op = global_names}), sw::invalid_argument_error);
  CHECK(message_of<sw::invalid_argument_error>([] {
          const manager made({.ready_for_local_init_op = global_names});
        }).find("If you pass a ready_for_local_init_op you must also pass a local_init_op") != std::string::npos);
  CHECK_NOTHROW(manager({.local_init_op = tells("local")}));
}

TEST_CASE("SM-2 a session is ready without a ready operation, or if that returns no names; otherwise the names are the reason",
          "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  SECTION("no operation") { CHECK_NOTHROW(manager().prepare_session(rig.session, creation)); }
  SECTION("no name") {
    rig.model.my_var = 1;
    CHECK_NOTHROW(manager({.ready_op = global_names}).prepare_session(rig.session, creation));
  }
  SECTION("names") {
    const auto message =
        message_of<sw::failed_precondition_error>([&] { manager({.ready_op = all_names}).prepare_session(rig.session, creation); });
    CHECK(message.find("Variables not initialized: my_var, my_local_var") != std::string::npos);
  }
}

TEST_CASE("SM-2 a ready operation that fails because of something uninitialized means not ready; other failures are thrown",
          "[session][manager]") {
  sw::test::log_capture log;
  manager_rig rig;
  auto creation = rig.first();
  const auto failing_with = [](std::string why) {
    return manager({.ready_op = [why](const two_part_model&) -> names { throw sw::failed_precondition_error(why); }});
  };
  const auto uninitialized =
      message_of<sw::failed_precondition_error>([&] { failing_with("the table is uninitialized").prepare_session(rig.session, creation); });
  CHECK(uninitialized.find("Init operations did not make model ready") != std::string::npos);
  CHECK(uninitialized.find("the table is uninitialized") != std::string::npos);
  CHECK(log.count(sw::log_level::warning) == 0);

  const auto other =
      message_of<sw::failed_precondition_error>([&] { failing_with("the door is locked").prepare_session(rig.session, creation); });
  CHECK(other.find("Init operations") == std::string::npos);
  CHECK(other.find("the door is locked") != std::string::npos);
  CHECK(log.contains(sw::log_level::warning, "the door is locked"));

  const manager broken({.ready_op = [](const two_part_model&) -> names { throw std::domain_error("no"); }});
  CHECK_THROWS_AS(broken.prepare_session(rig.session, creation), std::domain_error);
}

TEST_CASE("SM-3 local initialisation waits until the variables that it needs are initialised", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  SECTION("ready for it") {
    rig.model.my_var = 1;
    whole_manager().prepare_session(rig.session, creation);
    CHECK(rig.model.story == "local_init");
  }
  SECTION("nobody asks") {
    manager({.local_init_op = tells("local")}).prepare_session(rig.session, creation);
    CHECK(rig.model.story == "local");
  }
  SECTION("not ready for it: it is not run") {
    CHECK_THROWS_AS(whole_manager().prepare_session(rig.session, creation), sw::failed_precondition_error);
    CHECK(rig.model.story.empty());
  }
}

TEST_CASE("SM-4 a checkpoint is restored from a directory or a file; both make no sense, neither is no restore", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  const auto older = write_two_part_checkpoint(rig.directory / "model.ckpt-3", 30, 3);
  write_two_part_checkpoint(rig.directory / "model.ckpt-5", 50, 5);
  SECTION("both") {
    CHECK_THROWS_AS(
        manager().prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path(), .checkpoint_filename_with_path = older}),
        sw::invalid_argument_error);
  }
  SECTION("the directory: its newest") {
    manager().prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path()});
    CHECK(rig.model.my_var == 50);
    CHECK(rig.session.global_step() == 5);
    CHECK(rig.requests.facts().restored_from == rig.directory / "model.ckpt-5");
  }
  SECTION("the file") {
    manager().prepare_session(rig.session, creation, {.checkpoint_filename_with_path = older});
    CHECK(rig.model.my_var == 30);
    CHECK(rig.session.global_step() == 3);
  }
  SECTION("neither") {
    manager().prepare_session(rig.session, creation);
    CHECK(std::isnan(rig.model.my_var));
    CHECK_FALSE(rig.requests.facts().restored_from);
  }
}

TEST_CASE("SM-4 a session that waits for a checkpoint looks again and again, and takes it when it comes", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  std::thread waiting([&] {
    whole_manager(30).prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path(), .wait_for_checkpoint = true});
  });
  REQUIRE(rig.clock->wait_for_pending(1));
  rig.clock->advance(30s);
  REQUIRE(rig.clock->wait_for_pending(1));
  write_two_part_checkpoint(rig.directory / "model.ckpt-5", 50, 5);
  rig.clock->advance(30s);
  waiting.join();
  CHECK(rig.model.my_var == 50);
}

TEST_CASE("SM-4 waiting for a checkpoint ends in time, without one, and does not overshoot", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  std::thread waiting([&] {
    manager({.recovery_wait = 30})
        .prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path(), .wait_for_checkpoint = true, .max_wait_secs = 40},
                         {.init_op = tells("init")});
  });
  REQUIRE(rig.clock->wait_for_pending(1));
  rig.clock->advance(30s);
  REQUIRE(rig.clock->wait_for_pending(1));
  rig.clock->advance(10s);  // TensorFlow would sleep for 30 s more
  waiting.join();
  CHECK(rig.model.story == "init");
}

TEST_CASE("SM-5 D-4 a damaged checkpoint means the one before it, and where none is whole nothing is initialised", "[session][manager]") {
  sw::test::log_capture log;
  manager_rig rig;
  auto creation = rig.first();
  write_two_part_checkpoint(rig.directory / "model.ckpt-3", 30, 3);
  write_two_part_checkpoint(rig.directory / "model.ckpt-5", 50, 5);
  sw::test::write_file_text(rig.directory / "model.ckpt-5.index", "damaged");
  const sw::init_with<two_part_model> init{.init_op = tells("init")};
  manager().prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path()}, init);
  CHECK(rig.model.my_var == 30);
  CHECK(log.contains(sw::log_level::warning, "model.ckpt-5"));
  sw::test::write_file_text(rig.directory / "model.ckpt-3.index", "damaged");
  CHECK_THROWS_AS(manager().prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path()}, init), sw::data_loss_error);
  CHECK(rig.model.story.empty());
}

TEST_CASE("SM-6 a chief restores or initialises, initialises the local state, and must then be ready", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  const sw::init_with<two_part_model> init{.init_op = [](two_part_model& model) { model.init_variables(); }, .init_fn = tells("init_fn")};
  SECTION("nothing to restore: init_op, init_fn, local_init_op") {
    whole_manager().prepare_session(rig.session, creation, {}, init);
    CHECK(rig.model.story == "init init_fn local_init");
  }
  SECTION("restored: only local_init_op") {
    write_two_part_checkpoint(rig.directory / "model.ckpt-5", 50, 5);
    whole_manager().prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path()}, init);
    CHECK(rig.model.story == "local_init");
    CHECK(rig.model.my_var == 50);
  }
  SECTION("not ready for local_init_op") {
    const auto message = message_of<sw::failed_precondition_error>(
        [&] { whole_manager().prepare_session(rig.session, creation, {}, {.init_fn = tells("init_fn")}); });
    CHECK(message.find("Init operations did not make model ready for local_init") != std::string::npos);
    CHECK(message.find("init_op: none, init_fn: given") != std::string::npos);
    CHECK(message.find("Variables not initialized: my_var") != std::string::npos);
  }
  SECTION("not ready") {
    const manager without_local({.local_init_op = tells("my local init"), .ready_op = all_names, .ready_for_local_init_op = global_names});
    const auto message = message_of<sw::failed_precondition_error>([&] { without_local.prepare_session(rig.session, creation, {}, init); });
    CHECK(message.find("Init operations did not make model ready. ") != std::string::npos);
    CHECK(message.find("Variables not initialized: my_local_var") != std::string::npos);
  }
}

TEST_CASE("SM-6 a recovery that has nothing to go back to, and no way to initialise, fails", "[session][manager]") {
  manager_rig rig;
  auto first = rig.first();
  auto again = rig.again();
  manager().prepare_session(rig.session, first, {}, {.keep_initial_state = false});  // keeps the values of the model
  const auto message =
      message_of<sw::failed_precondition_error>([&] { manager().prepare_session(rig.session, again, {}, {.keep_initial_state = false}); });
  CHECK(message.find("Model is not initialized and no init_op or init_fn or local_init_op was given") != std::string::npos);
  CHECK_NOTHROW(manager().prepare_session(rig.session, again, {}, {.init_fn = tells("init_fn")}));
  CHECK_NOTHROW(manager({.local_init_op = tells("local")}).prepare_session(rig.session, again));
  CHECK(rig.model.story == "init_fn local");
}

TEST_CASE("SM-6 a recovery without a checkpoint goes back to what the model held at first", "[session][manager]") {
  sw::test::log_capture log;
  manager_rig rig;
  auto first = rig.first();
  auto again = rig.again();
  rig.model.my_var = 7;
  manager().prepare_session(rig.session, first);
  rig.session.run();
  manager().prepare_session(rig.session, again);
  CHECK(rig.model.my_var == 7);
  CHECK(rig.session.global_step() == 0);
}

TEST_CASE("SM-7 a chief waits for a checkpoint only on request, and then two hours", "[session][manager]") {
  CHECK_FALSE(sw::restore_from{}.wait_for_checkpoint);
  CHECK(sw::restore_from{}.max_wait_secs.count() == 7200);
  CHECK_FALSE(sw::chief_session_options{}.restore.wait_for_checkpoint);
}

TEST_CASE("SM-9 a variable that the checkpoint lacks is an error, and nothing is restored in part", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  {
    sw::detail::checkpoint_writer writer(rig.directory / "model.ckpt-5");
    writer.add("global_step", sw::view_of(std::int64_t{5}));
    writer.commit();
  }
  const auto message = message_of<sw::not_found_error>(
      [&] { manager().prepare_session(rig.session, creation, {.checkpoint_dir = rig.directory.path()}, {.init_op = tells("init")}); });
  CHECK(message.find("my_var") != std::string::npos);
  CHECK(message.find("missing from the checkpoint") != std::string::npos);
  CHECK(message.find("optional()") != std::string::npos);
  CHECK(rig.session.global_step() == 0);
  CHECK(rig.model.story.empty());
}

TEST_CASE("SM-10 a worker polls until another session has made the model ready", "[session][manager]") {
  sw::test::log_capture log;
  manager_rig rig;
  auto creation = rig.first();
  std::thread worker([&] { whole_manager(30).wait_for_session(rig.session, creation); });
  REQUIRE(rig.clock->wait_for_pending(1));
  rig.clock->advance(24h);  // a wait without a limit continues
  REQUIRE(rig.clock->wait_for_pending(1));
  CHECK(log.contains(sw::log_level::info, "Variables not initialized: my_var"));
  rig.model.my_var = 1;
  rig.clock->advance(30s);
  worker.join();
  CHECK(rig.model.story == "local_init");
}

TEST_CASE("SM-10 a worker that polls every second logs the reason of its wait only every 30 s", "[session][manager]") {
  sw::test::log_capture log;
  manager_rig rig;
  auto creation = rig.first();
  std::thread worker([&] { whole_manager(1).wait_for_session(rig.session, creation); });
  for (int second = 0; second < 70; ++second) {
    REQUIRE(rig.clock->wait_for_pending(1));
    rig.clock->advance(1s);
  }
  REQUIRE(rig.clock->wait_for_pending(1));
  CHECK(log.count(sw::log_level::info) == 3);
  rig.model.my_var = 1;
  rig.clock->advance(1s);
  worker.join();
}

TEST_CASE("SM-10 a worker gives up in time, saying how long it waited and for what", "[session][manager]") {
  sw::test::log_capture log;
  manager_rig rig;
  auto creation = rig.first();
  SECTION("less time than one wait: one look, no wait") {
    const auto message =
        message_of<sw::deadline_exceeded_error>([&] { whole_manager(30).wait_for_session(rig.session, creation, sw::seconds_value(3)); });
    CHECK(message.find("Session was not ready after waiting 3 secs.") != std::string::npos);
    CHECK(message.find("Variables not initialized: my_var") != std::string::npos);
    CHECK(rig.clock->pending() == 0);
  }
  SECTION("time for two waits") {
    std::string message;
    std::thread worker([&] {
      message = message_of<sw::deadline_exceeded_error>(
          [&] { whole_manager(30).wait_for_session(rig.session, creation, sw::seconds_value(75)); });
    });
    for (int i = 0; i < 2; ++i) {
      REQUIRE(rig.clock->wait_for_pending(1));
      rig.clock->advance(30s);
    }
    worker.join();
    CHECK(message.find("Session was not ready after waiting 75 secs.") != std::string::npos);
  }
}

TEST_CASE("SM-10 a stop of the session ends the waiting", "[session][manager]") {
  sw::test::log_capture log;
  manager_rig rig;
  auto creation = rig.first();
  std::string message;
  std::thread worker([&] { message = message_of<sw::cancelled_error>([&] { whole_manager().wait_for_session(rig.session, creation); }); });
  REQUIRE(rig.clock->wait_for_pending(1));
  rig.requests.signals()->request_stop({sw::stop_cause::requested, "enough"});
  worker.join();
  CHECK(message.find("a stop was requested while waiting for the session to be ready") != std::string::npos);
}

TEST_CASE("SM-11 a worker initialises its local state as soon as the rest is ready", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  rig.model.my_var = 1;  // set by another session
  whole_manager().wait_for_session(rig.session, creation, sw::seconds_value(3));
  CHECK(rig.model.my_var == 1);
  CHECK(rig.model.my_local_var == 20);
  CHECK(rig.model.story == "local_init");
}

TEST_CASE("SM-12 an exception of an operation ends the wait of a worker", "[session][manager]") {
  manager_rig rig;
  auto creation = rig.first();
  const manager failing({.local_init_op = [](two_part_model&) { throw sw::unavailable_error("the server is away"); }});
  CHECK_THROWS_AS(failing.wait_for_session(rig.session, creation), sw::unavailable_error);
}
