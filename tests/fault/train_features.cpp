// SPDX-License-Identifier: Apache-2.0
//
// train_features FEATURE DIRECTORY: trains a small model with one feature of sessions, and prints the result in one line: every bit of the
// model, the decisions of the hooks, and the best checkpoint. A run that is killed and started again must print the same line. With the
// prefix "awaited_", a feature is trained by an awaited session, which must also print the same line.
#include "support/both_ways.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
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
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;

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
    const auto found = compute(batch);
    apply(found);
    return {found.loss};
  }
  struct gradients {
    double loss = 0;
    std::vector<double> of_weights = std::vector<double>(6, 0.0);
  };
  [[nodiscard]] gradients compute(const std::vector<sample>& batch) const {
    ::usleep(300);  // so that the process can be killed in the middle
    gradients found;
    for (const auto& at : batch) {
      const double error = error_of(at);
      found.loss += error * error / static_cast<double>(batch.size());
      double power = 1;
      for (auto& one : found.of_weights) {
        one += error * power / static_cast<double>(batch.size());
        power *= at.x;
      }
    }
    return found;
  }
  void apply(const gradients& found) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      momentum[i] = 0.9 * momentum[i] - 0.08 * found.of_weights[i];
      weights[i] += momentum[i];
    }
  }
  [[nodiscard]] double loss_of(const sample& at) const {
    const double error = error_of(at);
    return error * error;
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}, {"momentum", momentum}}); }
};

/// The same model with 36 MiB more, of which each step changes some elements. Snapshots of this size are copied by several threads.
struct large_polynomial : polynomial {
  std::vector<float> ballast = std::vector<float>(std::size_t{9} << 20, 0.0F);
  std::int64_t count = 0;

  void change_ballast() {
    for (std::size_t i = static_cast<std::size_t>(++count * 4099); i < ballast.size(); i += std::size_t{1} << 18) { ballast[i] += 1; }
  }
  result step(const std::vector<sample>& batch) {
    change_ballast();
    return polynomial::step(batch);
  }
  sw::variable_list variables() {
    return sw::variables({{"weights", weights}, {"momentum", momentum}, {"ballast", ballast}, {"count", count}});
  }
};

/// The large model with a fence: its gradients are computed while a snapshot is copied. The count changes before the fence.
struct fenced_polynomial : large_polynomial {
  std::int64_t early_count = 0;

  result step(const std::vector<sample>& batch, sw::update_fence& fence) {
    ++early_count;
    const auto found = compute(batch);
    fence.wait();
    apply(found);
    change_ballast();
    return {found.loss};
  }
  sw::variable_list variables() {
    auto all = large_polynomial::variables();
    all.push_back(sw::variable_ref("early_count", early_count).early());
    return all;
  }
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

sw::training_options saving_in(const std::string& directory) {
  return {.checkpoint_dir = directory,
          .saves = {.save_steps = 7},
          .summaries = {.save_steps = 10},
          .step_counter = {.every_n_steps = sw::none}};
}

constexpr std::string_view awaited_prefix = "awaited_";

/// Trains a model whose saves have the options of `feature`, and returns the result.
template<class Model, class Source>
std::string run_saving(sw::training_options options, const std::string& feature, Source batches) {
  Model model;
  options.check_update_fence = true;
  constexpr std::size_t two_large = std::size_t{80} << 20;
  if (feature.ends_with("staged")) {
    options.saves.saver = {.max_to_keep = 2, .max_staged_bytes = two_large, .when_busy = sw::when_busy::coalesce};
  }
  if (feature == "overhead") {
    options.saves.save_steps = sw::none;
    options.saves.save_overhead = 0.5;
    options.saves.save_interval = {.min_interval = 0.001, .max_interval = 0.02};
  }
  const auto reached = sw::test::train_blocking(model, options, batches, 0).global_step;
  return fmt::format("step {} checksum {:08x}", reached, sw::checksum(model.variables()));
}

void run(std::string feature, const std::string& directory) {
  const bool is_awaited = feature.starts_with(awaited_prefix);
  if (is_awaited) { feature.erase(0, awaited_prefix.size()); }
  static const auto train_set = samples(0, 200);
  static const auto test_set = samples(200, 240);
  const auto batches = [](std::uint64_t epochs) {
    return sw::data::shuffled_batches(train_set, {.batch_size = 8, .seed = 7, .epochs = epochs});
  };
  const auto loss = sw::measure("loss", sw::metrics::mean(), [](double value) { return value; });
  if (feature == "overhead") {
    return static_cast<void>(std::puts(run_saving<polynomial>(saving_in(directory), feature, batches(12)).c_str()));
  }
  if (feature.starts_with("large")) {
    return static_cast<void>(std::puts(run_saving<large_polynomial>(saving_in(directory), feature, batches(4)).c_str()));
  }
  if (feature.starts_with("fence")) {
    return static_cast<void>(std::puts(run_saving<fenced_polynomial>(saving_in(directory), feature, batches(4)).c_str()));
  }
  polynomial model;
  std::int64_t reached = 0;
  std::string more;
  // Trains to the end of `source`, or until a hook requests a stop.
  const auto train = [&](auto source, auto... hooks) {
    const auto way = is_awaited ? sw::test::session_way::awaited : sw::test::session_way::blocking;
    reached = sw::test::train(way, model, saving_in(directory), source, 0, std::move(hooks)...).global_step;
  };
  if (feature == "prefetch") {
    train(sw::data::prefetch(batches(12), {.threads = 2, .depth = 4}));
  } else if (feature == "epochs") {
    std::vector<std::int64_t> ends(64, 0);  // the number of calls at the end of each epoch
    const auto count = [&](std::uint64_t epoch) { ++ends.at(epoch); };
    const auto state = sw::saved_state{"ends", [&] { return sw::variables({{"ends", ends}}); }};
    train(batches(40), sw::every_epoch(count, state), sw::stop_at_epoch(12));
    for (const auto end : ends) { more += std::to_string(end); }
  } else if (feature == "best") {
    train(batches(12), sw::best_checkpoint_hook{{.keep = 2}, &polynomial::result::loss});
    more = best_in(directory);
  } else if (feature == "beside") {
    polynomial other;
    const auto tested = sw::evaluate_every({.every = 9, .log = false}, sw::beside(other), test_set, &polynomial::loss_of, loss);
    sw::early_stopping_hook stopping{{.patience = 12}, tested.value("loss")};
    train(batches(40), tested, sw::best_checkpoint_hook{tested.value("loss")}, std::ref(stopping), sw::stop_at_step(500));
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
