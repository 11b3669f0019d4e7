// SPDX-License-Identifier: Apache-2.0
//
// From a checkpoint back into a whole session: model, hooks, and sources.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/creation/detail/source_positions.hpp"

namespace stepwell {

/// Fills the model's variables (all of them) and the hooks' (those the checkpoint has), and makes the sources' positions
/// due. Everything is checked before anything is written.
/// Hook state the checkpoint lacks stays fresh, with a warning; what nobody claims is ignored, with a note.
/// @errors `unimplemented_error` for notes of ours from a later library; those of `restore`: a missing or mismatching variable, named; damaged data.
void restore_state(const checkpoint_reader& source, const variable_list& model, const variable_list& hooks, source_positions& positions);

}  // namespace stepwell
