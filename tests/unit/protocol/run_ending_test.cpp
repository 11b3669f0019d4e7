// SPDX-License-Identifier: Apache-2.0
//
// Tests of the ending file: what a directory tells about the end of its last session.
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/protocol/run_ending.hpp>
#include <stepwell/session/training_session.hpp>

#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

namespace sw = stepwell;
using sw::session_ending;
using sw::stop_cause;
using sw::test::counting_model;

namespace {

/// A hook that throws in the first run.
struct failing_hook {
  void after_run(auto&, const auto&) { throw std::runtime_error("the machine is too warm"); }
};
/// A hook that ends the sessions of the process like a signal.
struct interrupted_hook {
  void after_run(auto& context, const auto&) { context.signals()->end_process("SIGTERM", context.time()->now()); }
};

struct rig {
  sw::test::temporary_directory directory;
  sw::test::log_capture log;
  counting_model model;

  [[nodiscard]] sw::checkpoint_saver_hook saver() const {
    return sw::checkpoint_saver_hook({.checkpoint_dir = directory.path(), .save_steps = 2});
  }
  [[nodiscard]] std::optional<sw::run_ending> ended() const { return sw::run_ended(directory.path()); }
  [[nodiscard]] sw::run_ending ending() const { return ended().value(); }
};

void train(auto& session) {
  for ([[maybe_unused]] const auto& step : session.steps()) {}
}

}  // namespace

TEST_CASE("a directory without a session has no ending", "[hook][ending]") {
  const rig on;
  CHECK_FALSE(on.ended());
  CHECK_FALSE(sw::run_ended(on.directory / "missing"));
}

TEST_CASE("after a session has closed, its directory has the step and the reason of the end", "[hook][ending]") {
  rig on;
  {
    sw::monitored_session session(on.model, on.saver(), sw::stop_at_step(3));
    CHECK_FALSE(on.ended());
    train(session);
    CHECK_FALSE(on.ended());  // the last checkpoint is not durable yet
    session.close();
  }
  CHECK(on.ending().how == session_ending::finished);
  CHECK(on.ending().why.cause == stop_cause::last_step);
  CHECK(on.ending().why.text == "step 3 is done");
  CHECK(on.ending().global_step == 3);
}

TEST_CASE("a session removes the ending of the session before it, and a killed session leaves none", "[hook][ending]") {
  rig on;
  {
    sw::monitored_session session(on.model, on.saver(), sw::stop_at_step(3));
    train(session);
    session.close();
  }
  sw::monitored_session next(on.model, on.saver(), sw::stop_at_step(5));
  CHECK_FALSE(on.ended());
  next.run();
  CHECK_FALSE(on.ended());
  next.close();
  CHECK(on.ending().why.cause == stop_cause::closed);
  CHECK(on.ending().global_step == 1);  // it restored nothing
}

TEST_CASE("a session that a failure ends leaves the failure", "[hook][ending]") {
  rig on;
  SECTION("of a hook, and is closed afterwards") {
    sw::monitored_session session(on.model, on.saver(), failing_hook{});
    CHECK_THROWS_AS(session.run(), std::runtime_error);
    session.close();
    CHECK_THAT(on.ending().why.text, ContainsSubstring("the machine is too warm"));
  }
  SECTION("of the loop, thrown through a with-block") {
    sw::monitored_session session(on.model, on.saver());
    CHECK_THROWS_AS(sw::with(session, [](auto&) { throw std::runtime_error("the loop's own"); }), std::runtime_error);
    CHECK_THAT(on.ending().why.text, ContainsSubstring("the loop's own"));
  }
  SECTION("of the loop, thrown past the session") {
    const auto throws_past_it = [&] {
      sw::monitored_session session(on.model, on.saver());
      session.run();
      throw std::runtime_error("the loop's own");
    };
    CHECK_THROWS_AS(throws_past_it(), std::runtime_error);
  }
  CHECK(on.ending().how == session_ending::failed);
  CHECK(on.ending().why.cause == stop_cause::error);
}

TEST_CASE("a session that a NaN ends has failed, and says so", "[hook][ending]") {
  rig on;
  const auto nan = [](const int&) { return std::numeric_limits<float>::quiet_NaN(); };
  sw::monitored_session session(on.model, on.saver(), sw::nan_tensor_hook{{.fail_on_nan_loss = false}, nan});
  train(session);
  session.close();
  CHECK(on.ending().how == session_ending::failed);
  CHECK(on.ending().why.cause == stop_cause::nan);
}

TEST_CASE("a session that a signal ends is interrupted: another process continues the run", "[hook][ending]") {
  rig on;
  sw::monitored_session session(on.model, on.saver(), interrupted_hook{});
  train(session);
  session.close();
  CHECK(on.ending().how == session_ending::interrupted);
  CHECK(on.ending().why.cause == stop_cause::signal);
}

TEST_CASE("a session that the application's stop token ends is interrupted, too, and one that request_stop ends has finished",
          "[hook][ending]") {
  rig on;
  SECTION("the stop token") {
    std::stop_source stop;
    sw::training_options options;
    options.stop_token = stop.get_token();
    sw::monitored_session session(std::move(options), on.model, on.saver());
    session.run();
    stop.request_stop();
    train(session);
    session.close();
    CHECK(on.ending().how == session_ending::interrupted);
    CHECK(on.ending().why.cause == stop_cause::stop_token);
  }
  SECTION("request_stop") {
    sw::monitored_session session(on.model, on.saver());
    session.request_stop("good enough");
    train(session);
    session.close();
    CHECK(on.ending().how == session_ending::finished);
    CHECK(on.ending().why.text == "good enough");
  }
}

TEST_CASE("early stopping has its own cause", "[hook][ending]") {
  rig on;
  const auto constant = [](const int&) { return 1.0; };
  sw::monitored_session session(on.model, on.saver(), sw::early_stopping_hook{{.patience = 2}, constant});
  train(session);
  session.close();
  CHECK(on.ending().how == session_ending::finished);
  CHECK(on.ending().why.cause == stop_cause::no_progress);
  CHECK(to_string(session.stop_reason().cause) == "no_progress");
}

TEST_CASE("a session without checkpoints leaves no ending", "[hook][ending]") {
  rig on;
  sw::monitored_session session(on.model, sw::stop_at_step(3));
  train(session);
  session.close();
  CHECK_FALSE(on.ended());
}

TEST_CASE("a damaged ending file is an error that names the file", "[hook][ending]") {
  const rig on;
  const auto path = on.directory / "stepwell.ending";
  SECTION("text that does not parse") {
    std::ofstream(path) << "how: \"fini";
    CHECK_THROWS_WITH(on.ended(), ContainsSubstring(path) && ContainsSubstring("line 1"));
  }
  SECTION("an ending that this version does not know") {
    std::ofstream(path) << "how: \"postponed\"\n";
    CHECK_THROWS_AS(on.ended(), sw::data_loss_error);
  }
  SECTION("a file that is far too large") {
    std::ofstream(path) << std::string(2'000'000, ' ');
    CHECK_THROWS_AS(on.ended(), sw::invalid_argument_error);
  }
}

TEST_CASE("a cause that this version does not know is read as none", "[hook][ending]") {
  const rig on;
  std::ofstream(on.directory / "stepwell.ending") << "how: \"finished\"\ncause: \"bored\"\ntext: \"enough\"\nglobal_step: 7\nmood: 3\n";
  CHECK(on.ending().why.cause == stop_cause::none);
  CHECK(on.ending().why.text == "enough");
  CHECK(on.ending().global_step == 7);
}
