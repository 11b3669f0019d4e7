// SPDX-License-Identifier: Apache-2.0
//
// Makes a dataset of LibTorch usable as a dataset of stepwell. A resumed run then continues at the right example of the shuffled order.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/data/shuffled_batches.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::libtorch {
namespace detail {

/// Removes all examples from a batch: a tensor, a container, or a `torch::data::Example` of these.
inline void remove_examples(at::Tensor& batch) {
  if (batch.dim() > 0) { batch = batch.narrow(0, 0, 0); }
}
template<class Batch>
  requires requires(Batch& batch) { batch.clear(); } || requires(Batch& batch) { detail::remove_examples(batch.data); }
void remove_examples(Batch& batch) {
  if constexpr (requires { batch.clear(); }) {
    batch.clear();
  } else {
    detail::remove_examples(batch.data);
    if constexpr (requires { detail::remove_examples(batch.target); }) { detail::remove_examples(batch.target); }
  }
}

}  // namespace detail

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
  /// Returns the batch of these examples. For the empty part of a batch that is divided among more processes than it has examples
  /// (`part_of`), returns a batch whose tensors have the size 0 in the first dimension.
  /// @errors `invalid_argument_error` if the part is empty, and the dataset collates examples to a type that cannot be made empty.
  [[nodiscard]] auto batch(data::example_indices indices) const {
    std::vector<std::size_t> numbers(indices.begin(), indices.end());
    if (indices.empty()) { numbers.push_back(0); }  // collations, such as `Stack`, need an example
    auto made = dataset_->get_batch(c10::ArrayRef<std::size_t>(numbers));
    if (indices.empty()) {
      if constexpr (requires { detail::remove_examples(made); }) {
        detail::remove_examples(made);
      } else {
        throw invalid_argument_error(
            "libtorch::examples: a batch has fewer examples than the group has processes, and the type of the batches cannot be empty; set "
            "drop_remainder, and make batch_size at least the number of processes");
      }
    }
    return made;
  }

private:
  std::unique_ptr<Dataset> dataset_;  // `get_batch` is not const
};

}  // namespace stepwell::libtorch
