// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes whole files without the library under test.
#pragma once

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace stepwell::test {

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) { throw std::runtime_error("a test cannot read " + path); }
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Writes a new file. It removes an existing file first, because some file systems wait for the disk when a file is
/// truncated and rewritten.
inline void write_file_text(const std::string& path, const std::string& text) {
  std::remove(path.c_str());
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!out.flush()) { throw std::runtime_error("a test cannot write " + path); }
}

}  // namespace stepwell::test
