// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/retention.hpp"

#include <algorithm>
#include <cmath>

namespace stepwell::detail {
namespace {

constexpr double seconds_per_hour = 3600;

using metric_member = std::optional<double> listed_checkpoint::*;

/// Marks the checkpoints with the best values of the metric. Of equal values the newer one is better.
void mark_best(std::vector<bool>& is_best, const std::vector<listed_checkpoint>& list, metric_member metric, const keep_best& rule) {
  std::vector<std::size_t> ranked;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].*metric && !std::isnan(*(list[i].*metric))) { ranked.push_back(i); }
  }
  std::ranges::sort(ranked, [&](std::size_t a, std::size_t b) {
    const double left = *(list[a].*metric);
    const double right = *(list[b].*metric);
    if (left == right) { return a > b; }
    return rule.direction == better::higher ? left > right : left < right;
  });
  for (std::size_t i = 0; i < std::min(ranked.size(), rule.count); ++i) { is_best[ranked[i]] = true; }
}

std::vector<bool> best_of(const std::vector<listed_checkpoint>& list, const std::optional<keep_best>& rule) {
  std::vector<bool> is_best(list.size(), false);
  if (!rule) { return is_best; }
  mark_best(is_best, list, &listed_checkpoint::metric, *rule);
  mark_best(is_best, list, &listed_checkpoint::durable_metric, *rule);
  return is_best;
}

}  // namespace

retention_plan plan_retention(const std::vector<listed_checkpoint>& list, const retention_rules& rules, double last_preserved) {
  retention_plan plan{.listed = {}, .deleted = {}, .last_preserved = last_preserved};
  const auto window = std::max<std::size_t>(rules.max_to_keep.value_or(list.size()), 1);
  const auto is_best = best_of(list, rules.best);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& checkpoint = list[i];
    const bool is_newest = i + 1 == list.size();
    const bool stays = i + window >= list.size() || checkpoint.is_protected || is_best[i];
    if (checkpoint.is_kept && !is_newest) { continue; }
    if (stays) {
      plan.listed.push_back(checkpoint);
    } else if (rules.keep_every_n_hours && checkpoint.time - plan.last_preserved >= *rules.keep_every_n_hours * seconds_per_hour) {
      plan.last_preserved = checkpoint.time;
    } else if (checkpoint.is_ours) {
      plan.deleted.push_back(checkpoint);
    }
  }
  return plan;
}

}  // namespace stepwell::detail
