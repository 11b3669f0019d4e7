// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/evaluating.hpp"

#include "stepwell/torch/detail/generators.hpp"

#include <torch/nn/module.h>

#include <cstddef>

namespace stepwell::libtorch {

// A projection sees the model as constant, although the mode of its modules can be changed and is restored.
evaluating::evaluating(const ::torch::nn::Module& module) {
  auto& outer = const_cast<::torch::nn::Module&>(module);
  modes_.emplace_back(&outer, outer.is_training());
  for (const auto& inner : outer.modules(false)) { modes_.emplace_back(inner.get(), inner->is_training()); }
  for (const auto& one : detail::generators()) { random_states_.push_back(detail::state_of(one.generator)); }
  outer.eval();
}

evaluating::~evaluating() {
  for (const auto& [module, was_training] : modes_) { module->train(was_training); }  // also sets inner modules, which follow
  const auto generators = detail::generators();
  for (std::size_t i = 0; i < random_states_.size(); ++i) { detail::set_state(generators[i].generator, random_states_[i]); }
}

}  // namespace stepwell::libtorch
