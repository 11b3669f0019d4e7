// SPDX-License-Identifier: Apache-2.0
//
// A temporary directory, removed with its object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace stepwell::test {

class temporary_directory {
public:
  temporary_directory() : path_((std::filesystem::temp_directory_path() / "stepwell-test-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "could not make a temporary directory " + path_);
    }
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Returns the path of `name` inside the directory.
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

private:
  std::string path_;
};

}  // namespace stepwell::test
