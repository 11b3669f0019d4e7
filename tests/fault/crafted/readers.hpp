// SPDX-License-Identifier: Apache-2.0
//
// Runs all readers of a run directory on a directory that may be crafted.
#pragma once

#include <string>

namespace stepwell::test {

/// Runs restore, savers, writers that continue existing files, and the commands of the tool. Returns a description of
/// each violation: an exception that is not a `stepwell::error`, a terminal control byte, a good checkpoint that was
/// not found. Returns an empty text if there is no violation.
std::string run_readers(const std::string& directory);

}  // namespace stepwell::test
