// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/latest_checkpoint.hpp"

#include "stepwell/base/detail/memory_shortage.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/state_file.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/detail/unlisted_checkpoints.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace stepwell {
namespace {

std::shared_ptr<io::file_system> or_real(std::shared_ptr<io::file_system> files) {
  return files ? std::move(files) : io::posix_file_system();
}

/// Returns the prefixes to try, newest first.
std::vector<std::string> candidates(const std::shared_ptr<io::file_system>& files, const std::string& directory,
                                    std::string_view basename) {
  const auto state = detail::read_state_file(*files, directory);
  auto unlisted = detail::find_unlisted(files, directory, basename, state);
  auto oldest_first = std::move(unlisted.older);
  if (state) { oldest_first.insert(oldest_first.end(), state->prefixes.begin(), state->prefixes.end()); }
  oldest_first.insert(oldest_first.end(), unlisted.newer.begin(), unlisted.newer.end());
  std::ranges::reverse(oldest_first);
  return oldest_first;
}

/// Logs why checkpoints are skipped. After the first 20 it only counts them, because a state file can list thousands.
class damage_report {
public:
  void add(const std::string& prefix, const error& failure) {
    is_short_of_memory_ = is_short_of_memory_ || detail::is_memory_shortage(failure.cause());
    if (++count_ > most_) { return; }
    log_warning(fmt::format("checkpoint {} is damaged and skipped: {}", prefix, failure.what()));
    text_.append("\n  ").append(prefix).append(": ").append(failure.what());
    if (count_ == most_) { log_warning("further checkpoints that are damaged or missing are skipped without a message"); }
  }

  [[nodiscard]] std::string text() const { return count_ > most_ ? fmt::format("{}\n  and {} more", text_, count_ - most_) : text_; }
  [[nodiscard]] bool is_short_of_memory() const noexcept { return is_short_of_memory_; }

private:
  static constexpr std::size_t most_ = 20;
  std::size_t count_ = 0;
  bool is_short_of_memory_ = false;
  std::string text_;
};

}  // namespace

std::optional<std::int64_t> step_of_checkpoint(std::string_view prefix) noexcept {
  const auto dash = prefix.rfind('-');
  return dash == std::string_view::npos ? std::nullopt : detail::step_in_name(prefix, prefix.substr(0, dash), "");
}

std::optional<std::string> latest_checkpoint(const std::string& directory, std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  const auto state = detail::read_state_file(*files, directory);
  if (!state) { return std::nullopt; }
  const auto& newest = state->prefixes.back();
  if (value_or_throw(files->exists(format::index_name(newest)))) { return newest; }
  log_warning(newest + ": the state file names this checkpoint as the newest, but its index is missing");
  return std::nullopt;
}

std::vector<std::string> list_checkpoints(const std::string& directory, std::string_view basename, std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const auto& name : detail::names_in(*files, directory)) {
    constexpr std::string_view suffix = ".index";
    if (const auto step = detail::step_in_name(name, basename, suffix)) {
      found.emplace_back(*step, io::join_path(directory, name.substr(0, name.size() - suffix.size())));
    }
  }
  std::ranges::sort(found);
  std::vector<std::string> prefixes;
  for (auto& [step, prefix] : found) { prefixes.push_back(std::move(prefix)); }
  return prefixes;
}

std::optional<checkpoint_reader> find_newest_whole(const std::string& directory, std::string_view basename,
                                                   std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  const auto claims = candidates(files, directory, basename);
  damage_report damages;
  for (const auto& prefix : claims) {
    try {
      checkpoint_reader reader(prefix, files);
      reader.verify();
      return reader;
    } catch (const error& failure) {
      if (!detail::is_damage(failure)) { throw; }
      damages.add(prefix, failure);
    }
  }
  if (claims.empty()) { return std::nullopt; }
  if (damages.is_short_of_memory()) {
    throw resource_exhausted_error(fmt::format("none of the {} checkpoints in this directory could be read; make more memory available, or "
                                               "move the damaged ones away:{}",
                                               claims.size(), damages.text()),
                                   directory);
  }
  throw data_loss_error(fmt::format("none of the {} checkpoints in this directory is intact; move them away to start from the "
                                    "beginning, or copy an intact one into the directory:{}",
                                    claims.size(), damages.text()),
                        directory);
}

}  // namespace stepwell
