// SPDX-License-Identifier: Apache-2.0
//
// train_until_told DIRECTORY [hang]: trains until SIGTERM, then prints the last step. With `hang`, it does not reach
// the end: a hook's `end` waits for the end of the input.
#include "support/toy_model.hpp"

#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/protocol/session_signals.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sw = stepwell;

namespace {

void say(const std::string& what) {
  std::puts(what.c_str());
  std::fflush(stdout);
}

struct hanging_hook {
  bool hangs;

  void end(auto&) const {
    if (!hangs) { return; }
    say("ending");
    while (std::getchar() != EOF) {}
  }
};

}  // namespace

int main(int count, char** words) {
  if (count < 2) { return 2; }
  sw::test::counting_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = words[1], .stop_on = {SIGTERM}}, hanging_hook{count > 2});
  session.hook<sw::checkpoint_saver_hook>().saver().drain();  // there is a checkpoint from now on
  std::int64_t last = 0;
  for (const auto& step : session.steps()) {
    if (last == 0) { say("training"); }
    last = step.global_step;
  }
  session.close();
  say("stopped by " + std::string(to_string(session.stop_reason().cause)) + " at " + std::to_string(last));
  return 0;
}
