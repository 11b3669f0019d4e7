// SPDX-License-Identifier: Apache-2.0
//
// train_features FEATURE DIRECTORY: trains a small model with one feature of sessions, and prints the result in one line: every bit of the
// model, the decisions of the hooks, and the best checkpoint. A run that is killed and started again must print the same line.
#include <stepwell/checkpoint/best_checkpoint.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

struct sample {
  double x;
  double y;
};

std::vector<sample> samples(int first, int last) {
  std::vector<sample> made;
  for (int i = first; i < last; ++i) {
    const double x = (i * 37 % 101) / 50.0 - 1;
    made.push_back({x, std::sin(3 * x) + (i * 53 % 97) / 200.0});
  }
  return made;
}

/// A polynomial, fitted by gradient descent with momentum. Its batches are noisy, so that its loss rises and falls.
struct polynomial {
  struct result {
    double loss;
  };
  std::vector<double> weights = std::vector<double>(6, 0.0);
  std::vector<double> momentum = std::vector<double>(6, 0.0);

  [[nodiscard]] double error_of(const sample& at) const {
    double sum = 0;
    for (std::size_t i = weights.size(); i-- > 0;) { sum = sum * at.x + weights[i]; }
    return sum - at.y;
  }
  result step(const std::vector<sample>& batch) {
    ::usleep(300);  // so that the process can be killed in the middle
    double loss = 0;
    for (auto& one : momentum) { one *= 0.9; }
    for (const auto& at : batch) {
      const double error = error_of(at);
      loss += error * error / static_cast<double>(batch.size());
      double power = 1;
      for (auto& one : momentum) {
        one -= 0.08 * error * power / static_cast<double>(batch.size());
        power *= at.x;
      }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) { weights[i] += momentum[i]; }
    return {loss};
  }
  [[nodiscard]] double loss_of(const sample& at) const {
    const double error = error_of(at);
    return error * error;
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}, {"momentum", momentum}}); }
};

std::string bits_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) { text += fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)); }
  return text;
}

std::string best_in(const std::string& directory) {
  const auto best = sw::best_checkpoint(directory);
  if (!best) { return "none"; }
  polynomial model;
  sw::checkpoint_reader reader(best->prefix);
  sw::restore(model.variables(), reader);
  return fmt::format("{} {} {}", best->step, bits_of({best->value}), bits_of(model.weights));
}

/// Trains to the end of `batches`, or until a hook requests a stop. Returns the step reached.
template<class Source, class... Hooks>
std::int64_t train(polynomial& model, const std::string& directory, Source batches, Hooks... hooks) {
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory, .save_checkpoint_steps = 7, .save_summaries_steps = 10, .log_step_count_steps = sw::none},
      std::move(hooks)...);
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  session.close();
  return session.global_step();
}

void run(const std::string& feature, const std::string& directory) {
  static const auto train_set = samples(0, 200);
  static const auto test_set = samples(200, 240);
  const auto batches = [](std::uint64_t epochs) {
    return sw::data::shuffled_batches(train_set, {.batch_size = 8, .seed = 7, .epochs = epochs});
  };
  const auto loss = sw::measure("loss", sw::metrics::mean(), [](double value) { return value; });
  polynomial model;
  std::int64_t reached = 0;
  std::string more;
  if (feature == "prefetch") {
    reached = train(model, directory, sw::data::prefetch(batches(12), {.threads = 2, .depth = 4}));
  } else if (feature == "epochs") {
    std::vector<std::int64_t> ends(64, 0);  // the number of calls at the end of each epoch
    const auto count = [&](std::uint64_t epoch) { ++ends.at(epoch); };
    const auto state = sw::saved_state{"ends", [&] { return sw::variables({{"ends", ends}}); }};
    reached = train(model, directory, batches(40), sw::every_epoch(count, state), sw::stop_at_epoch(12));
    for (const auto end : ends) { more += std::to_string(end); }
  } else if (feature == "best") {
    reached = train(model, directory, batches(12), sw::best_checkpoint_hook{{.keep = 2}, &polynomial::result::loss});
    more = best_in(directory);
  } else if (feature == "beside") {
    polynomial other;
    const auto tested = sw::evaluate_every({.every = 9, .log = false}, sw::beside(other), test_set, &polynomial::loss_of, loss);
    sw::early_stopping_hook stopping{tested.value("loss"), {.patience = 12}};
    reached = train(model, directory, batches(40), tested, sw::best_checkpoint_hook{tested.value("loss")}, std::ref(stopping),
                    sw::stop_at_step(500));
    more =
        fmt::format("{} {} {} {}", stopping.best_step().value(), bits_of({stopping.best().value()}), stopping.waited(), best_in(directory));
  } else {
    throw sw::invalid_argument_error("unknown feature " + feature);
  }
  std::printf("step %lld weights %s %s\n", static_cast<long long>(reached), bits_of(model.weights).c_str(), more.c_str());
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) { return 2; }
  try {
    run(words[1], words[2]);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "train_features: %s\n", failure.what());
    return 1;
  }
}
