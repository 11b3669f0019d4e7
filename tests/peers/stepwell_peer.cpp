// SPDX-License-Identifier: Apache-2.0
//
// stepwell's part of `bash tests/run peers`. tests/peers/compare.py starts it:
//   stepwell_peer weights FILE MIB              writes the weights that every peer saves
//   stepwell_peer save FILE DIRECTORY           one save for each line of standard input, see turns.py
//   stepwell_peer fenced FILE DIRECTORY         the same with a model that waits at an update_fence; only the stop is printed
//   stepwell_peer step                          one million steps for each line of standard input
//   stepwell_peer memory PHASE DIRECTORY MIB    prints the peak memory of a phase (nothing, saves, restore) over the variables
#include "bench/timing.hpp"
#include "support/idle_hooks.hpp"

#include <stepwell/base/log.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <fmt/format.h>

#include <sys/resource.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::bench::seconds_of;

namespace {

constexpr std::size_t layer_count = 8;

/// A model whose weights are large and whose step is trivial.
struct weights_model {
  struct result {
    float first;
  };
  std::vector<std::vector<float>> layers;

  explicit weights_model(std::size_t bytes) : layers(layer_count) {
    for (auto& layer : layers) { layer.resize(bytes / layer_count / sizeof(float)); }  // a vector to copy would count as peak memory
  }

  result step(float batch) { return {layers.front().front() += batch}; }
  sw::variable_list variables() {
    sw::variable_list made;
    for (std::size_t i = 0; i < layers.size(); ++i) { made.emplace_back(fmt::format("layer_{}/weights", i), layers[i]); }
    return made;
  }

  /// Fills the layers with random weights. The bytes do not compress well, as those of a trained model.
  void fill() {
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> weight(-0.1f, 0.1f);
    for (auto& layer : layers) {
      for (auto& one : layer) { one = weight(random); }
    }
  }
  /// Returns the layer `i` as characters of a file.
  [[nodiscard]] char* bytes(std::size_t i) { return reinterpret_cast<char*>(layers[i].data()); }
  [[nodiscard]] std::streamsize layer_bytes() const { return static_cast<std::streamsize>(layers.front().size() * sizeof(float)); }
};

/// The same model, with gradients that take `computing` seconds before the weights change.
struct fenced_model : weights_model {
  using weights_model::weights_model;
  double computing = 0;
  double computed = 0;  // the seconds that the gradients of the last step really took

  result step(float batch, sw::update_fence& fence) {
    computed = seconds_of([this] {
      const auto begin = std::chrono::steady_clock::now();
      while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < computing) {}
    });
    fence.wait();
    return weights_model::step(batch);
  }
};

/// Returns options that save every second step.
sw::training_options saving_in(const std::string& directory) {
  return {.checkpoint_dir = directory,
          .saves = {.save_steps = 2},
          .summaries = {.save_steps = sw::none},
          .step_counter = {.every_n_steps = sw::none}};
}

void write_weights(const std::string& path, std::size_t bytes) {
  weights_model model(bytes);
  model.fill();
  std::ofstream file(path, std::ios::binary);
  for (std::size_t i = 0; i < layer_count; ++i) { file.write(model.bytes(i), model.layer_bytes()); }
  if (!file.flush()) { throw std::runtime_error("cannot write " + path); }
}

/// Calls `measure` for each line of standard input and prints the numbers that it returns. Prints "ready" first.
void take_turns(const std::function<std::vector<double>()>& measure) {
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    for (const double number : measure()) { std::cout << number << ' '; }
    std::cout << std::endl;
  }
}

