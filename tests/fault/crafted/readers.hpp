// SPDX-License-Identifier: Apache-2.0
//
// Everything that reads a run directory, run over one that may be crafted.
#pragma once

#include <string>

namespace stepwell::test {

/// Runs restore, savers, writers that go on with files, and the commands of the tool. Returns what they did that they must not:
/// an exception that is no `stepwell::error`, a control byte for a terminal, a good checkpoint that was not found. Empty if
/// nothing.
std::string run_readers(const std::string& directory);

}  // namespace stepwell::test
