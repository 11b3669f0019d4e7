// SPDX-License-Identifier: Apache-2.0
//
// Listings of a checkpoint directory, and a file system for savers under test.
#pragma once

#include "support/fault_file_system.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/detail/unsynced_file_system.hpp>
#include <stepwell/io/file_system.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::test {

/// Returns the sorted names in a directory, joined by spaces, without the lock file.
inline std::string names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) { names.push_back(entry.path().filename().string()); }
  std::ranges::sort(names);
  std::string joined;
  for (const auto& name : names) {
    if (name != ".stepwell.lock") { joined += (joined.empty() ? "" : " ") + name; }
  }
  return joined;
}

/// Returns only the steps of the index files, such as "1 2".
inline std::string steps_in(const std::string& directory, const std::string& basename = "model.ckpt") {
  std::vector<long> steps;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(basename + "-") && name.ends_with(".index")) { steps.push_back(std::stol(name.substr(basename.size() + 1))); }
  }
  std::ranges::sort(steps);
  std::string joined;
  for (const auto step : steps) { joined += (joined.empty() ? "" : " ") + std::to_string(step); }
  return joined;
}

/// Returns a file system that fails on demand and counts syncs, but never waits for a disk.
inline std::shared_ptr<fault_file_system> fast_faulty_files() {
  return std::make_shared<fault_file_system>(std::make_shared<stepwell::detail::unsynced_file_system>(io::posix_file_system()));
}

}  // namespace stepwell::test
