// SPDX-License-Identifier: Apache-2.0
#include "tool/target.hpp"

#include "stepwell/base/detail/host_name.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/array_file.hpp"
#include "stepwell/checkpoint/detail/beside_writer.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/detail/lock_content.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/summary/detail/event_stream.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace stepwell::tool {
namespace {

/// The names of one directory.
struct listing {
  std::vector<std::string> event_files;  ///< Paths.
  std::vector<std::string> directories;  ///< Paths. Links are last, so that a directory is preferred to a link to it.
};

listing list_names(const console& to, const std::string& directory) {
  listing made;
  std::vector<std::string> links;
  const auto canonical = value_or_throw(to.files->canonical(directory));
  for (const auto& name : value_or_throw(to.files->list(directory))) {
    auto path = io::join_path(directory, name);
    const auto info = to.files->stat(path);
    if (!info) { continue; }  // deleted, or a dangling link
    if (info->is_directory) {
      (is_no_link(to, canonical, name) ? made.directories : links).push_back(std::move(path));
    } else if (summary::is_event_file(name)) {
      made.event_files.push_back(std::move(path));
    }
  }
  std::ranges::move(links, std::back_inserter(made.directories));
  return made;
}

/// Adds the event files of a directory and those below it. `visited` has the canonical paths of the directories that were searched.
void find_event_files(const console& to, const std::string& directory, std::set<std::string>& visited, std::vector<std::string>& found) {
  const auto canonical = to.files->canonical(directory);
  if (!canonical || !visited.insert(*canonical).second) { return; }
  auto inside = list_names(to, directory);
  std::ranges::move(inside.event_files, std::back_inserter(found));
  for (const auto& below : inside.directories) { find_event_files(to, below, visited, found); }
}

/// Returns a directory below `directory` that has event files. Empty if none of the first directories has some.
std::optional<std::string> directory_with_events(const console& to, const std::string& directory) {
  constexpr std::size_t most_searched = 1000;
  std::set<std::string> visited;
  std::vector<std::string> next{directory};
  for (std::size_t i = 0; i < next.size() && visited.size() < most_searched; ++i) {
    try {
      const auto canonical = to.files->canonical(next[i]);
      if (!canonical || !visited.insert(*canonical).second) { continue; }
      auto inside = list_names(to, next[i]);
      if (!inside.event_files.empty()) { return next[i]; }
      std::ranges::move(inside.directories, std::back_inserter(next));
    } catch (const error&) {}  // NOLINT(bugprone-empty-catch): this directory cannot be read
  }
  return std::nullopt;
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
  if (const auto prefix = format::prefix_of_index(path); prefix && value_or_throw(to.files->exists(path))) { return std::string(*prefix); }
  if (const auto data = stepwell::detail::parse_data_name(path)) {
    if (value_or_throw(to.files->exists(format::index_name(data->prefix)))) { return std::string(data->prefix); }
  }
  if (stepwell::detail::array_file::recognise(*to.files, path)) { return path; }
  return std::nullopt;
}

std::vector<std::string> indexes_in(const console& to, const std::string& directory) {
  std::vector<std::string> prefixes;
  for (const auto& name : value_or_throw(to.files->list(directory))) {
    const auto prefix = format::prefix_of_index(name);
    if (prefix && !prefix->empty() && !io::is_temporary_name(name)) { prefixes.push_back(io::join_path(directory, *prefix)); }
  }
  std::ranges::sort(prefixes, {}, [](const auto& prefix) { return std::pair(step_of_checkpoint(prefix).value_or(-1), prefix); });
  return prefixes;
}

/// Returns the indexes of several files of weights, such as "model.safetensors.index.json".
std::vector<std::string> weight_indexes_in(const console& to, const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& name : value_or_throw(to.files->list(directory))) {
    if (stepwell::detail::array_file::is_shard_index(name)) { found.push_back(io::join_path(directory, name)); }
  }
  return found;
}

std::optional<std::string> newest_checkpoint(const console& to, const std::string& directory) {
  if (const auto newest = latest_checkpoint(directory, to.files)) { return newest; }
  const auto ours = detail::find_unlisted(to.files, directory, default_checkpoint_basename, std::nullopt).older;
  return ours.empty() ? std::nullopt : std::optional(ours.back());
}

