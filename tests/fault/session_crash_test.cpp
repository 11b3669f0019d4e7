// SPDX-License-Identifier: Apache-2.0
//
// Stops the machine at every single operation of a run. The next run must give the same result as an undisturbed run.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/base/error.hpp>

#include <cstring>
#include <string>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::session_rig;

namespace {

constexpr std::int64_t last_step = 5;

/// Runs a session that saves at 0, 2, 4 and 5 and deletes old checkpoints; failures are ignored. Returns the newest
/// step reported to a listener as saved.
std::int64_t run_and_see(session_rig& rig) {
  struct listener final : sw::checkpoint_saver_listener {
    std::int64_t newest = -1;
    bool after_save(const sw::saved_checkpoint& saved) override {
      newest = saved.step;
      return false;
    }
  };
  const auto heard = std::make_shared<listener>();
  try {
    auto options = rig.options();
    options.saves.saver.max_to_keep = 2;
    options.summaries.save_steps = 1;
    options.saves.listeners = {heard};
    auto session = sw::monitored_training_session(rig.model, options, sw::stop_at_step_hook{{.last_step = last_step}});
    sw::test::counting_source source;
    for ([[maybe_unused]] const auto& step : session.steps(source)) {}
    session.close();
  } catch (const sw::error&) {}
  return heard->newest;
}

bool same_bits(const adding_model& a, const adding_model& b) {
  return std::memcmp(&a.sum, &b.sum, sizeof a.sum) == 0 && a.weights.size() == b.weights.size() &&
         std::memcmp(a.weights.data(), b.weights.data(), a.weights.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("a run that was stopped at any operation ends like one that was not", "[fault][session][crash]") {
  sw::test::log_capture log;
  const bool loses_power = GENERATE(false, true);
  session_rig whole;
  REQUIRE(run_and_see(whole) == last_step);
  std::uint64_t number = 1;
  for (;; ++number) {
    CAPTURE(number, loses_power);
    session_rig rig;
    loses_power ? rig.files->lose_power_at(number) : rig.files->crash_at(number);
    const auto durable = run_and_see(rig);
    if (!rig.files->has_crashed()) { break; }
    adding_model later{.sum = 77};  // a checkpoint replaces this value
    if (durable < 0) { later = {}; }
    const auto start = sw::test::finish_on_sound_files(later, rig.directory.path(), last_step);
    CHECK(start >= durable);  // no step reported as durable is lost
    CHECK(same_bits(later, whole.model));
    CHECK(sw::test::names_in(rig.directory.path()).find(".tmp-") == std::string::npos);
    const auto newest = sw::test::newest_in(rig.directory.path());
    CHECK(newest.step == last_step);
    CHECK(same_bits(newest.model, whole.model));
  }
  CHECK(number > 80);
}
