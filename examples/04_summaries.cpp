// SPDX-License-Identifier: Apache-2.0
//
// Summaries: scalars and distributions of a run in an event file. View them with `tensorboard --logdir run`.
#include <stepwell/base/random.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace sw = stepwell;

/// A thousand random walks.
struct walkers {
  std::array<float, 1000> places{};
  sw::random_stream random{7};

  struct result {
    float spread;
  };

  result step() {
    float squares = 0;
    for (float& place : places) {
      place += static_cast<float>(random.uniform() - 0.5);
      squares += place * place;
    }
    return {std::sqrt(squares / static_cast<float>(places.size()))};
  }

  auto variables() {
    auto drawn = random.state();
    return sw::variables({{"places", places}, {"random", drawn}});
  }
};

bool has_event_file(const char* directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().find(".tfevents.") != std::string::npos && entry.file_size() > 1000) { return true; }
  }
  return false;
}

int main() {
  walkers model;
  auto session = sw::monitored_training_session(
      model, {}, sw::stop_at_step_hook{{.last_step = 500}},
      sw::summary_saver_hook{{.output_dir = "run", .save_steps = 10},
                             sw::summary::scalar("spread", &walkers::result::spread),
                             sw::summary::scalar("first_walker", [](const walkers& all) { return all.places[0]; }),
                             sw::summary::histogram("places", &walkers::places)});
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  std::puts("summaries of 500 steps are in run");
  return has_event_file("run") ? 0 : 1;
}