std::string require_checkpoint(const console& to, const std::string& path) {
  if (const auto prefix = checkpoint_prefix(to, path)) { return *prefix; }
  if (!is_directory(to, path)) {
    if (value_or_throw(to.files->exists(path))) {
      throw not_found_error("this file is neither a checkpoint nor a file of weights of safetensors, NumPy or torch.save", path);
    }
    throw not_found_error(
        "there is no such checkpoint or directory; give a prefix like \"run/model.ckpt-500\", or the "
        "directory",
        path);
  }
  if (const auto newest = newest_checkpoint(to, path)) { return *newest; }
  auto all = indexes_in(to, path);
  if (all.empty()) { all = weight_indexes_in(to, path); }
  if (all.size() == 1) { return all.front(); }
  if (all.empty()) { throw not_found_error("there is no checkpoint in this directory", path); }
  throw not_found_error(
      fmt::format("the newest of its {} checkpoints is unknown without a state file; give one of them, e.g. {}", all.size(), all.back()),
      path);
}

checkpoint_reader open_checkpoint(const console& to, const std::string& path) {
  return stepwell::detail::read_beside_writer(path, [&]() -> std::optional<checkpoint_reader> {
    const auto prefix = require_checkpoint(to, path);
    try {
      return checkpoint_reader(prefix, to.files);
    } catch (const not_found_error&) {
      if (!is_directory(to, path) || require_checkpoint(to, path) == prefix) { throw; }
      return std::nullopt;
    }
  });
}

std::vector<std::string> event_files_in(const console& to, const std::string& directory, bool recursive) {
  if (!recursive) { return list_names(to, directory).event_files; }
  std::set<std::string> visited;
  std::vector<std::string> found;
  find_event_files(to, directory, visited, found);
  return found;
}

std::vector<std::string> require_event_files(const console& to, const std::string& path, bool recursive, std::string_view hint) {
  if (!value_or_throw(to.files->stat(path)).is_directory) { return {path}; }
  auto found = event_files_in(to, path, recursive);
  if (!found.empty()) { return found; }
  const auto below = recursive ? std::nullopt : directory_with_events(to, path);
  if (!below) { throw not_found_error("there are no event files in this directory or below it", path); }
  throw not_found_error(
      fmt::format("there are no event files in this directory, only below it, for example in {}; give that directory{}", *below, hint),
      path);
}

bool is_no_link(const console& to, const std::string& directory, const std::string& name) {
  const auto path = io::join_path(directory, name);
  const auto canonical = to.files->canonical(path);
  return canonical && *canonical == path;
}

std::optional<std::uint64_t> checkpoint_sizes::of(const std::string& prefix) {
  const auto directory = io::parent_directory(prefix);
  const auto [known, is_new] = by_directory_.try_emplace(directory);
  if (is_new) {
    for (auto& one : stepwell::detail::find_checkpoint_files(*to_.files, directory)) {
      known->second.emplace(io::base_name(one.prefix), one.size_bytes);
    }
  }
  const auto size = known->second.find(io::base_name(prefix));
  return size != known->second.end() ? std::optional(size->second) : std::nullopt;
}

std::optional<lock_holder> holder_of(const console& to, const std::string& directory) {
  const auto text = io::read_text_file(*to.files, io::join_path(directory, stepwell::detail::lock_name), io::detail::longest_lock_content);
  auto content = text ? io::detail::parse_lock_content(*text) : std::nullopt;
  if (content && !content->is_whole) { content.reset(); }
  if (auto owner = io::detail::fence_owner(*to.files, directory); owner && (!content || owner->since > content->since)) { content = owner; }
  if (!content) { return std::nullopt; }
  int pid = 0;
  const auto read = std::from_chars(content->pid.data(), content->pid.data() + content->pid.size(), pid);
  if (read.ec != std::errc() || pid <= 0) { return std::nullopt; }
  const bool is_here = content->host == stepwell::detail::host_name();
  const bool is_gone = is_here && ::kill(pid, 0) < 0 && errno == ESRCH;
  return lock_holder{pid, content->host, content->since, is_here, is_gone};
}

bool is_in_use(const console& to, const std::string& directory) {
  const auto holder = holder_of(to, directory);
  return holder && holder->is_here && !holder->is_gone;
}

}  // namespace stepwell::tool
