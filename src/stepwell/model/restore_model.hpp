// SPDX-License-Identifier: Apache-2.0
//
// Restores a model from a snapshot or a checkpoint, without a session.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/model/model_traits.hpp"

#include <concepts>
#include <type_traits>

namespace stepwell {

/// A type that can be restored: it lists its variables. It need not be trainable.
template<class Model>
concept restorable_model = std::is_class_v<Model> && requires(Model& model) {
  { model.variables() } -> std::same_as<variable_list>;
};

/// Restores the variables of `model`, and its global step if the model counts its steps itself.
/// @errors  Those of `restore` for variables: `not_found_error`, `invalid_argument_error`; nothing is written in these cases.
/// @threads `model` must not be used by another thread during the call.
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
