// SPDX-License-Identifier: Apache-2.0
#include "tool/target.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <string_view>
#include <utility>

namespace stepwell::tool {
namespace {

constexpr std::string_view index_suffix = ".index";
constexpr int deepest = 16;  // maximum depth of directories, because a link may form a cycle

bool is_event_file(std::string_view name) noexcept { return name.find("tfevents") != std::string_view::npos; }

void find_event_files(const console& to, const std::string& directory, int depth, std::vector<std::string>& found) {
  std::vector<std::string> below;
  for (const auto& name : value_or_throw(to.files->list(directory))) {
    auto path = io::join_path(directory, name);
    const auto info = to.files->stat(path);
    if (!info) { continue; }  // deleted, or a dangling link
    if (info->is_directory) {
      below.push_back(std::move(path));
    } else if (is_event_file(name)) {
      found.push_back(std::move(path));
    }
  }
  if (depth == 0) { return; }
  for (const auto& inner : below) { find_event_files(to, inner, depth - 1, found); }
}

}  // namespace

bool is_directory(const console& to, const std::string& path) {
  const auto info = to.files->stat(path);
  return info && info->is_directory;
}

void require_directory(const console& to, const std::string& path) {
  const auto info = to.files->stat(path);
  if (!info) { throw not_found_error("there is no such directory", path); }
  if (!info->is_directory) { throw not_found_error("this is a file; give the directory of the run", path); }
}

std::optional<std::string> checkpoint_prefix(const console& to, const std::string& path) {
  if (value_or_throw(to.files->exists(format::index_name(path)))) { return path; }
  if (path.ends_with(index_suffix) && value_or_throw(to.files->exists(path))) { return path.substr(0, path.size() - index_suffix.size()); }
  if (const auto data = stepwell::detail::parse_data_name(path)) {
    if (value_or_throw(to.files->exists(format::index_name(data->prefix)))) { return std::string(data->prefix); }
  }
  return std::nullopt;
}

std::vector<std::string> indexes_in(const console& to, const std::string& directory) {
  std::vector<std::string> prefixes;
  for (const auto& name : value_or_throw(to.files->list(directory))) {
    if (name.size() > index_suffix.size() && name.ends_with(index_suffix) && !io::is_temporary_name(name)) {
      prefixes.push_back(io::join_path(directory, name.substr(0, name.size() - index_suffix.size())));
    }
  }
  std::ranges::sort(prefixes, {}, [](const auto& prefix) { return std::pair(step_of_checkpoint(prefix).value_or(-1), prefix); });
  return prefixes;
}

std::optional<std::string> newest_checkpoint(const console& to, const std::string& directory) {
  if (const auto newest = latest_checkpoint(directory, to.files)) { return newest; }
  const auto ours = detail::find_unlisted(to.files, directory, default_checkpoint_basename, std::nullopt).older;
  return ours.empty() ? std::nullopt : std::optional(ours.back());
}

std::string require_checkpoint(const console& to, const std::string& path) {
  if (const auto prefix = checkpoint_prefix(to, path)) { return *prefix; }
  if (!is_directory(to, path)) {
    throw not_found_error(
        "there is no such checkpoint or directory; give a prefix like \"run/model.ckpt-500\", or the "
        "directory",
        path);
  }
  if (const auto newest = newest_checkpoint(to, path)) { return *newest; }
  const auto all = indexes_in(to, path);
  if (all.size() == 1) { return all.front(); }
  if (all.empty()) { throw not_found_error("there is no checkpoint in this directory", path); }
  throw not_found_error(
      fmt::format("the newest of its {} checkpoints is unknown without a state file; give one of them, e.g. {}", all.size(), all.back()),
      path);
}

std::vector<std::string> event_files_in(const console& to, const std::string& directory, bool recursive) {
  std::vector<std::string> found;
  find_event_files(to, directory, recursive ? deepest : 0, found);
  return found;
}

std::vector<std::string> require_event_files(const console& to, const std::string& path, bool recursive, std::string_view hint) {
  if (!value_or_throw(to.files->stat(path)).is_directory) { return {path}; }
  auto found = event_files_in(to, path, recursive);
  if (!found.empty()) { return found; }
  const auto below = recursive ? std::vector<std::string>() : event_files_in(to, path, true);
  if (below.empty()) { throw not_found_error("there are no event files in this directory or below it", path); }
  throw not_found_error(fmt::format("there are no event files in this directory, only below it, for example in {}; give that directory{}",
                                    io::parent_directory(below.front()), hint),
                        path);
}

std::uint64_t size_on_disk(const console& to, const std::string& prefix) {
  const auto directory = io::parent_directory(prefix);
  const auto begin = io::base_name(prefix) + ".";
  std::uint64_t bytes = 0;
  for (const auto& name : value_or_throw(to.files->list(directory))) {
    const auto rest = name.starts_with(begin) ? std::string_view(name).substr(begin.size()) : std::string_view();
    if (rest != "index" && rest != "meta" && !rest.starts_with("data-")) { continue; }
    if (const auto info = to.files->stat(io::join_path(directory, name))) { bytes += info->size; }
  }
  return bytes;
}

}  // namespace stepwell::tool
