// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/stored_checkpoint.hpp"

#include <algorithm>
#include <cstring>

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

bool covers_once(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole) {
  std::int64_t covered = 0;
  const auto total = element_count(whole);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto count = element_count(part_shape(slices[i], whole));
    if (count > total - covered) { return false; }
    covered += count;
    const auto overlaps = [&](const auto& other) { return count != 0 && overlap(slices[i], other, whole); };
    if (std::any_of(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(i), overlaps)) { return false; }
  }
  return covered == total;
}

void copy_part(std::span<const std::byte> part, const format::tensor_slice& slice, const tensor_shape& whole, std::size_t element_size,
               std::span<std::byte> into) {
  if (part.empty()) { return; }
  if (whole.empty()) {
    std::memcpy(into.data(), part.data(), part.size());
    return;
  }
  const auto shape = part_shape(slice, whole);
  const auto run = static_cast<std::size_t>(shape.back()) * element_size;
  tensor_shape at(shape.size(), 0);  // of the run in the part; the last dimension stays 0
  for (std::size_t from = 0; from < part.size(); from += run) {
    std::int64_t to = 0;
    for (std::size_t d = 0; d < whole.size(); ++d) { to = to * whole[d] + slice[d].start + at[d]; }
    std::memcpy(into.data() + static_cast<std::size_t>(to) * element_size, part.data() + from, run);
    for (std::size_t d = shape.size() - 1; d-- > 0;) {
      if (++at[d] < shape[d]) { break; }
      at[d] = 0;
    }
  }
}

}  // namespace stepwell::detail
