// SPDX-License-Identifier: Apache-2.0
//
// Makes a dataset of LibTorch usable as a dataset of stepwell. A resumed run then continues at the right example of the shuffled order.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/data/shuffled_batches.hpp"

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::libtorch {

/// The examples of a dataset of LibTorch, with the transforms and the collation of the dataset. LibTorch's samplers and data
/// loader are not used:
///
///     auto numbers = torch::data::datasets::MNIST("data").map(torch::data::transforms::Stack<>());
///     auto batches = sw::data::shuffled_batches(sw::libtorch::examples(std::move(numbers)), {.batch_size = 64});
///     for (const auto& step : session.steps(batches)) {}
///
/// `data::prefetch` over such a source makes the batches in advance, on another thread. Without it, a batch is made right before its step. If
/// a transform draws random numbers from LibTorch's default generator, list `libtorch::rng()` as a variable and do not use `prefetch`:
/// otherwise, a resumed run gets other batches than an uninterrupted one. With `prefetch`, draw the random numbers in the step, or compute
/// them from the index of the example.
/// @threads One thread at a time.
template<class Dataset>
class examples {
public:
  /// @errors `invalid_argument_error` if the dataset has no known size.
  explicit examples(Dataset dataset) : dataset_(std::make_unique<Dataset>(std::move(dataset))) {
    if (!dataset_->size()) {
      throw invalid_argument_error("libtorch::examples: the dataset does not know its size, so its examples have no seekable order");
    }
  }

  [[nodiscard]] std::uint64_t size() const { return *dataset_->size(); }
  [[nodiscard]] auto batch(data::example_indices indices) const {
    const std::vector<std::size_t> numbers(indices.begin(), indices.end());
    return dataset_->get_batch(c10::ArrayRef<std::size_t>(numbers));
  }

private:
  std::unique_ptr<Dataset> dataset_;  // `get_batch` is not const
};

}  // namespace stepwell::libtorch
