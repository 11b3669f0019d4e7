// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

namespace stepwell::detail {
namespace {

std::int64_t length_of(const format::slice_extent& extent, std::int64_t size) {
  return extent.length == format::slice_extent::whole ? size : extent.length;
}

bool overlap(const format::tensor_slice& a, const format::tensor_slice& b, const tensor_shape& whole) {
  for (std::size_t d = 0; d < whole.size(); ++d) {
    if (a[d].start >= b[d].start + length_of(b[d], whole[d]) || b[d].start >= a[d].start + length_of(a[d], whole[d])) { return false; }
  }
  return true;
}

}  // namespace

tensor_shape part_shape(const format::tensor_slice& slice, const tensor_shape& whole) {
  tensor_shape shape;
  for (std::size_t d = 0; d < whole.size(); ++d) { shape.push_back(length_of(slice[d], whole[d])); }
  return shape;
}

namespace {

/// Returns the dimension with the largest number of different slice starts; 0 for a scalar.
std::size_t most_divided(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t d = 0; d < whole.size(); ++d) {
    std::set<std::int64_t> starts;
    for (const auto& slice : slices) { starts.insert(slice[d].start); }
    if (starts.size() > most) { std::tie(best, most) = std::pair(d, starts.size()); }
  }
  return best;
}

}  // namespace

bool covers_once(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole, std::uint64_t& comparisons) {
  std::int64_t covered = 0;
  const auto total = element_count(whole);
  std::vector<const format::tensor_slice*> sorted;
  for (const auto& slice : slices) {
    const auto count = element_count(part_shape(slice, whole));
    if (count > total - covered) { return false; }
    covered += count;
    if (count != 0) { sorted.push_back(&slice); }
  }
  if (covered != total || whole.empty()) { return covered == total; }
  const auto d = most_divided(slices, whole);
  std::ranges::sort(sorted, {}, [d](const auto* slice) { return (*slice)[d].start; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto end = (*sorted[i])[d].start + length_of((*sorted[i])[d], whole[d]);
    for (std::size_t j = i + 1; j < sorted.size() && (*sorted[j])[d].start < end; ++j) {
      if (comparisons == 0) { return false; }
      --comparisons;
      if (overlap(*sorted[i], *sorted[j], whole)) { return false; }
    }
  }
  return true;
}

void copy_part(std::span<const std::byte> elements, std::uint64_t first, const format::tensor_slice& slice, const tensor_shape& whole,
               std::size_t element_size, std::span<std::byte> into) {
  if (whole.empty()) {
    if (!elements.empty()) { std::memcpy(into.data(), elements.data(), elements.size()); }
    return;
  }
  const auto shape = part_shape(slice, whole);
  while (!elements.empty()) {
    std::uint64_t to = 0;  // position of the element in the whole tensor
    std::uint64_t stride = 1;
    std::uint64_t rest = first;
    for (std::size_t d = whole.size(); d-- > 0; stride *= static_cast<std::uint64_t>(whole[d])) {
      const auto size = static_cast<std::uint64_t>(shape[d]);
      to += stride * (static_cast<std::uint64_t>(slice[d].start) + rest % size);
      rest /= size;
    }
    const auto row = static_cast<std::uint64_t>(shape.back());
    const auto run = static_cast<std::size_t>(std::min<std::uint64_t>(row - first % row, elements.size() / element_size));
    std::memcpy(into.data() + static_cast<std::size_t>(to) * element_size, elements.data(), run * element_size);
    elements = elements.subspan(run * element_size);
    first += run;
  }
}

}  // namespace stepwell::detail
