// SPDX-License-Identifier: Apache-2.0
//
// Restores a complete session from a checkpoint: model, hooks, and sources.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/creation/detail/source_positions.hpp"

namespace stepwell {

/// Restores all variables of the model, the variables of hooks that the checkpoint has, and the positions of sources, which are applied to
/// the sources later. Checks everything before it writes anything. Hook state that the checkpoint lacks keeps its initial value, and a
/// warning is logged. Entries of the checkpoint that belong to no variable are ignored, and listed in the log.
/// @errors `unimplemented_error` if our entries were written by a later library; those of `restore`: a missing or mismatching variable,
///   named; damaged data.
void restore_state(const checkpoint_reader& source, const variable_list& model, const variable_list& hooks, source_positions& positions);

}  // namespace stepwell
