// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/boundary.hpp"

namespace stepwell {

boundary_work::~boundary_work() = default;  // here, so that its functions are compiled once

}  // namespace stepwell
