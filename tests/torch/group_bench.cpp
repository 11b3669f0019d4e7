// SPDX-License-Identifier: Apache-2.0
//
// The time of group->sum, as the first sum of a step with the vote, beside that of ProcessGroupGloo::allreduce itself, measured in pairs. All
// ranks run this program:
//   RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 torch_group_bench [PAIRS] & RANK=1 ...
#include "stepwell/torch/detail/gloo.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "stepwell/group/detail/launcher.hpp"
#include "stepwell/torch/group.hpp"
#include "stepwell/torch/torch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

namespace sw = stepwell;

namespace {

c10::intrusive_ptr<c10d::ProcessGroupGloo> bare_group(const sw::launched_process& self) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(self.port + 1);
  options.isServer = self.rank == 0;
  options.waitWorkers = false;
  auto store = c10::make_intrusive<c10d::TCPStore>(self.host, options);
  auto gloo = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
  gloo->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
  gloo->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, self.rank, self.size, gloo);
}

template<class Call>
double microseconds(Call call) {
  const auto begun = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void compare(sw::group& group, c10d::ProcessGroupGloo& bare, std::size_t count, int pairs) {
  std::int64_t step = 0;
  group.form({.time = sw::system_clock(), .stop = {}, .until = sw::system_clock()->now() + std::chrono::seconds(60)},
             {.running_step = [&] { return std::optional(step); }, .stop = {}});
  auto values = at::zeros({static_cast<std::int64_t>(count)});  // allocated like the other one
  const auto tensor = at::zeros({static_cast<std::int64_t>(count)});
  std::vector<double> with, without, differences;
  for (int i = 0; i < pairs + 20; ++i) {
    double one = 0;
    double other = 0;
    const auto sum = [&] { one = microseconds([&] { group.sum(values), ++step; }); };
    const auto reduce = [&] {
      other = microseconds([&] {
        std::vector<at::Tensor> tensors{tensor};
        bare.allreduce(tensors)->wait();
      });
    };
    if (i % 2 == 0) {
      sum(), reduce();
    } else {
      reduce(), sum();
    }
    if (i < 20) { continue; }
    with.push_back(one);
    without.push_back(other);
    differences.push_back(one - other);
  }
  if (group.rank() != 0) { return; }
  std::printf("%zu floats, %d processes, %d pairs: group->sum %.1f us, allreduce %.1f us, median difference %.2f us (%.2f %%)\n", count,
              group.size(), pairs, median(with), median(without), median(differences), 100 * median(differences) / median(without));
}

}  // namespace

int main(int argc, char** argv) {
  const auto self = sw::find_launcher();
  if (!self || self->size == 1) { return 2; }
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 2000;
  const auto group = sw::libtorch::make_group();
  const auto bare = bare_group(*self);
  compare(*group, *bare, 1000, pairs);
  compare(*group, *bare, 1'000'000, pairs / 4);
}
