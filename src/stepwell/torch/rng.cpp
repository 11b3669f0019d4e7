// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's random generators as variables, and the warning about modules that are listed without them.
#include "stepwell/base/log.hpp"
#include "stepwell/torch/detail/copied_tensor.hpp"
#include "stepwell/torch/detail/generators.hpp"
#include "stepwell/torch/detail/random_layers.hpp"
#include "stepwell/torch/torch.hpp"

#include <ATen/Context.h>
#include <c10/util/StringUtil.h>
#include <torch/cuda.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::libtorch {

std::vector<detail::named_generator> detail::generators() {
  std::vector<named_generator> all;
  all.push_back({"cpu", at::globalContext().defaultGenerator(at::kCPU)});
  const auto devices = static_cast<std::size_t>(::torch::cuda::device_count());  // of another type in each version of LibTorch
  for (std::size_t i = 0; i < devices; ++i) {
    const auto device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(i));
    all.push_back({"cuda" + std::to_string(i), at::globalContext().defaultGenerator(device)});
  }
  return all;
}

at::Tensor detail::state_of(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void detail::set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

namespace {

/// The lists of modules with random layers, and of generators.
struct {
  std::mutex mutex;
  std::uint64_t generators = 0;                // calls of `rng`
  std::map<const void*, std::uint64_t> lists;  // of each module: `generators` at its last list, or `warned`
} listed;
constexpr auto warned = ~std::uint64_t{0};

template<class Layer>
double dropout_of(const ::torch::nn::Module& module) {
  const auto* const layer = dynamic_cast<const Layer*>(&module);
  return layer == nullptr ? 0 : layer->options.dropout();
}

bool is_random(const ::torch::nn::Module& module) {
  namespace nn = ::torch::nn;
  if (!module.is_training()) { return false; }
  if (const auto* const dropout = dynamic_cast<const nn::DropoutImpl*>(&module)) { return dropout->options.p() > 0; }
  if (dropout_of<nn::LSTMImpl>(module) + dropout_of<nn::GRUImpl>(module) + dropout_of<nn::RNNImpl>(module) > 0) { return true; }
  return module.name().find("Dropout") != std::string::npos || module.name().find("RReLU") != std::string::npos;
}

/// Returns the name and the type of a layer that draws random numbers, or nothing.
std::string random_layer(const ::torch::nn::Module& module) {
  if (is_random(module)) { return "the module itself, of type " + module.name(); }
  for (const auto& layer : module.named_modules({}, false)) {
    if (is_random(*layer.value())) { return c10::str("the layer \"", layer.key(), "\" of type ", layer.value()->name()); }
  }
  return {};
}

}  // namespace

void detail::warn_without_generator(const ::torch::nn::Module& module) {
  const auto layer = random_layer(module);
  if (layer.empty()) { return; }
  {
    const std::lock_guard lock(listed.mutex);
    const auto [entry, is_first] = listed.lists.try_emplace(&module, listed.generators);
    if (entry->second == warned) { return; }
    const bool is_without = !is_first && entry->second == listed.generators;
    entry->second = is_without ? warned : listed.generators;
    if (!is_without) { return; }
  }
  log_warning(c10::str("libtorch::variables: ", layer,
                       " draws random numbers, but the model lists no random generator: a resumed run draws other numbers than an "
                       "uninterrupted one; add {\"rng\", libtorch::rng()} to the variables of the model"));
}

variable_list rng() {
  {
    const std::lock_guard lock(listed.mutex);
    ++listed.generators;
  }
  variable_list list;
  for (const auto& [name, generator] : detail::generators()) {
    const auto size = detail::state_of(generator).numel();
    const auto elements = std::make_shared<detail::copied_tensor>(
        tensor_view{dtype::uint8, {size}, {}}, at::kByte, [generator = generator] { return detail::state_of(generator); },
        [generator = generator](const at::Tensor& state) { detail::set_state(generator, state.clone()); });
    list.emplace_back(name, elements);
    if (name != "cpu") { list.back() = list.back().optional(); }
  }
  return list;
}

}  // namespace stepwell::libtorch
