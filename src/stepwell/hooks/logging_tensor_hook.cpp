// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/logging_tensor_hook.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/kernel/detail/statistics.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <numeric>

namespace stepwell::detail {

std::optional<cadence> logging_cadence(const logging_tensor_options& options) {
  const auto& [every_n_iter, every_n_secs, at_end, formatter] = options;
  if (at_end && !every_n_iter && !every_n_secs) { return std::nullopt; }
  if (every_n_iter.has_value() == every_n_secs.has_value()) {
    throw invalid_argument_error(
        "logging_tensor_hook: either only at_end and/or exactly one of every_n_iter and every_n_secs must be provided");
  }
  if (every_n_secs && !(every_n_secs->count() >= 0)) {
    throw invalid_argument_error(fmt::format("logging_tensor_hook: invalid every_n_secs={}; it cannot be negative", every_n_secs->count()));
  }
  if (every_n_secs) { return cadence{.every_secs = every_n_secs->duration()}; }
  if (*every_n_iter <= 0) {
    throw invalid_argument_error(fmt::format("logging_tensor_hook: invalid every_n_iter={}; it must be above zero", *every_n_iter));
  }
  return cadence{.every_steps = every_n_iter};
}

void kept_value::keep_more_elements() {
  const auto size = std::min(shown_.bytes.size(), shown_elements * size_of(shown_.dtype));
  if (size > 0) { std::memcpy(bytes_.data(), shown_.bytes.data(), size); }
}

logged_value kept_value::logged() const {
  if (shown_.dtype == dtype::invalid) { return {text_, number_}; }
  tensor_view view = shown_;
  view.bytes = bytes_;
  const bool is_number = view.shape.empty() && view.dtype != dtype::complex64 && view.dtype != dtype::complex128;
  return {tensor_text(view), is_number ? std::optional(kernel::number_at({view.dtype, view.bytes}, 0)) : number_};
}

std::vector<std::optional<double>> numbers_of(std::span<const kept_value> values) {
  std::vector<std::optional<double>> all;
  for (const auto& value : values) { all.push_back(value.is_new() ? value.logged().number : std::nullopt); }
  return all;
}

logging_lines::logging_lines(std::vector<std::string> tags, bool is_map, logging_tensor_options options)
    : tags_(std::move(tags)), order_(tags_.size()), options_(std::move(options)) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (!is_map) { return; }
  const auto tag_of = [this](std::size_t position) -> const std::string& { return tags_[position]; };
  std::ranges::sort(order_, {}, tag_of);
  const auto twice = std::ranges::adjacent_find(order_, {}, tag_of);
  if (twice == order_.end()) { return; }
  throw invalid_argument_error(fmt::format("logging_tensor_hook: two values have the tag \"{}\"; give them different tags", tags_[*twice]));
}

void logging_lines::write(std::span<const kept_value> values, bool (kept_value::*is_shown)() const noexcept,
                          const std::optional<elapsed_since_trigger>& elapsed) const {
  auto order = order_;
  std::erase_if(order, [&](std::size_t position) { return !(values[position].*is_shown)(); });
  if (options_.formatter) {
    std::map<std::string, logged_value> by_tag;
    for (const auto position : order) { by_tag[tags_[position]] = values[position].logged(); }
    return log_info(options_.formatter(by_tag));
  }
  std::string line;
  for (const auto position : order) {
    line.append(line.empty() ? "" : ", ").append(tags_[position]).append(" = ").append(values[position].logged().text);
  }
  if (elapsed) { line.append(fmt::format(" ({:.3f} sec)", elapsed->seconds.count())); }
  log_info(line);
}

}  // namespace stepwell::detail
