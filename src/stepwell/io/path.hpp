// SPDX-License-Identifier: Apache-2.0
//
// Operations on paths as strings.
#pragma once

#include <string>
#include <string_view>

namespace stepwell::io {

/// Returns the path of `name` in `directory`: "run/model.ckpt-3.index" for "run" and "model.ckpt-3.index".
[[nodiscard]] inline std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') { path.push_back('/'); }
  return path.append(name);
}

/// Returns the directory of `path`: "run" for "run/a", "." for "a", "/" for "/a".
[[nodiscard]] inline std::string parent_directory(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') { path.remove_suffix(1); }
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) { return "."; }
  const auto end = path.find_last_not_of('/', slash);
  return end == std::string_view::npos ? "/" : std::string(path.substr(0, end + 1));
}

/// Returns the last component of `path`: "a" for "run/a".
[[nodiscard]] inline std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') { path.remove_suffix(1); }
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace stepwell::io
