// SPDX-License-Identifier: Apache-2.0
#include "tool/tensor_stats.hpp"

#include "tool/elements.hpp"

#include <algorithm>
#include <cmath>

namespace stepwell::tool {
namespace {

template<class T>
tensor_stats stats_of_piece(std::span<const std::byte> bytes) {
  tensor_stats made;
  made.count = bytes.size() / sizeof(T);
  double sum = 0;
  const auto each_finite = [&](auto&& act) {
    for (std::size_t i = 0; i < made.count; ++i) {
      const double value = to_double(element_at<T>(bytes, i));
      if (std::isfinite(value)) { act(value); }
    }
  };
  for (std::size_t i = 0; i < made.count; ++i) {
    const double value = to_double(element_at<T>(bytes, i));
    made.nans += std::isnan(value);
    made.infinities += std::isinf(value);
  }
  bool is_first = true;
  each_finite([&](double value) {
    made.min = is_first ? value : std::min(made.min, value);
    made.max = is_first ? value : std::max(made.max, value);
    is_first = false;
    sum += value;
  });
  if (made.finite() != 0) { made.mean = sum / static_cast<double>(made.finite()); }
  each_finite([&](double value) { made.spread += (value - made.mean) * (value - made.mean); });
  return made;
}

/// Chan's way of putting two samples together.
void merge(tensor_stats& into, const tensor_stats& more) {
  const auto have = static_cast<double>(into.finite());
  const auto come = static_cast<double>(more.finite());
  if (more.finite() != 0) {
    into.min = into.finite() == 0 ? more.min : std::min(into.min, more.min);
    into.max = into.finite() == 0 ? more.max : std::max(into.max, more.max);
    const double apart = more.mean - into.mean;
    into.spread += more.spread + apart * apart * have * come / (have + come);
    into.mean += apart * come / (have + come);
  }
  into.count += more.count;
  into.nans += more.nans;
  into.infinities += more.infinities;
}

}  // namespace

double tensor_stats::stddev() const noexcept { return finite() == 0 ? 0 : std::sqrt(spread / static_cast<double>(finite())); }

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
