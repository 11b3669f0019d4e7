// SPDX-License-Identifier: Apache-2.0
//
// Numbers by tag: what a measurement gives, and how it gets into an event file.
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

/// In the order they are written in.
using metric_list = std::vector<std::pair<std::string, double>>;

/// Pairs of a tag and a number: a `metric_list`, a map.
template<class T>
concept metric_range = std::ranges::input_range<const T&> && requires(std::ranges::range_reference_t<const T&> one) {
  { one.first } -> std::convertible_to<std::string_view>;
  requires std::is_arithmetic_v<std::remove_cvref_t<decltype(one.second)>>;
};

/// What names its numbers: it is such a range, or its `metrics()` gives one.
template<class T>
concept names_metrics = metric_range<T> || requires(const T& values) {
  { values.metrics() } -> metric_range;
};

/// Each of them as a scalar of `step`. @errors Those of `writer::add_scalar`.
template<names_metrics T>
void add_metrics(writer& out, const T& values, std::int64_t step) {
  if constexpr (metric_range<T>) {
    for (const auto& [tag, value] : values) { out.add_scalar(tag, value, step); }
  } else {
    add_metrics(out, values.metrics(), step);
  }
}

}  // namespace stepwell::summary
