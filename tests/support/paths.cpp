// SPDX-License-Identifier: Apache-2.0
#include "support/paths.hpp"

namespace stepwell::test {

std::string golden(const std::string& name) { return STEPWELL_GOLDEN + name; }

std::string testdata_folder() { return STEPWELL_TESTDATA; }

}  // namespace stepwell::test
