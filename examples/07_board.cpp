// SPDX-License-Identifier: Apache-2.0
//
// The board: a page in a browser that shows this run, and that can stop it. The program prints the address of the page.
#include <stepwell/board/board_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace sw = stepwell;

/// Looks for the root of 2.
struct root {
  struct result {
    double loss;
  };
  double guess = 1;

  result step() {
    const double off = guess * guess - 2;
    guess -= 0.001 * off;
    return {off * off};
  }
  auto variables() { return sw::variables({{"guess", guess}}); }
};

/// Trains for 1000 steps, or for as many as the first argument says: 07_board 1000000000
int main(int count, char** arguments) {
  const std::int64_t steps = count > 1 ? std::atoll(arguments[1]) : 1000;
  root model;
  auto session =
      sw::monitored_training_session(model, {.checkpoint_dir = "runs/a"}, sw::stop_at_step(steps),
                                     sw::summary_saver_hook({.save_steps = 100}, sw::summary::scalar("loss", &root::result::loss)),
                                     sw::board_hook{{.port = 6007}, sw::tag("loss", &root::result::loss)});
  session.run_all();
  session.close();
  std::printf("guess %g\n", model.guess);
  return 0;
}
