// SPDX-License-Identifier: Apache-2.0
//
// The folder of real TensorFlow files. The folder is not part of the project; without it a test prints a warning and is
// skipped.
#pragma once

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>

namespace stepwell::test {

/// Returns the path of `name` in the folder. If the folder does not exist, prints a warning and returns an empty path;
/// the test must return then.
inline std::string testdata(std::string_view name) {
  const auto path = std::filesystem::path(testdata_folder()) / name;
  if (std::filesystem::exists(std::filesystem::path(testdata_folder()) / "manifest.json")) { return path.string(); }
  WARN("SKIPPED: no TensorFlow files at " << testdata_folder() << "; configure with -DSTEPWELL_TESTDATA=DIR to run this");
  return {};
}

/// Returns the name by which the expectations in the folder call a type. `name` is that of `to_string(dtype)`.
inline std::string tensorflow_name(std::string_view name) {
  if (name == "float32") { return "DT_FLOAT"; }
  if (name == "float64") { return "DT_DOUBLE"; }
  if (name == "float16") { return "DT_HALF"; }
  auto upper = "DT_" + std::string(name);
  for (auto& letter : upper) { letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter))); }
  return upper;
}

}  // namespace stepwell::test
