// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/logging_lines.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <utility>

namespace stepwell::detail {

std::optional<cadence> logging_cadence(std::optional<std::int64_t> every_n_iter, std::optional<seconds_value> every_n_secs, bool at_end) {
  if (at_end && !every_n_iter && !every_n_secs) { return std::nullopt; }
  if (every_n_iter.has_value() == every_n_secs.has_value()) {
    throw invalid_argument_error(
        "logging_tensor_hook: either only at_end and/or exactly one of every_n_iter and every_n_secs "
        "must be provided");
  }
  if (every_n_secs) { return cadence{.every_secs = every_n_secs->duration()}; }
  if (*every_n_iter <= 0) {
    throw invalid_argument_error(fmt::format("logging_tensor_hook: invalid every_n_iter={}; it must be above zero", *every_n_iter));
  }
  return cadence{.every_steps = every_n_iter};
}

logging_lines::logging_lines(std::vector<std::string> tags, bool is_map, bool at_end, formatter make_line)
    : tags_(std::move(tags)), order_(tags_.size()), at_end_(at_end), formatter_(std::move(make_line)) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (!is_map) { return; }
  const auto tag_of = [this](std::size_t position) -> const std::string& { return tags_[position]; };
  std::ranges::sort(order_, {}, tag_of);
  const auto twice = std::ranges::adjacent_find(order_, {}, tag_of);
  if (twice == order_.end()) { return; }
  throw invalid_argument_error(fmt::format("logging_tensor_hook: two values have the tag \"{}\"; give them different tags", tags_[*twice]));
}

void logging_lines::write(std::span<const kept_value> values, const std::optional<elapsed_since_trigger>& elapsed) const {
  if (!formatter_) { return log_info(line_of(values, elapsed)); }
  std::map<std::string, logged_value> by_tag;
  for (const auto position : order_) { by_tag[tags_[position]] = values[position].logged(); }
  log_info(formatter_(by_tag));
}

std::string logging_lines::line_of(std::span<const kept_value> values, const std::optional<elapsed_since_trigger>& elapsed) const {
  std::string line;
  for (const auto position : order_) {
    line.append(line.empty() ? "" : ", ").append(tags_[position]).append(" = ").append(values[position].logged().text);
  }
  if (elapsed) { line.append(fmt::format(" ({:.3f} sec)", elapsed->seconds.count())); }
  return line;
}

}  // namespace stepwell::detail
