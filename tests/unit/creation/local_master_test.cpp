// SPDX-License-Identifier: Apache-2.0
#include <stepwell/creation/detail/local_master.hpp>

#include "support/catch.hpp"
#include "support/creation_rig.hpp"

#include <stepwell/base/error.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::master_connection;
using sw::test::message_of;

namespace {

const int the_model = 0;
const int another_model = 0;

sw::master_subject subject_of(const int& model, bool concurrent = false) { return {&model, sw::type_key::of<int>(), concurrent}; }

struct seat : master_connection {
  explicit seat(bool is_chief, const std::string& master = "local:test", const sw::master_subject& of = subject_of(the_model))
      : master_connection({.master = master, .is_chief = is_chief}, of) {}
  void make_ready(std::int64_t step = 0) {
    const auto alone = begin_preparing();
    end_preparing(step);
  }
  void join_now() {
    const auto alone = enter_alone();
    join();
  }
};
seat chief_at(const std::string& master = "local:test") { return seat(true, master); }
seat worker_at(const std::string& master = "local:test") { return seat(false, master); }

}  // namespace

TEST_CASE("a master is local:NAME; other names are refused with the possible form", "[session][master]") {
  CHECK_NOTHROW(chief_at("local:a"));
  for (const std::string bad : {"local:", "local", "grpc://host:2222", " local:a"}) {
    const auto message = message_of<sw::invalid_argument_error>([&] { chief_at(bad); });
    CHECK(message.find("\"local:NAME\"") != std::string::npos);
    CHECK(message.find("\"" + bad + "\"") != std::string::npos);
  }
}

TEST_CASE("a master exists as long as a session is connected to it", "[session][master]") {
  CHECK(sw::sessions_at("local:test") == 0);
  {
    seat chief = chief_at();
    CHECK(sw::sessions_at("local:test") == 1);
    {
      const seat worker = worker_at();
      const seat elsewhere = chief_at("local:other");
      CHECK(sw::sessions_at("local:test") == 2);
      CHECK(sw::sessions_at("local:other") == 1);
    }
    CHECK(sw::sessions_at("local:test") == 1);
    chief.make_ready(5);
    chief.close();
    chief.close();
    CHECK(sw::sessions_at("local:test") == 0);
    CHECK(chief.global_step() == 5);  // unchanged
  }
  const seat next = chief_at();
  CHECK(next.global_step() == 0);
  CHECK_FALSE(next.is_chief_ready());
}

TEST_CASE("all sessions of a master are over one model", "[session][master]") {
  const seat chief = chief_at();
  const auto message = message_of<sw::invalid_argument_error>([] { const seat other(false, "local:test", subject_of(another_model)); });
  CHECK(message.find("All sessions on it reference the same model object") != std::string::npos);
  CHECK_THROWS_AS(seat(false, "local:test", {&the_model, sw::type_key::of<long>()}), sw::invalid_argument_error);
  CHECK(sw::sessions_at("local:test") == 1);
}

TEST_CASE("there is one chief at a time, and another may come once it has left", "[session][master]") {
  std::optional<seat> chief;
  const seat worker = worker_at();
  chief.emplace(true);
  CHECK(message_of<sw::failed_precondition_error>([] { chief_at(); }).find("has a chief already") != std::string::npos);
  chief.reset();
  CHECK_NOTHROW(chief_at());
}

TEST_CASE("a step waits for a ready model of this generation, or is refused before the model is touched", "[session][master]") {
  seat chief = chief_at();
  seat worker = worker_at();
  CHECK_THROWS_AS(worker.enter(), sw::aborted_error);
  CHECK_FALSE(worker.is_inside());
  chief.make_ready(3);
  CHECK_THROWS_AS(worker.enter(), sw::aborted_error);  // the worker has not joined
  worker.join_now();
  {
    const auto step = worker.enter();
    CHECK(worker.is_inside());
    worker.set_global_step(4);
  }
  CHECK(chief.global_step() == 4);
  CHECK_NOTHROW(chief.enter());
  chief.make_ready(3);
  CHECK_NOTHROW(chief.enter());  // its own restore does not abort the chief
  CHECK(message_of<sw::aborted_error>([&] { static_cast<void>(worker.enter()); }).find("again, at step 3") != std::string::npos);
  worker.join_now();
  CHECK_NOTHROW(worker.enter());
}

