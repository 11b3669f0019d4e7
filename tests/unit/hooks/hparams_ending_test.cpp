// SPDX-License-Identifier: Apache-2.0
//
// Tests of the status at the end of a run, as the hyperparameters in its event file record it.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/protocol/detail/boundary_work.hpp>
#include <stepwell/session/training_session.hpp>

#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::format::hparams_status;
using sw::test::counting_model;
using sw::test::temporary_directory;
using statuses = std::vector<hparams_status>;

namespace {

/// Returns all records of an end in the event files of a directory.
std::vector<sw::format::hparams_end> ends_in(const std::string& directory) {
  std::vector<sw::format::hparams_end> all;
  for (const auto& [step, value] : sw::test::tagged_in(directory, "_hparams_/session_end_info")) {
    const auto record = sw::format::decode_hparams(std::as_bytes(std::span(value.metadata.value().plugin_content)));
    all.push_back(std::get<sw::format::hparams_end>(*record));
  }
  return all;
}

struct rig {
  temporary_directory directory;
  sw::test::log_capture log;
  counting_model model;
  std::shared_ptr<sw::manual_clock> clock = std::make_shared<sw::manual_clock>(sw::clock::wall_time(1'700'000'000s));

  [[nodiscard]] auto hook() const {
    const sw::summary_saver_options options{
        .output_dir = directory.path(), .events = {.clock = clock}, .save_steps = 1, .hparams = sw::format::hparam_map{{"batch_size", 32}}};
    return sw::summary_saver_hook{options, sw::summary::scalar("count", [](const int& count) { return count; })};
  }
  [[nodiscard]] statuses endings() const {
    statuses all;
    for (const auto& end : ends_in(directory.path())) { all.push_back(end.status); }
    return all;
  }
};

/// A hook that throws in the run with this number.
template<class Error>
struct failing_hook {
  int number;
  int runs = 0;
  void after_run(auto&, const auto&) {
    if (++runs == number) { throw Error("the machine is too warm"); }
  }
};

/// Boundary work that cannot finish.
struct undrained_work final : sw::boundary_work {
  void drain(const sw::deadline&) override { throw sw::resource_exhausted_error("the disk is full"); }
};
struct undrained_hook {
  std::shared_ptr<undrained_work> work = std::make_shared<undrained_work>();
  void after_create_session(auto& session, auto&) { session.add_work(work); }
};

/// A hook that ends the sessions of the process like a signal.
struct interrupted_hook {
  void after_run(auto& context, const auto&) { context.signals()->end_process("SIGTERM", context.time()->now()); }
};

}  // namespace

TEST_CASE("D-33 a session that is closed writes that its run succeeded, once", "[hooks][hparams]") {
  rig on;
  {
    sw::monitored_session session(on.model, on.hook());
    session.run();
    CHECK(on.endings().empty());
    session.close();
  }
  CHECK(on.endings() == statuses{hparams_status::success});
}

TEST_CASE("D-33 the end has the time of the close, not that of the last step", "[hooks][hparams]") {
  rig on;
  sw::monitored_session session(on.model, on.hook());
  session.run();
  on.clock->advance(90s);
  session.close();
  const auto ends = ends_in(on.directory.path());
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].end_time_secs == 1'700'000'090);
}

TEST_CASE("D-33 a session without hyper-parameters writes no end", "[hooks][hparams]") {
  rig on;
  sw::monitored_session session(on.model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = on.directory.path()},
                                                                 sw::summary::scalar("count", [](const int& count) { return count; })});
  session.run();
  session.close();
  CHECK(on.endings().empty());
}

TEST_CASE("D-33 a session that is left by an exception writes a failure", "[hooks][hparams]") {
  rig on;
  SECTION("in a with-block") {
    sw::monitored_session session(on.model, on.hook(), failing_hook<std::runtime_error>{2});
    CHECK_THROWS_AS(sw::with(session,
                             [](auto& self) {
                               for (;;) { self.run(); }
                             }),
                    std::runtime_error);
  }
  SECTION("by its destructor") {
    const auto train = [&] {
      sw::monitored_session session(on.model, on.hook());
      session.run();
      throw std::runtime_error("the loop's own");
    };
    CHECK_THROWS_AS(train(), std::runtime_error);
  }
  SECTION("and closed afterwards") {
    sw::monitored_session session(on.model, on.hook(), failing_hook<std::runtime_error>{1});
    CHECK_THROWS_AS(session.run(), std::runtime_error);
    session.close();
  }
  CHECK(on.endings() == statuses{hparams_status::failure});
}

TEST_CASE("D-33 a failure that was recovered from is none at the end", "[hooks][hparams]") {
  rig on;
  sw::training_options options;
  options.retry.initial_backoff = 0;
  sw::monitored_session session(std::move(options), on.model, on.hook(), failing_hook<sw::unavailable_error>{2});
  session.run();
  session.run();
  session.close();
  CHECK(session.metrics().recoveries == 1);
  CHECK(on.endings() == statuses{hparams_status::success});
}

TEST_CASE("D-33 a run that a NaN ended has failed", "[hooks][hparams]") {
  rig on;
  const auto nan = [](const int&) { return std::numeric_limits<float>::quiet_NaN(); };
  sw::monitored_session session(on.model, on.hook(), sw::nan_tensor_hook{{.fail_on_nan_loss = false}, nan});
  session.run();
  session.close();
  CHECK(on.endings() == statuses{hparams_status::failure});
}

TEST_CASE("D-33 a session whose last save fails has failed", "[hooks][hparams]") {
  rig on;
  sw::monitored_session session(on.model, on.hook(), undrained_hook{});
  session.run();
  CHECK_THROWS_AS(session.close(), sw::resource_exhausted_error);
  CHECK(on.endings() == statuses{hparams_status::failure});
}

TEST_CASE("D-33 a session that is closed because the process is to end writes no end: another process continues", "[hooks][hparams]") {
  rig on;
  {
    sw::monitored_session session(on.model, on.hook(), interrupted_hook{});
    session.run();
    CHECK(session.should_stop());
    session.close();
  }
  CHECK(on.endings().empty());
  sw::monitored_session next(on.model, on.hook());
  next.run();
  next.close();
  CHECK(on.endings() == statuses{hparams_status::success});
}
