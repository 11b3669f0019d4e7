// SPDX-License-Identifier: Apache-2.0
//
// Lists of numbers with tags, and how they are written to an event file.
#pragma once

#include "stepwell/summary/writer.hpp"

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::summary {

/// Pairs of tag and number, in the order in which they are written.
using metric_list = std::vector<std::pair<std::string, double>>;

/// A range of pairs of tag and number, such as a `metric_list` or a map.
template<class T>
concept metric_range = std::ranges::input_range<const T&> && requires(std::ranges::range_reference_t<const T&> one) {
  { one.first } -> std::convertible_to<std::string_view>;
  requires std::is_arithmetic_v<std::remove_cvref_t<decltype(one.second)>>;
};

/// A metric range, or a type whose `metrics()` returns one.
template<class T>
concept names_metrics = metric_range<T> || requires(const T& values) {
  { values.metrics() } -> metric_range;
};

/// Writes each number as a scalar of `step`.
/// @errors Like `writer::add_scalar`.
template<names_metrics T>
void add_metrics(writer& out, const T& values, std::int64_t step) {
  if constexpr (metric_range<T>) {
    for (const auto& [tag, value] : values) { out.add_scalar(tag, value, step); }
  } else {
    add_metrics(out, values.metrics(), step);
  }
}

}  // namespace stepwell::summary
