// SPDX-License-Identifier: Apache-2.0
//
// The dataset concept: examples with random access, and how a batch is made of some of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::data {

/// Indices of examples; each is below the size of the dataset.
using example_indices = std::span<const std::uint64_t>;

namespace detail {

template<class Dataset>
concept has_batch = requires(const Dataset& examples, example_indices indices) { examples.batch(indices); };

template<class Dataset>
concept plain_list = std::ranges::random_access_range<const Dataset> && std::ranges::sized_range<const Dataset> &&
                     std::copyable<std::ranges::range_value_t<const Dataset>>;

}  // namespace detail

/// Examples with indices from 0 to `size()` - 1. `batch(indices)` returns the batch of some of them. For a plain list (such as a
/// vector of examples) the batch is a vector of copies. A dataset may also have `gather(indices, into)`, which fills an existing
/// batch and so avoids allocations.
/// The same indices must always give the same batch.
template<class Dataset>
concept dataset = (detail::has_batch<std::remove_cvref_t<Dataset>> && requires(const std::remove_cvref_t<Dataset>& examples) {
                    { examples.size() } -> std::convertible_to<std::uint64_t>;
                  }) || detail::plain_list<std::remove_cvref_t<Dataset>>;

/// Returns a new batch of the examples `indices`.
template<dataset Dataset>
[[nodiscard]] auto make_batch(const Dataset& examples, example_indices indices) {
  if constexpr (detail::has_batch<Dataset>) {
    return examples.batch(indices);
  } else {
    std::vector<std::ranges::range_value_t<const Dataset>> batch;
    batch.reserve(indices.size());
    const auto first = std::ranges::begin(examples);
    using offset = std::ranges::range_difference_t<const Dataset>;
    for (const auto index : indices) { batch.push_back(first[static_cast<offset>(index)]); }
    return batch;
  }
}

/// The return type of `make_batch`.
template<dataset Dataset>
using dataset_batch = decltype(data::make_batch(std::declval<const std::remove_cvref_t<Dataset>&>(), example_indices()));

/// Returns the number of examples.
template<dataset Dataset>
[[nodiscard]] std::uint64_t example_count(const Dataset& examples) {
  return static_cast<std::uint64_t>(std::ranges::size(examples));
}

}  // namespace stepwell::data
