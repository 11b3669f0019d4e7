// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's random generators as variables, and the warning about modules that are listed without them.
#include "stepwell/base/log.hpp"
#include "stepwell/torch/detail/copied_tensor.hpp"
#include "stepwell/torch/detail/generators.hpp"
#include "stepwell/torch/detail/random_layers.hpp"
#include "stepwell/torch/torch.hpp"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/StringUtil.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
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
  for (const auto& [type, name] : {std::pair(at::kCUDA, "cuda"), std::pair(at::kMPS, "mps"), std::pair(at::kXPU, "xpu")}) {
    const int devices = c10::impl::hasDeviceGuardImpl(type) ? c10::impl::VirtualGuardImpl(type).deviceCount() : 0;
    for (int i = 0; i < devices; ++i) {
      try {
        const auto device = at::Device(type, static_cast<c10::DeviceIndex>(i));
        all.push_back({name + std::to_string(i), at::globalContext().defaultGenerator(device)});
      } catch (const c10::Error&) { break; }  // earlier versions of LibTorch know no default generator of XPU
    }
  }
  return all;
}

at::Tensor detail::state_of(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

std::uint64_t detail::seed_of(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.current_seed();
}

void detail::set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

namespace {

struct generator_state {
  std::string name;
  std::uint64_t seed;
  at::Tensor state;
};

/// What is known of a module that was listed.
struct listed_module {
  std::uint64_t generators;             // `listed.generators` at the last list
  std::vector<generator_state> states;  // at the last list; empty if the model has listed the generators then
  int compared = 0;                     // lists for which states were compared
  bool is_warned = false;
};

/// The lists of modules, and of generators.
struct {
  std::mutex mutex;
  std::uint64_t generators = 0;  // calls of `note_generators`
  std::map<const void*, listed_module> modules;
} listed;

std::vector<generator_state> generator_states(bool only_cpu) {
  std::vector<generator_state> states;
  if (only_cpu) {
    const auto generator = at::globalContext().defaultGenerator(at::kCPU);
    states.push_back({"cpu", detail::seed_of(generator), detail::state_of(generator)});
  } else {
    for (const auto& [name, generator] : detail::generators()) {
      states.push_back({name, detail::seed_of(generator), detail::state_of(generator)});
    }
  }
  return states;
}

/// Returns the name of a generator from which numbers were drawn between two points in time, or an empty text.
std::string drawn_from(const std::vector<generator_state>& before, const std::vector<generator_state>& after) {
  if (before.size() != after.size()) { return {}; }
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].seed == after[i].seed && !at::equal(before[i].state, after[i].state)) { return before[i].name; }
  }
  return {};
}

template<class Layer>
double dropout_of(const ::torch::nn::Module& module) {
  const auto* const layer = dynamic_cast<const Layer*>(&module);
  return layer == nullptr ? 0 : layer->options.dropout();
}

bool is_random(const ::torch::nn::Module& module) {
  namespace nn = ::torch::nn;
  if (module.name().find("FractionalMaxPool") != std::string::npos) { return true; }
  if (!module.is_training()) { return false; }
  if (const auto* const dropout = dynamic_cast<const nn::DropoutImpl*>(&module)) { return dropout->options.p() > 0; }
  if (dropout_of<nn::LSTMImpl>(module) + dropout_of<nn::GRUImpl>(module) + dropout_of<nn::RNNImpl>(module) +
          dropout_of<nn::MultiheadAttentionImpl>(module) >
      0) {
    return true;
  }
  return module.name().find("Dropout") != std::string::npos || module.name().find("RReLU") != std::string::npos;
}

}  // namespace

std::string detail::random_layer(const ::torch::nn::Module& module) {
  if (is_random(module)) { return "the module itself, of type " + module.name(); }
  for (const auto& layer : module.named_modules({}, false)) {
    if (is_random(*layer.value())) { return c10::str("the layer \"", layer.key(), "\" of type ", layer.value()->name()); }
  }
  return {};
}

void detail::warn_without_generator(const void* module, bool is_on_cpu, function_ref<std::string()> find_layer) {
  constexpr int most_compared = 8;
  std::string drawing;
  {
    const std::lock_guard lock(listed.mutex);
    const auto [place, is_first] = listed.modules.try_emplace(module, listed_module{listed.generators, {}});
    auto& entry = place->second;
    if (entry.is_warned) { return; }
    if (entry.generators != listed.generators) {
      entry.generators = listed.generators;
      entry.states.clear();
      return;
    }
    if (!is_first) {
      if (const auto layer = find_layer(); !layer.empty()) { drawing = layer + " draws random numbers"; }
    }
    if (drawing.empty() && entry.compared < most_compared) {
      auto states = generator_states(is_on_cpu);
      if (const auto generator = drawn_from(entry.states, states); !generator.empty()) {
        drawing = "random numbers were drawn from the generator \"" + generator + "\" of LibTorch during the training";
      }
      if (!entry.states.empty()) { ++entry.compared; }
      entry.states = std::move(states);
    }
    if (drawing.empty()) { return; }
    entry.is_warned = true;
    entry.states.clear();
  }
  log_warning("libtorch::variables: " + drawing +
              ", but the model lists no random generator: a resumed run draws other numbers than an uninterrupted one; add {\"rng\", "
              "libtorch::rng()} to the variables of the model. If only an evaluation draws numbers, use libtorch::evaluating");
}

void detail::note_generators() {
  const std::lock_guard lock(listed.mutex);
  ++listed.generators;
}

variable_list rng() {
  detail::note_generators();
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
