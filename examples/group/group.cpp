// SPDX-License-Identifier: Apache-2.0
//
// group [RUN_DIR [LAST_STEP [KILLED_RANK KILLED_AT]]]
// Trains one model with several processes, for example with four on this machine, if stepwell was built with MPI:
//   mpirun -n 4 ./group
// Without a launcher, the same program trains alone. 1, 2 and 4 processes give the same bits, because each batch is divided into four fixed
// parts. The last arguments kill one process after that step, once. MPI then ends the job; the same command continues it.
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>
#if GROUP_WITH_MPI
#include <stepwell/mpi/mpi.hpp>
#endif

#include <array>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

struct example {
  double x, y;
};

std::vector<example> noisy_wave(int count) {
  std::vector<example> made;
  for (int i = 0; i < count; ++i) {
    const double x = 2.0 * i / count - 1;
    made.push_back({x, std::sin(3 * x) + 0.05 * std::cos(97.0 * i)});
  }
  return made;
}

/// Fits y = w0 + w1 x + w2 x^2 + w3 x^3.
class cubic {
public:
  struct result {
    double loss;
  };
  explicit cubic(std::shared_ptr<sw::group> group) : sums_(std::move(group), weights_.size() + 2) {}

  result step(const std::vector<sw::batch_part<std::vector<example>>>& parts) {
    sums_.clear();
    for (const auto& [index, batch] : parts) {
      const auto sum = sums_.part(index);  // of the gradients, the squared errors, and the examples
      for (const auto& [x, y] : batch) {
        const std::array powers{1.0, x, x * x, x * x * x};
        double error = -y;
        for (std::size_t i = 0; i < powers.size(); ++i) { error += weights_[i] * powers[i]; }
        for (std::size_t i = 0; i < powers.size(); ++i) { sum[i] += 2 * error * powers[i]; }
        sum[4] += error * error;
        sum[5] += 1;
      }
    }
    const auto total = sums_.sum();  // the only line for many machines
    for (std::size_t i = 0; i < weights_.size(); ++i) { weights_[i] -= 0.2 * total[i] / total[5]; }
    return {total[4] / total[5]};
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights_}}); }

  [[nodiscard]] std::uint64_t bits() const {
    std::uint64_t hash = 0;
    for (const auto weight : weights_) { hash = (hash ^ std::bit_cast<std::uint64_t>(weight)) * 1'099'511'628'211U; }
    return hash;
  }

private:
  std::array<double, 4> weights_{};
  sw::part_sums<double> sums_;
};

std::shared_ptr<sw::group> make_group([[maybe_unused]] int* argc, [[maybe_unused]] char*** argv) {
#if GROUP_WITH_MPI
  return sw::mpi::make_group(argc, argv, {.timeout_secs = 20, .parts = 4});
#else
  return std::make_shared<sw::group>(sw::make_single_process_engine(), sw::group_options{.parts = 4});
#endif
}

void kill_once(const std::string& run_dir) {
  const auto mark = run_dir + ".killed";
  if (std::filesystem::exists(mark)) { return; }
  std::ofstream{mark}.flush();
  std::raise(SIGKILL);
}

void train(const std::shared_ptr<sw::group>& group, const std::string& run_dir, std::int64_t last_step, int killed_rank,
           std::int64_t killed_at) {
  const auto examples = noisy_wave(1000);
  cubic model(group);
  auto batches = sw::data::shuffled_batches(sw::parts_of(examples, group), {.batch_size = 40, .seed = 3});
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = run_dir, .saves = {.save_steps = 50}, .group = group},
                                                sw::stop_at_step(last_step));
  for (const auto& step : session.steps(batches)) {
    if (group->is_chief() && step.global_step % 50 == 0) {
      std::printf("step %lld loss %.5f\n", static_cast<long long>(step.global_step), step.value.loss);
    }
    if (step.global_step == killed_at && group->rank() == killed_rank) { kill_once(run_dir); }
  }
  session.close();
  if (!group->is_chief()) { return; }
  std::printf("trained %lld steps, bits %016llx\n", static_cast<long long>(session.global_step()),
              static_cast<unsigned long long>(model.bits()));
}

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    const auto group = make_group(&count, &arguments);
    train(group, count > 1 ? arguments[1] : "group-run", count > 2 ? std::stoll(arguments[2]) : 200,
          count > 3 ? std::stoi(arguments[3]) : -1, count > 4 ? std::stoll(arguments[4]) : -1);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "group: %s\n", failed.what());
    return 1;
  }
}
