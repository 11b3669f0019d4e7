// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>
#include <stepwell/session/monitored_session.hpp>
#include <stepwell/session/training_session.hpp>

#include <exception>
#include <functional>

namespace sw = stepwell;
using sw::test::adding_model;

namespace {

/// A hook that gives the session's coordinator to the test and counts the calls of `end`.
struct coordinator_hook {
  sw::coordinator** threads;
  int* ends;
  void after_create_session(auto&, sw::coordinator& given) { *threads = &given; }
  void end(auto&) { ++*ends; }
};

struct rig {
  adding_model model;
  sw::coordinator* threads = nullptr;
  int ends = 0;
  sw::singular_monitored_session<sw::model_session<adding_model>, coordinator_hook> session{model, coordinator_hook{&threads, &ends}};
};

static_assert(sw::training_session<decltype(rig::session)>);

}  // namespace

TEST_CASE("SING-1 SING-2 a transient failure is thrown to the caller, and the session can be used afterwards", "[session][singular]") {
  rig now;
  now.model.before = [fails = true](std::int64_t) mutable {
    if (std::exchange(fails, false)) { throw sw::unavailable_error("not yet"); }
  };
  CHECK_THROWS_AS(now.session.run(1), sw::unavailable_error);
  CHECK_FALSE(now.session.should_stop());
  CHECK(now.session.run(1).loss == 1);
  CHECK(now.session.metrics().recoveries == 0);
}

TEST_CASE("SING-3 the raw session is there until the session is closed", "[session][singular]") {
  rig now;
  CHECK(now.session.raw_session().global_step() == 0);
  now.session.close();
  CHECK_THROWS_AS(now.session.raw_session(), sw::failed_precondition_error);
}

TEST_CASE("SING-4 should_stop throws the failure of a thread, and so does a loop", "[session][singular]") {
  rig now;
  now.session.run(1);
  now.threads->request_stop(std::make_exception_ptr(sw::unknown_error("a thread failed")));
  CHECK_NOTHROW(now.session.run(1));  // a successful run does not check the threads
  CHECK_THROWS_AS(now.session.should_stop(), sw::unknown_error);
  const auto loop = [&] {
    for ([[maybe_unused]] const auto& step : now.session.steps(std::vector<std::int64_t>{1, 2})) {}
  };
  CHECK_THROWS_AS(loop(), sw::unknown_error);
  CHECK_THROWS_AS(now.session.close(), sw::unknown_error);
}

TEST_CASE("SING-5 the end of the data ends a with-block quietly, hooks and all", "[session][singular]") {
  rig now;
  now.model.before = [](std::int64_t) { throw sw::out_of_range_error("no more"); };
  CHECK_NOTHROW(sw::with(now.session, [](auto& session) { session.run(1); }));
  CHECK(now.ends == 1);
}
