// SPDX-License-Identifier: Apache-2.0
//
// A training for the tests of the board in a browser: board_session DIRECTORY FAST PERIOD
// It does FAST steps as fast as it can and then one step every PERIOD milliseconds, until it is stopped or its standard input is closed.
// The loss falls, but is 1000 at step 123456. Without event files if DIRECTORY is "-".
#include <stepwell/board/board_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <unistd.h>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

namespace sw = stepwell;

namespace {

constexpr std::int64_t spike = 123'456;
constexpr std::int64_t last_step = 1'000'000'000;

struct falling {
  struct result {
    double loss;
    double wave;
  };
  std::int64_t fast = 0;
  std::chrono::milliseconds period{};
  std::int64_t done = 0;

  result step() {
    if (++done > fast) { std::this_thread::sleep_for(period); }
    const auto at = static_cast<double>(done);
    return {done == spike ? 1000.0 : 1 + 1 / at, std::sin(at / 1000)};
  }
  auto variables() { return sw::variables({{"done", done}}); }
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) { return 2; }
  const std::string directory = arguments[1];
  falling model{.fast = std::atoll(arguments[2]), .period = std::chrono::milliseconds(std::atoll(arguments[3]))};
  const auto train = [&](const sw::training_options& options, auto... hooks) {
    auto session = sw::monitored_training_session(
        model, options, sw::stop_at_step(last_step), std::move(hooks)...,
        sw::board_hook{{.port = 0, .update_secs = 0.25}, sw::tag("loss", &falling::result::loss), sw::tag("wave", &falling::result::wave)});
    std::thread watcher([&session] {
      char byte = 0;
      while (::read(STDIN_FILENO, &byte, 1) > 0) {}
      session.request_stop("the test has ended");
    });
    session.run_all();
    session.close();
    watcher.join();
  };
  if (directory == "-") {
    train({});
  } else {
    train({.checkpoint_dir = directory, .saves = {.save_steps = last_step}},
          sw::summary_saver_hook({.save_steps = 1}, sw::summary::scalar("loss", &falling::result::loss),
                                 sw::summary::scalar("wave", &falling::result::wave)));
  }
  return 0;
}
