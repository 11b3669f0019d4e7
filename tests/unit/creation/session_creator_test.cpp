// SPDX-License-Identifier: Apache-2.0
#include <stepwell/creation/session_creator.hpp>

#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/creation_rig.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"
#include "support/two_part_model.hpp"

#include <stepwell/model/model_session.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::counting_model;
using sw::test::creation_rig;
using sw::test::message_of;
using sw::test::two_part_model;
using sw::test::write_two_part_checkpoint;
using raw = sw::model_session<two_part_model>;
using two_parts = sw::scaffold<two_part_model>;

namespace {

struct plain_creator {
  counting_model* model;
  int* calls;
  sw::model_session<counting_model> create_session() {
    ++*calls;
    return sw::model_session<counting_model>(*model);
  }
};
struct lending_creator {
  counting_model* model;
  sw::model_session<counting_model> create_session(sw::session_creation& creation) {
    CHECK(creation.is_first());
    return sw::model_session<counting_model>(*model);
  }
};
struct creates_a_number {
  int create_session() { return 1; }
};

}  // namespace

static_assert(sw::session_creator<plain_creator> && sw::session_creator<lending_creator>);
static_assert(sw::session_creator<sw::chief_session_creator<counting_model>>);
static_assert(sw::session_creator<sw::worker_session_creator<counting_model>>);
static_assert(!sw::session_creator<creates_a_number> && !sw::session_creator<counting_model> && !sw::session_creator<int>);

TEST_CASE("CREATOR-1 any type with create_session is a session creator", "[session][creator]") {
  counting_model model;
  int calls = 0;
  sw::monitored_session session(plain_creator{&model, &calls});
  CHECK(calls == 1);
  CHECK(session.run() == 1);
  sw::monitored_session lent(lending_creator{&model});
  CHECK(lent.run() == 2);
}

TEST_CASE("CREATOR-1 a first creation with a transient failure is tried again, although there is no raw session yet",
          "[session][creator]") {
  struct failing_creator {
    counting_model* model;
    int* calls;
    sw::model_session<counting_model> create_session() {
      if (++*calls <= 2) { throw sw::unavailable_error("not yet"); }
      return sw::model_session<counting_model>(*model);
    }
  };
  const sw::test::log_capture log;
  counting_model model;
  int calls = 0;
  sw::training_options options;
  options.retry.initial_backoff = {};
  sw::monitored_session session(options, failing_creator{&model, &calls});
  CHECK(calls == 3);
  CHECK(session.run() == 1);
}

TEST_CASE("CREATOR-1 a program can choose its creator at run time", "[session][creator]") {
  using any_creator = sw::any_session_creator<sw::model_session<counting_model>>;
  counting_model model;
  int calls = 0;
  const bool plain = GENERATE(true, false);
  sw::monitored_session session(plain ? any_creator(plain_creator{&model, &calls}) : any_creator(lending_creator{&model}));
  CHECK(session.run() == 1);
  CHECK(calls == (plain ? 1 : 0));
  STATIC_REQUIRE_FALSE(std::is_constructible_v<any_creator, sw::chief_session_creator<two_part_model>>);
}

TEST_CASE("CREATOR-2 a chief finalizes its scaffold and makes the session ready with it", "[session][creator]") {
  creation_rig rig;
  auto creation = rig.first();
  two_part_model model;
  const auto with = std::make_shared<two_parts>(
      sw::scaffold_options<two_part_model>{.init_fn = [](const two_parts&, two_part_model& given) { given.tell("init_fn"); }});
  sw::chief_session_creator creator(model, with);
  CHECK_FALSE(with->is_finalized());
  auto made = creator.create_session(creation);
  CHECK(with->is_finalized());
  CHECK(model.story == "init init_fn local_init");
  CHECK(made.run() == 11);
}

TEST_CASE("CREATOR-2 a chief restores from a directory or a file, anew at each creation", "[session][creator]") {
  const sw::test::temporary_directory directory;
  creation_rig rig;
  auto first = rig.first();
  auto again = rig.again();
  two_part_model model;
  const auto older = write_two_part_checkpoint(directory / "model.ckpt-3", 30, 3);
  sw::chief_session_creator from_directory(model, nullptr, {.restore = {.checkpoint_dir = directory.path()}});
  CHECK(from_directory.create_session(first).global_step() == 3);
  write_two_part_checkpoint(directory / "model.ckpt-5", 50, 5);
  CHECK(from_directory.create_session(again).global_step() == 5);
  CHECK(model.my_var == 50);
  sw::chief_session_creator from_file(model, nullptr, {.restore = {.checkpoint_filename_with_path = older}});
  CHECK(from_file.create_session(again).global_step() == 3);
  CHECK(model.story == "local_init local_init local_init");
}

TEST_CASE("CREATOR-3 a worker finalizes its scaffold and waits for a ready session", "[session][creator]") {
  sw::test::log_capture log;
  creation_rig rig;
  auto creation = rig.first();
  two_part_model model;
  const auto with = std::make_shared<two_parts>();
  std::thread worker([&] { static_cast<void>(sw::worker_session_creator(model, with).create_session(creation)); });
  REQUIRE(rig.clock->wait_for_pending(1));
  CHECK(with->is_finalized());
  CHECK(model.story.empty());
  model.init_variables();  // done by the chief
  rig.clock->advance(1s);
  worker.join();
  CHECK(model.story == "init local_init");
}

TEST_CASE("CREATOR-3 a worker waits for half an hour by default", "[session][creator]") {
  sw::test::log_capture log;
  CHECK(sw::worker_session_options{}.max_wait_secs.count() == 1800);
  creation_rig rig;
  auto creation = rig.first();
  two_part_model model;
  std::string message;
  std::thread worker([&] {
    sw::worker_session_creator creator(model, nullptr, {.recovery_wait = 1000});
    message = message_of<sw::deadline_exceeded_error>([&] { static_cast<void>(creator.create_session(creation)); });
  });
  REQUIRE(rig.clock->wait_for_pending(1));
  rig.clock->advance(1000s);
  worker.join();
  CHECK(message.find("Session was not ready after waiting 1800 secs.") != std::string::npos);
}

TEST_CASE("CREATOR-4 D-3 the polling interval of a worker is an option, and one second by default", "[session][creator]") {
  CHECK(sw::worker_session_options{}.recovery_wait.count() == 1);
  CHECK(sw::chief_session_options{}.recovery_wait.count() == 1);
  CHECK(sw::session_manager_options<two_part_model>{}.recovery_wait.count() == 1);
  sw::test::log_capture log;
  creation_rig rig;
  auto creation = rig.first();
  two_part_model model;
  std::thread worker([&] { static_cast<void>(sw::worker_session_creator(model, nullptr, {.recovery_wait = 5}).create_session(creation)); });
  REQUIRE(rig.clock->wait_for_pending(1));
  model.init_variables();
  rig.clock->advance(4s);
  CHECK(rig.clock->pending() == 1);  // still waiting
  rig.clock->advance(1s);
  worker.join();
  CHECK(model.story == "init local_init");
}
