// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/boundary.hpp"

namespace stepwell {

boundary_work::~boundary_work() = default;  // defined here, so that the virtual functions are compiled once

}  // namespace stepwell
