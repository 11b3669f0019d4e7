// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/state_file.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/io/path.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::uint64_t max_state_bytes = std::uint64_t{8} << 20;

/// Returns the path to open. A relative path is relative to the directory. If an absolute path does not exist, the checkpoint may
/// have been moved together with the directory.
std::string resolve(io::file_system& files, const std::string& directory, const std::string& path) {
  if (!path.starts_with('/')) { return io::join_path(directory, path); }
  if (value_or_throw(files.exists(format::index_name(path)))) { return path; }
  auto moved = io::join_path(directory, io::base_name(path));
  const bool is_moved = value_or_throw(files.exists(format::index_name(moved)));
  return is_moved ? moved : path;
}

/// Finds different prefixes of the same checkpoint.
class known_prefixes {
public:
  explicit known_prefixes(io::file_system& files) : files_(files) {}

  /// Returns false if `prefix` was added before.
  bool add(const std::string& prefix) {
    return known_.insert(io::join_path(canonical(io::parent_directory(prefix)), io::base_name(prefix))).second;
  }

private:
  const std::string& canonical(const std::string& directory) {
    const auto [at, is_new] = canonical_.try_emplace(directory);
    if (is_new) {
      auto found = files_.canonical(directory);
      at->second = found ? std::move(found).value() : directory;
    }
    return at->second;
  }

  io::file_system& files_;
  std::unordered_map<std::string, std::string> canonical_;  // by directory
  std::unordered_set<std::string> known_;
};

/// Returns the prefixes that a state file lists, without duplicates, in order. The last occurrence of a checkpoint counts, and the
/// newest is last.
std::vector<std::string> prefixes_of(io::file_system& files, const std::string& directory, const format::checkpoint_state& content) {
  known_prefixes known(files);
  std::vector<std::string> newest_first;
  const auto add = [&](const std::string& path) {
    auto prefix = resolve(files, directory, path);
    if (known.add(prefix)) { newest_first.push_back(std::move(prefix)); }
  };
  add(content.model_checkpoint_path);
  const auto& paths = content.all_model_checkpoint_paths;
  std::for_each(paths.rbegin(), paths.rend(), add);
  std::ranges::reverse(newest_first);
  return newest_first;
}

}  // namespace

std::optional<state_file> read_state_file(io::file_system& files, const std::string& directory) {
  const auto path = io::join_path(directory, state_file_name);
  auto text = io::read_text_file(files, path, max_state_bytes);
  if (!text && text.error().code == errc::not_found) { return std::nullopt; }
  if (!text && text.error().code != errc::invalid_argument) { throw_status(text.error()); }
  auto content = text ? format::decode_checkpoint_state(*text) : result<format::checkpoint_state>(text.error());
  if (text) { *text = std::string(); }  // frees the text, which is as large as the parsed content
  if (!content) {
    log_warning("Invalid checkpoint state loaded from " + path + ": " + content.error().message +
                "; the checkpoints on disk are used instead");
    return std::nullopt;
  }
  state_file made{.content = std::move(*content), .prefixes = {}};
  made.prefixes = prefixes_of(files, directory, made.content);
  return made;
}

std::vector<std::string> names_in(io::file_system& files, const std::string& directory) {
  if (!value_or_throw(files.exists(directory))) { return {}; }
  if (!value_or_throw(files.stat(directory)).is_directory) {
    throw invalid_argument_error("this is a file, not a checkpoint directory; give the path of a directory", directory);
  }
  return value_or_throw(files.list(directory));
}

std::optional<std::int64_t> step_in_name(std::string_view name, std::string_view basename, std::string_view suffix) {
  if (!name.starts_with(basename) || !name.ends_with(suffix) || name.size() < basename.size() + suffix.size()) { return std::nullopt; }
  name.remove_suffix(suffix.size());
  name.remove_prefix(basename.size());
  if (name.size() < 2 || name.front() != '-') { return std::nullopt; }
  name.remove_prefix(1);
  std::int64_t step = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), step);
  return failure == std::errc() && end == name.data() + name.size() && step >= 0 ? std::optional(step) : std::nullopt;
}

}  // namespace stepwell::detail
