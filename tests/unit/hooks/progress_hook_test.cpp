// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/toy_model.hpp"

#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_model;

TEST_CASE("a progress line says step, share, loss, rate and time left", "[hooks][progress]") {
  const sw::progress_state state{.first_step = 0, .step = 1200, .last_step = 10'000, .value = 0.1234, .steps_per_second = 410};
  CHECK(sw::progress_line(state, false, 80) == "step 1200/10000   12%  loss 0.1234  410 steps/s  ETA 0:22");
  CHECK(sw::progress_line(state, true, 80) == "[==>                ] step 1200/10000   12%  loss 0.1234  410 steps/s  ETA 0:22");
  CHECK(sw::progress_line(state, true, 30).size() < 30);
  CHECK(sw::progress_line({.first_step = 0, .step = 7, .value = std::nullopt}, true, 80) == "step 7");
}

TEST_CASE("where there is no terminal, a plain line comes now and then", "[hooks][progress]") {
  std::string out;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(
      sw::session_settings{.clock = clock}, model,
      sw::progress_hook{{.last_step = 40, .line_every = 10, .is_terminal = false, .output = [&](auto text) { out += text; }},
                        &adding_model::result::loss});
  for (std::int64_t batch = 1; batch <= 40; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
  CHECK(out ==
        "step 10/40   25%  loss 55  1 steps/s  ETA 0:30\n"
        "step 20/40   50%  loss 210  1 steps/s  ETA 0:20\n"
        "step 30/40   75%  loss 465  1 steps/s  ETA 0:10\n"
        "step 40/40  100%  loss 820  1 steps/s\n");
}

TEST_CASE("on a terminal the bar is drawn over itself and ends with a line", "[hooks][progress]") {
  std::string out;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  sw::monitored_session session(
      sw::session_settings{.clock = clock}, model,
      sw::progress_hook{{.last_step = 2, .bar_every = 1, .is_terminal = true, .columns = 60, .output = [&](auto text) { out += text; }}});
  clock->advance(1s);
  session.run(std::int64_t{1});
  session.close();
  CHECK(out.starts_with("\r\x1b[K["));
  CHECK(out.ends_with("\n"));
  CHECK(out.find("step 1/2   50%") != std::string::npos);
}

TEST_CASE("a session without a step shows no progress", "[hooks][progress]") {
  std::string out;
  adding_model model;
  sw::monitored_session session(model, sw::progress_hook{{.is_terminal = false, .output = [&](auto text) { out += text; }}});
  session.close();
  CHECK(out.empty());
}
