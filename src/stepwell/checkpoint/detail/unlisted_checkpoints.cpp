// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/unlisted_checkpoints.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/detail/saver_notes.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace stepwell::detail {
namespace {

/// Highest valid save number. Higher numbers are ignored, because the numbers of further saves could overflow.
constexpr std::int64_t max_save_number = std::int64_t{1} << 62;

/// An unlisted checkpoint with its position in the order.
struct ranked_checkpoint {
  std::string prefix;
  std::int64_t step = 0;
  std::optional<std::int64_t> number = std::nullopt;
  std::int64_t rank = 0;  ///< Its number, or the number of the checkpoint it directly follows.
};

/// Returns the checkpoints, oldest first.
/// @pre `prefixes` is sorted by step.
std::vector<ranked_checkpoint> ranked(const std::shared_ptr<io::file_system>& files, std::vector<std::string> prefixes) {
  std::vector<ranked_checkpoint> all;
  std::int64_t highest = 0;
  for (auto& prefix : prefixes) {
    const auto number = save_number_of(files, prefix);
    highest = std::max(highest, number.value_or(0));
    const auto step = step_of_checkpoint(prefix).value_or(0);
    all.push_back({std::move(prefix), step, number, number.value_or(highest)});
  }
  std::ranges::sort(all, {}, [](const auto& one) { return std::tuple(one.rank, !one.number.has_value(), one.step); });
  return all;
}

/// Returns the step in the name. If the name has none, returns the value of the tensor `global_step`.
std::optional<std::int64_t> step_of(const std::shared_ptr<io::file_system>& files, const std::string& prefix) {
  if (const auto step = step_of_checkpoint(prefix)) { return step; }
  try {
    return checkpoint_reader(prefix, files).step();
  } catch (const error&) { return std::nullopt; }
}

}  // namespace

std::optional<std::int64_t> save_number_of(const std::shared_ptr<io::file_system>& files, const std::string& prefix) {
  try {
    const checkpoint_reader reader(prefix, files);
    const auto* entry = reader.find(save_number_name);
    if (entry == nullptr || entry->dtype != dtype::int64 || !entry->shape.empty()) { return std::nullopt; }
    const auto number = reader.read(save_number_name).as<std::int64_t>().front();
    return number >= 1 && number <= max_save_number ? std::optional(number) : std::nullopt;
  } catch (const error&) {
    return std::nullopt;  // the failure is reported when this checkpoint is restored
  }
}

std::optional<std::int64_t> newest_save_number(const std::shared_ptr<io::file_system>& files, const std::vector<std::string>& prefixes) {
  for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix) {
    if (const auto number = save_number_of(files, *prefix)) { return number; }
  }
  return std::nullopt;
}

unlisted_checkpoints find_unlisted(const std::shared_ptr<io::file_system>& files, const std::string& directory, std::string_view basename,
                                   const std::optional<state_file>& state) {
  auto prefixes = list_checkpoints(directory, basename, files);
  if (state) {
    const std::set<std::string> listed(state->prefixes.begin(), state->prefixes.end());
    std::erase_if(prefixes, [&](const auto& prefix) { return listed.contains(prefix); });
  }
  unlisted_checkpoints found;
  if (prefixes.empty()) { return found; }
  const auto newest_number = state ? newest_save_number(files, state->prefixes) : std::nullopt;
  const auto newest_step = state ? step_of(files, state->prefixes.back()) : std::nullopt;
  const auto is_newer = [&](const ranked_checkpoint& one) {
    if (one.number && newest_number) { return *one.number > *newest_number; }
    return newest_step ? one.step > *newest_step : one.number.has_value();
  };
  for (auto& one : ranked(files, std::move(prefixes))) {
    found.last_number = std::max(found.last_number, one.number.value_or(0));
    (state && is_newer(one) ? found.newer : found.older).push_back(std::move(one.prefix));
  }
  return found;
}

}  // namespace stepwell::detail
