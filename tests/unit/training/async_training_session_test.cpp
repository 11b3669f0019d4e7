// SPDX-License-Identifier: Apache-2.0
//
// The front door, awaited: what its options ask for happens in an awaited session, too.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/signalling_hook.hpp"

#include <stepwell/training/async_training_session.hpp>

#include <csignal>
#include <cstdint>
#include <string>

namespace sw = stepwell;
using namespace sw::test;

namespace {

asio::awaitable<std::int64_t> last_step_of(auto& session, auto& source) {
  std::int64_t last = 0;
  co_await session.async_start();
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
    last = step->global_step;
  }
  co_await session.async_close();
  co_return last;
}

}  // namespace

TEST_CASE("an awaited training session saves by its cadence, stops by a signal, and goes on where it was", "[training][async][signals]") {
  const log_capture log;
  async_rig         rig;
  {
    auto options = rig.options();
    options.stop_on = {SIGURG};
    counting_source source;
    auto session = sw::monitored_training_session(sw::defer_start, rig.model, options, signalling_hook{3});
    CHECK_FALSE(session.is_started());
    CHECK(rig.await(last_step_of(session, source)) == 3);
    CHECK(session.stop_reason().cause == sw::stop_cause::signal);
    CHECK(session.stop_reason().text == "the process was sent SIGURG");
    CHECK(rig.steps() == "0 2 3");
  }
  rig.model = adding_model();
  counting_source source;
  auto session = sw::monitored_training_session(sw::defer_start, rig.model, rig.options(), sw::stop_at_step_hook{{.last_step = 5}});
  CHECK(rig.await(last_step_of(session, source)) == 5);
  CHECK(same(rig.model, model_after(5)));
  CHECK(rig.steps() == "0 2 3 5");  // every second step from the last save on
}