TEST_CASE("no session steps while a chief makes the model ready, or after this has failed", "[session][master]") {
  seat chief = chief_at();
  seat worker = worker_at();
  chief.make_ready();
  worker.join_now();
  {
    const auto alone = chief.begin_preparing();
    CHECK_FALSE(worker.is_chief_ready());
  }  // simulates an exception
  CHECK_FALSE(worker.is_chief_ready());
  CHECK_THROWS_AS(worker.enter(), sw::aborted_error);
  chief.make_ready();
  CHECK(worker.is_chief_ready());
}

TEST_CASE("a model stays ready after its chief has left: workers continue, others join, and a chief may return", "[session][master]") {
  seat chief = chief_at();
  seat worker = worker_at();
  chief.make_ready(10);
  worker.join_now();
  chief.close();
  CHECK(worker.is_chief_ready());
  CHECK_NOTHROW(worker.enter());
  CHECK_THROWS_AS(chief.enter(), sw::failed_precondition_error);
  CHECK_THROWS_AS(chief.enter_alone(), sw::failed_precondition_error);
  seat late = worker_at();
  CHECK(late.is_chief_ready());
  chief.make_ready(8);  // becomes chief again
  CHECK(sw::sessions_at("local:test") == 3);
  CHECK_THROWS_AS(worker.enter(), sw::aborted_error);
  CHECK(worker.global_step() == 8);
}

TEST_CASE("only the chief makes ready", "[session][master]") {
  seat worker = worker_at();
  CHECK_THROWS_AS(worker.make_ready(), sw::failed_precondition_error);
}

TEST_CASE("an owner may enter again, but not exclusively while others may share", "[session][master]") {
  seat chief = chief_at();
  chief.make_ready();
  {
    const auto step = chief.enter();
    const auto copying = chief.enter_alone();
    const auto raw_run = chief.enter();
  }
  CHECK_FALSE(chief.is_inside());
  const sw::master_subject shared = subject_of(another_model, true);
  seat one(true, "local:shared", shared);
  seat other(false, "local:shared", shared);
  one.make_ready();
  other.join_now();
  const auto step = one.enter();
  const auto beside = other.enter();
  CHECK_THROWS_AS(one.enter_alone(), sw::failed_precondition_error);
  CHECK_NOTHROW(one.enter());
}

TEST_CASE("a wait for the chief ends when it is ready", "[session][master]") {
  seat chief = chief_at();
  seat worker = worker_at();
  sw::manual_clock clock;
  sw::session_signals signals;
  bool is_ready = false;
  std::jthread waiting([&] { is_ready = worker.wait_for_chief(signals, clock, clock.now() + 1h); });
  REQUIRE(clock.wait_for_pending(1));
  chief.make_ready();
  waiting.join();
  CHECK(is_ready);
  CHECK(worker.wait_for_chief(signals, clock, clock.now()));  // returns immediately
}

TEST_CASE("waiting for the chief ends with a stop, or in time", "[session][master]") {
  seat worker = worker_at();
  sw::manual_clock clock;
  sw::session_signals signals;
  bool is_ready = true;
  std::jthread waiting([&] { is_ready = worker.wait_for_chief(signals, clock, clock.now() + 1h); });
  REQUIRE(clock.wait_for_pending(1));
  SECTION("a stop") { signals.request_stop({}); }
  SECTION("time") { clock.advance(1h); }
  waiting.join();
  CHECK_FALSE(is_ready);
  signals.request_stop({});
  CHECK_FALSE(worker.wait_for_chief(signals, clock, sw::clock::time_point::max()));  // the stop was requested before
}
