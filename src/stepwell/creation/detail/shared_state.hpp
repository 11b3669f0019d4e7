// SPDX-License-Identifier: Apache-2.0
//
// Private: the state of a session, sent by rank 0 of a group to the other processes.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/group/group.hpp"

#include <cstdint>

namespace stepwell::detail {

/// Sends the values of `variables`, the state of `step`. Called by rank 0 while the other processes call `receive_state`.
/// @errors Those of `group::broadcast`.
/// @cost   No copy of variables of 64 KiB or more that lie in memory.
void send_state(group& to, const variable_list& variables, std::int64_t step);
/// Returns the state that rank 0 sends.
/// @errors Those of `group::broadcast`. `data_loss_error` if the received description is malformed. `resource_exhausted_error`.
[[nodiscard]] snapshot receive_state(group& from);

/// Returns a text with the names, types and shapes of `variables`.
[[nodiscard]] std::string structure_of(const variable_list& variables);

}  // namespace stepwell::detail
