// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::counting_model;

namespace {

using lines = std::vector<std::string>;

/// Returns the log of a loop that ends at the latest after `most` runs.
lines log_of(sw::stop_after_n_evals_options options, int most = 1000) {
  sw::test::log_capture log;
  counting_model model;
  sw::monitored_session session(model, sw::stop_after_n_evals_hook{options});
  while (!session.should_stop() && model.count < most) { session.run(); }
  if (options.num_evals) { CHECK(model.count == std::max(std::int64_t{0}, *options.num_evals)); }
  lines found;
  for (const auto& message : log.messages()) { found.push_back(message.text); }
  return found;
}

/// Notes the conditions that displays would show after each run.
struct watching_hook {
  std::vector<std::string> seen = {};
  void after_run(auto& context, const auto&) {
    for (const auto& one : context.stop_conditions()) {
      seen.push_back(one.text + ": " + std::to_string(static_cast<int>(one.reached)) + " of " +
                     std::to_string(static_cast<int>(one.limit)));
    }
  }
};

}  // namespace

TEST_CASE("HOOK-MULTI-2 an evaluation ends after the given number of steps, and logs each step if there are few", "[hooks][evals]") {
  CHECK(log_of({.num_evals = 3}) == lines{"Evaluation [1/3]", "Evaluation [2/3]", "Evaluation [3/3]"});
  CHECK(log_of({.num_evals = 19}).size() == 19);
  CHECK(log_of({.num_evals = 0}).empty());
}

TEST_CASE("HOOK-MULTI-2 from 20 on a tenth of the steps is logged, and the last one", "[hooks][evals]") {
  CHECK(log_of({.num_evals = 20}).size() == 10);
  const auto some = log_of({.num_evals = 25});
  CHECK(some.size() == 13);
  CHECK(some.front() == "Evaluation [2/25]");
  CHECK(some.back() == "Evaluation [25/25]");
  CHECK(log_of({.num_evals = 100}).size() == 10);
}

TEST_CASE("HOOK-MULTI-2 it can be silent, or only count", "[hooks][evals]") {
  CHECK(log_of({.num_evals = 3, .log_progress = false}).empty());
  CHECK(log_of({}, 2) == lines{"Evaluation [1]", "Evaluation [2]"});
}

TEST_CASE("HOOK-MULTI-2 evaluations are counted by session, whatever the global step", "[hooks][evals]") {
  sw::test::log_capture log;
  sw::stop_after_n_evals_hook hook{{.num_evals = 2}};
  counting_model model;
  for (int i = 0; i < 2; ++i) {
    sw::monitored_session session(model, std::ref(hook));
    while (!session.should_stop()) { session.run(); }
    CHECK(session.stop_reason().cause == sw::stop_cause::last_step);
    CHECK(hook.evals_completed() == 2);
    session.close();
  }
  CHECK(model.count == 4);
}

TEST_CASE("HOOK-MULTI-2 the number of evaluations is a condition that displays show, with its progress", "[hooks][evals]") {
  const auto seen = [](sw::stop_after_n_evals_options options) {
    counting_model model;
    watching_hook watching;
    sw::monitored_session session(model, sw::stop_after_n_evals_hook{options}, std::ref(watching));
    while (!session.should_stop() && model.count < 2) { session.run(); }
    session.close();
    return watching.seen;
  };
  CHECK(seen({.num_evals = 2, .log_progress = false}) ==
        lines{"ends after 2 evaluation steps: 1 of 2", "ends after 2 evaluation steps: 2 of 2"});
  CHECK(seen({.num_evals = {}, .log_progress = false}).empty());
}
