// SPDX-License-Identifier: Apache-2.0
//
// xtensor_group [RUN_DIR [LAST_STEP]]
// A linear regression with xtensor that several processes train, for example four on this machine, if stepwell was built with MPI:
//   mpirun -n 4 ./xtensor_group
// A tensor is given to the group as it is. Without a launcher, the same program trains alone.
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>
#include <stepwell/xtensor/xtensor.hpp>
#if GROUP_WITH_MPI
#include <stepwell/mpi/mpi.hpp>
#endif

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

struct example {
  std::array<double, 4> inputs;
  double target;
};

std::vector<example> weighted_sums(int count) {
  std::vector<example> made;
  for (int i = 0; i < count; ++i) {
    const std::array inputs{std::sin(i), std::cos(3.0 * i), std::sin(5.0 * i), 1.0};
    made.push_back({inputs, inputs[0] + 2 * inputs[1] - 3 * inputs[2] + 8});
  }
  return made;
}

struct regression {
  using vector = xt::xtensor<double, 1>;
  struct result {
    double loss;
  };

  std::shared_ptr<sw::group> group;
  vector weights = xt::zeros<double>({4});

  result step(const std::vector<example>& part) {
    vector sums = xt::zeros<double>({6});  // of the gradients, the squared errors, and the examples
    for (const auto& [inputs, target] : part) {
      double error = -target;
      for (std::size_t i = 0; i < inputs.size(); ++i) { error += weights(i) * inputs[i]; }
      for (std::size_t i = 0; i < inputs.size(); ++i) { sums(i) += 2 * error * inputs[i]; }
      sums(4) += error * error;
      sums(5) += 1;
    }
    group->sum(sums);
    weights -= 0.1 / sums(5) * xt::view(sums, xt::range(0, 4));
    return {sums(4) / sums(5)};
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}}); }
};

std::shared_ptr<sw::group> make_group([[maybe_unused]] int* argc, [[maybe_unused]] char*** argv) {
#if GROUP_WITH_MPI
  return sw::mpi::make_group(argc, argv);
#else
  return std::make_shared<sw::group>(sw::make_single_process_engine());
#endif
}

int train(const std::shared_ptr<sw::group>& group, const std::string& run_dir, std::int64_t last_step) {
  const auto examples = weighted_sums(400);
  regression model{group};
  auto batches = sw::data::shuffled_batches(sw::part_of(examples, group), {.batch_size = 40, .seed = 3});
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = run_dir, .group = group}, sw::stop_at_step(last_step));
  double loss = 0;
  for (const auto& step : session.steps(batches)) { loss = step.value.loss; }
  session.close();
  if (group->is_chief()) { std::printf("loss %.2g after %lld steps\n", loss, static_cast<long long>(session.global_step())); }
  return loss < 0.01 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const auto group = make_group(&count, &arguments);
    return train(group, count > 1 ? arguments[1] : "xtensor-group-run", count > 2 ? std::stoll(arguments[2]) : 200);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "xtensor_group: %s\n", failed.what());
    return 1;
  }
}
