// SPDX-License-Identifier: Apache-2.0
#include "tool/tensor_stats.hpp"

#include "tool/elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepwell::tool {
namespace {

/// Returns a power of two that scales values of at most `greatest` to about 1, so that their squares neither overflow nor underflow.
double scale_for(double greatest) noexcept {
  if (greatest == 0) { return 1; }
  return std::ldexp(1.0, -std::clamp(std::ilogb(greatest), -1000, 1022));
}

template<class T>
tensor_stats stats_of_piece(std::span<const std::byte> bytes) {
  tensor_stats made;
  made.count = bytes.size() / sizeof(T);
  const auto each_finite = [&](auto&& act) {
    for (std::size_t i = 0; i < made.count; ++i) {
      const double value = to_double(element_at<T>(bytes, i));
      if (std::isfinite(value)) { act(value); }
    }
  };
  bool is_first = true;
  for (std::size_t i = 0; i < made.count; ++i) {
    const double value = to_double(element_at<T>(bytes, i));
    made.nans += std::isnan(value);
    made.infinities += std::isinf(value);
    if (!std::isfinite(value)) { continue; }
    made.min = is_first ? value : std::min(made.min, value);
    made.max = is_first ? value : std::max(made.max, value);
    is_first = false;
  }
  if (made.finite() == 0) { return made; }
  const auto count = static_cast<double>(made.finite());
  const double scale = scale_for(std::max(std::abs(made.min), std::abs(made.max)));
  double sum = 0;
  each_finite([&](double value) { sum += value * scale; });
  const double mean = sum / count;
  double squares = 0;
  each_finite([&](double value) { squares += (value * scale - mean) * (value * scale - mean); });
  made.mean = std::clamp(mean / scale, made.min, made.max);  // rounding may exceed them
  made.stddev = std::min(std::sqrt(squares / count) / scale, std::numeric_limits<double>::max());
  return made;
}

/// Merges two samples by the formula of Chan, Golub and LeVeque, with roots instead of squares, which could overflow.
void merge(tensor_stats& into, const tensor_stats& more) {
  if (more.finite() != 0) {
    const bool is_first = into.finite() == 0;
    into.min = is_first ? more.min : std::min(into.min, more.min);
    into.max = is_first ? more.max : std::max(into.max, more.max);
    const double part = static_cast<double>(more.finite()) / static_cast<double>(into.finite() + more.finite());
    const double apart = (more.mean / 2 - into.mean / 2) * (2 * std::sqrt(part * (1 - part)));  // the factor is at most 1
    const double together = std::hypot(into.stddev * std::sqrt(1 - part), more.stddev * std::sqrt(part), apart);
    into.stddev = std::min(together, std::numeric_limits<double>::max());
    into.mean = std::lerp(into.mean, more.mean, part);
  }
  into.count += more.count;
  into.nans += more.nans;
  into.infinities += more.infinities;
}

}  // namespace

void tensor_stats::add(dtype type, std::span<const std::byte> elements) {
  with_element_type(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (!is_complex_element<T>) { merge(*this, stats_of_piece<T>(elements)); }
  });
}

std::optional<tensor_stats> stats_of(const checkpoint_reader& reader, const checkpoint_entry& entry) {
  const bool is_complex = entry.dtype == dtype::complex64 || entry.dtype == dtype::complex128;
  if (size_of(entry.dtype) == 0 || is_complex) { return std::nullopt; }
  tensor_stats made;
  for (const auto piece : reader.pieces(entry.name)) { made.add(entry.dtype, piece); }
  return made;
}

}  // namespace stepwell::tool