/// Returns a model with the weights of the file.
template<class Model>
Model model_with(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  Model model(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  for (std::size_t i = 0; i < layer_count; ++i) { file.read(model.bytes(i), model.layer_bytes()); }
  if (!file) { throw std::runtime_error("cannot read " + path); }
  return model;
}

/// Copies all weights of `model` to `copy` and returns the time.
double time_of_memcpy(weights_model& model, std::vector<std::vector<float>>& copy) {
  return seconds_of([&] {
    for (std::size_t i = 0; i < layer_count; ++i) {
      std::memcpy(copy[i].data(), model.bytes(i), static_cast<std::size_t>(model.layer_bytes()));
    }
  });
}

// Measures the step at which a save is due, the time until its checkpoint is durable, and one memcpy of the same bytes.
void measure_saves(const std::string& path, const std::string& directory) {
  auto model = model_with<weights_model>(path);
  auto copy = model.layers;
  auto options = saving_in(directory);
  options.saves.saver.max_to_keep = sw::none;  // `drain` would wait for the deletion of expired checkpoints
  auto session = sw::monitored_training_session(model, options);
  auto& saver = session.hook<sw::checkpoint_saver_hook>().saver();
  saver.drain();
  take_turns([&]() -> std::vector<double> {
    session.run(0.5f);
    double stall = 0;
    const double written = seconds_of([&] {
      stall = seconds_of([&] { session.run(0.5f); });
      saver.drain();
    });
    return {stall, written, time_of_memcpy(model, copy)};
  });
  session.close();
}

// Measures the step at which a save is due, and the step after it, which waits at the fence: both without the time of their gradients,
// which take four times as long as one memcpy.
void measure_fenced_saves(const std::string& path, const std::string& directory) {
  auto model = model_with<fenced_model>(path);
  {
    auto copy = model.layers;
    time_of_memcpy(model, copy);
    model.computing = 4 * time_of_memcpy(model, copy);
  }
  auto options = saving_in(directory);
  options.saves.saver.max_to_keep = sw::none;
  options.check_update_fence = false;
  auto session = sw::monitored_training_session(model, options);
  auto& saver = session.hook<sw::checkpoint_saver_hook>().saver();
  saver.drain();
  session.run(0.5f);  // from here on, the first of two steps saves
  take_turns([&]() -> std::vector<double> {
    double stall = 0;
    for (int step = 0; step < 2; ++step) {
      stall += seconds_of([&] { session.run(0.5f); }) - model.computed;
    }
    saver.drain();
    return {stall};
  });
  session.close();
}

// Measures the seconds for each step above the bare loop: with `run`, and with range-for.
void measure_steps() {
  constexpr int steps = 1'000'000;
  sw::test::tiny_model model, looped, bare;
  auto session = sw::test::session_with_six_idle_hooks(model);
  auto loop_session = sw::test::session_with_six_idle_hooks(looped);
  sw::test::repeating_source source;
  auto loop = loop_session.steps(source);
  auto next = loop.begin();
  take_turns([&]() -> std::vector<double> {
    const double alone = seconds_of([&] {
      for (int i = 0; i < steps; ++i) { bare.step(0.5f); }
    });
    const double run = seconds_of([&] {
      for (int i = 0; i < steps; ++i) { session.run(0.5f); }
    });
    const double range_for = seconds_of([&] {
      for (int i = 0; i < steps; ++i) { ++next; }
    });
    return {(run - alone) / steps, (range_for - alone) / steps};
  });
}

// Runs one phase and prints the peak of the process's resident memory, divided by the size of the variables.
void measure_memory(const std::string& phase, const std::string& directory, std::size_t bytes) {
  weights_model model(bytes);
  sw::training_options options{.step_counter = {.every_n_steps = sw::none}};
  if (phase == "nothing") {
    options.retry.max_attempts = 0;
  } else {
    options = saving_in(directory);
    options.saves.saver.max_to_keep = 1;
  }
  if (phase == "restore") { options.saves.save_steps = sw::none; }
  if (phase != "restore") { model.fill(); }
  auto session = sw::monitored_training_session(model, options);
  if (phase == "restore" && !session.restored_from()) { throw std::runtime_error("no checkpoint in " + directory); }
  for (int step = 0; phase != "restore" && step < 8; ++step) { session.run(0.5f); }
  session.close();
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  std::cout << static_cast<double>(used.ru_maxrss) * 1024 / static_cast<double>(bytes) << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto is = [&](const char* kind, std::size_t count) { return words.size() == count && words[0] == kind; };
  const auto mib = [](const std::string& text) { return static_cast<std::size_t>(std::stoull(text)) << 20; };
  sw::set_log_level(sw::log_level::error);
  try {
    if (is("weights", 3)) {
      write_weights(words[1], mib(words[2]));
    } else if (is("save", 3)) {
      measure_saves(words[1], words[2]);
    } else if (is("fenced", 3)) {
      measure_fenced_saves(words[1], words[2] + "/fenced");  // the other process saves into the directory itself
    } else if (is("step", 1)) {
      measure_steps();
    } else if (is("memory", 4)) {
      measure_memory(words[1], words[2], mib(words[3]));
    } else {
      std::cerr << "stepwell_peer: unknown arguments; see the first lines of tests/peers/stepwell_peer.cpp\n";
      return 2;
    }
  } catch (const std::exception& failure) {
    std::cerr << "stepwell_peer: " << failure.what() << '\n';
    return 1;
  }
  return 0;
}
