// SPDX-License-Identifier: Apache-2.0
//
// Examples that can be had in any order, and how a batch is made of some of them.
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

/// Numbers of examples, below the dataset's size.
using example_indices = std::span<const std::uint64_t>;

namespace detail {

template<class Dataset>
concept has_batch = requires(const Dataset& examples, example_indices indices) { examples.batch(indices); };

template<class Dataset>
concept plain_list = std::ranges::random_access_range<const Dataset> && std::ranges::sized_range<const Dataset> &&
                     std::copyable<std::ranges::range_value_t<const Dataset>>;

}  // namespace detail

/// Examples with numbers from 0 to `size()`. The batch of some of them is what `batch(indices)` makes; of a plain list
/// (a vector of examples) it is a vector of copies. Besides, a dataset may have `gather(indices, into)`, which fills a
/// batch that was used before and so need not allocate.
/// The same indices must give the same batch, at any time.
template<class Dataset>
concept dataset = (detail::has_batch<std::remove_cvref_t<Dataset>> && requires(const std::remove_cvref_t<Dataset>& examples) {
                    { examples.size() } -> std::convertible_to<std::uint64_t>;
                  }) || detail::plain_list<std::remove_cvref_t<Dataset>>;

/// A new batch of the examples `indices`.
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

/// What `make_batch` makes.
template<dataset Dataset>
using dataset_batch = decltype(data::make_batch(std::declval<const std::remove_cvref_t<Dataset>&>(), example_indices()));

/// How many examples there are.
template<dataset Dataset>
[[nodiscard]] std::uint64_t example_count(const Dataset& examples) {
  return static_cast<std::uint64_t>(std::ranges::size(examples));
}

}  // namespace stepwell::data
