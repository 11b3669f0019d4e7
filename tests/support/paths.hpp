// SPDX-License-Identifier: Apache-2.0
//
// The folders of files that tests read. Only paths.cpp knows where they are: so no other file has to be compiled again in another clone.
#pragma once

#include <string>

namespace stepwell::test {

/// Returns the path of a file in tests/golden, such as golden("/format/events.bin").
std::string golden(const std::string& name);

/// Returns the folder of real TensorFlow files, which need not exist.
std::string testdata_folder();

}  // namespace stepwell::test
