// SPDX-License-Identifier: Apache-2.0
//
// A hook that sets the learning rate of an optimiser of LibTorch.
#pragma once

#include "stepwell/hooks/scheduled_hook.hpp"
#include "stepwell/schedules/schedules.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

namespace stepwell::libtorch {

/// Sets the learning rate of parameter groups of an optimiser.
/// @lifetime The optimiser must outlive this object.
class learning_rate {
public:
  /// `groups`: the indices of the parameter groups. Empty: all groups.
  /// @errors `invalid_argument_error` if the optimiser has no group of such a number.
  explicit learning_rate(::torch::optim::Optimizer& optimizer, std::vector<std::size_t> groups = {});
  void operator()(double rate) const;

private:
  ::torch::optim::Optimizer* optimizer_;
  std::vector<std::size_t> groups_;
};

/// Returns a hook that sets the learning rate before each run to `schedule(step)`, like `stepwell::scheduled`:
///
///     scheduled(model.optimizer, schedules::cosine_decay({.initial = 1e-3, .decay_steps = 1000}))
///
/// A resumed run computes the same rates from the steps. `groups` are the indices of the parameter groups whose rate is set. If it is
/// empty, the rate of all groups is set.
/// @errors   Those of `learning_rate`.
/// @lifetime The optimiser must outlive the session.
template<schedules::schedule Schedule>
[[nodiscard]] scheduled_hook<learning_rate, Schedule> scheduled(::torch::optim::Optimizer& optimizer, Schedule schedule,
                                                                std::vector<std::size_t> groups = {}) {
  return stepwell::scheduled(learning_rate(optimizer, std::move(groups)), std::move(schedule));
}

}  // namespace stepwell::libtorch
