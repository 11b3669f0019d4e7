// SPDX-License-Identifier: Apache-2.0
//
// The words of a command, in the form that `exec` and `posix_spawn` take.
#pragma once

#include <string>
#include <vector>

namespace stepwell::test {

/// Returns pointers to the words, and a null pointer after them. @lifetime `words` must outlive the pointers.
inline std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) { all.push_back(word.data()); }
  all.push_back(nullptr);
  return all;
}

}  // namespace stepwell::test
