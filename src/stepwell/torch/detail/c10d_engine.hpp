// SPDX-License-Identifier: Apache-2.0
//
// Private: the engine over c10d.
#pragma once

#include "stepwell/group/detail/launcher.hpp"
#include "stepwell/group/engine.hpp"

#include <chrono>
#include <memory>

namespace stepwell::libtorch::detail {

/// Returns an engine over `TCPStore` and `ProcessGroupGloo`. `timeout` is the limit of a sum.
/// @pre `self` has a host and a port.
[[nodiscard]] std::unique_ptr<engine> make_c10d_engine(const launched_process& self, std::chrono::milliseconds timeout);

}  // namespace stepwell::libtorch::detail
