// SPDX-License-Identifier: Apache-2.0
//
// From a snapshot, or a checkpoint, into a model; needs no session.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/model/model_traits.hpp"

#include <concepts>
#include <type_traits>

namespace stepwell {

/// What can be restored: it names its variables. Whether it can be trained does not matter.
template<class Model>
concept restorable_model = std::is_class_v<Model> && requires(Model& model) {
  { model.variables() } -> std::same_as<variable_list>;
};

/// Fills the variables of `model`, and its global step where it counts that itself.
/// @errors  Those of `restore` for variables: `not_found_error`, `invalid_argument_error`; then nothing was written.
/// @threads Nobody else uses `model` meanwhile.
template<restorable_model Model>
restore_report restore(Model& model, const snapshot& source, const restore_options& options = {}) {
  auto report = restore(model.variables(), source, options);
  if constexpr (owns_global_step<Model>) { model.global_step() = source.step(); }
  return report;
}
template<restorable_model Model>
restore_report restore(Model& model, const checkpoint_reader& source, const restore_options& options = {}) {
  auto report = restore(model.variables(), source, options);
  if constexpr (owns_global_step<Model>) { model.global_step() = source.step().value_or(0); }
  return report;
}

}  // namespace stepwell
