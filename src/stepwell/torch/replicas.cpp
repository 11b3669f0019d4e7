// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/replicas.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/random.hpp"
#include "stepwell/torch/detail/random_layers.hpp"
#include "stepwell/torch/torch.hpp"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <map>
#include <vector>

namespace stepwell::libtorch {

namespace {

std::vector<at::Tensor> buffers_of(const ::torch::nn::Module& module) {
  auto all = module.buffers();
  for (const auto& one : all) {
    if (!one.device().is_cpu()) { throw invalid_argument_error("a buffer of the module is on " + one.device().str() + ", not on the CPU"); }
  }
  return all;
}

}  // namespace

void average_buffers(const ::torch::nn::Module& module, group& all) {
  if (all.size() == 1) { return; }
  const at::NoGradGuard without_gradients;
  std::map<at::ScalarType, std::vector<at::Tensor>> of_type;
  for (const auto& one : buffers_of(module)) {
    if (at::isFloatingType(one.scalar_type())) { of_type[one.scalar_type()].push_back(one); }
  }
  for (const auto& [type, buffers] : of_type) {
    std::vector<at::Tensor> flat;
    for (const auto& one : buffers) { flat.push_back(one.flatten()); }
    auto sum = at::cat(flat);
    all.sum(sum);
    sum.div_(all.size());
    std::int64_t begin = 0;
    for (const auto& one : buffers) {
      one.copy_(sum.narrow(0, begin, one.numel()).view(one.sizes()));
      begin += one.numel();
    }
  }
}

void broadcast_buffers(const ::torch::nn::Module& module, group& all) {
  if (all.size() == 1) { return; }
  const at::NoGradGuard without_gradients;
  for (const auto& one : buffers_of(module)) {
    auto copy = one.contiguous();
    all.broadcast(copy);
    if (!copy.is_same(one)) { one.copy_(copy); }
  }
}

void seed_generators(std::uint64_t seed, int rank, std::int64_t step) {
  detail::note_generators();
  at::manual_seed(random_bits(seed, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)));
}

}  // namespace stepwell::libtorch
