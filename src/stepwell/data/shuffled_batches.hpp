// SPDX-License-Identifier: Apache-2.0
//
// A shuffled, seekable source over a dataset of examples with random access: endless, or for a number of epochs.
#pragma once

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/random.hpp"
#include "stepwell/data/source.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
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

/// Returns the position at the end of `epochs` epochs of `size` examples. Returns the largest number if `epochs` is empty or if the
/// position exceeds this number.
[[nodiscard]] constexpr std::uint64_t end_after(std::optional<std::uint64_t> epochs, std::uint64_t size) noexcept {
  std::uint64_t end = 0;
  return epochs && !__builtin_mul_overflow(*epochs, size, &end) ? end : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace detail

/// Examples with indices from 0 to `size()` - 1. `batch(indices)` returns the batch of the examples with these indices. For a plain list
/// (such as a vector of examples) the batch is a vector of copies. A dataset may also have `gather(indices, into)`, which fills an existing
/// batch and so avoids allocations. The same indices must always give the same batch.
template<class Dataset>
concept dataset = (detail::has_batch<std::remove_cvref_t<Dataset>> && requires(const std::remove_cvref_t<Dataset>& examples) {
                    { examples.size() } -> std::convertible_to<std::uint64_t>;
                  }) || detail::plain_list<std::remove_cvref_t<Dataset>>;

/// Returns a new batch of the examples `indices`. @errors `resource_exhausted_error` if `examples` is a plain list and there is not enough
///   memory.
template<dataset Dataset>
[[nodiscard]] auto make_batch(const Dataset& examples, example_indices indices) {
  if constexpr (detail::has_batch<Dataset>) {
    return examples.batch(indices);
  } else {
    return stepwell::detail::with_memory("could not make a batch", {}, [&] {
      std::vector<std::ranges::range_value_t<const Dataset>> batch;
      batch.reserve(indices.size());
      const auto first = std::ranges::begin(examples);
      using offset = std::ranges::range_difference_t<const Dataset>;
      for (const auto index : indices) { batch.push_back(first[static_cast<offset>(index)]); }
      return batch;
    });
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

/// Options of `shuffled_batches`.
struct shuffle_options {
  std::uint64_t batch_size = 32;  ///< Number of examples in a batch, above zero.
  std::uint64_t seed = 0;         ///< Selects the order of the examples in each epoch.
  bool drop_remainder = false;    ///< Whether to skip an incomplete batch at the end of an epoch.
  std::string name = {};          ///< Name of the source. A checkpoint stores the position of the source under this name.
  /// Number of epochs after which the data ends. The epochs of earlier runs of the program are counted, too. Empty: endless.
  std::optional<std::uint64_t> epochs = std::nullopt;
  bool shuffle = true;  ///< False: the examples of each epoch have the order of the dataset.
};

/// A source of batches. Each epoch contains every example once, in a random order that depends only on the seed and the number of the
/// epoch. A batch never contains examples of two epochs, so the last batch of an epoch may be smaller. With `drop_remainder`, a smaller
/// batch is skipped.
///
/// When the body of a loop runs, the source has already advanced: its current batch is the batch of the next step. In the body, `if
/// (batches.is_at_epoch_start()) { ... }` therefore executes the block after each complete epoch. In a hook, `context.epoch()` is the epoch
/// of the batch of the current run.
///
/// The position is the number of examples consumed, including skipped ones, so a position stays valid if the batch size changes. If the
/// seed or the size of the dataset changes, the same position selects other examples. The fingerprint therefore contains the seed and the
/// size. A session saves the fingerprint with the position, and compares it when it resumes.
template<class Dataset>  // an lvalue reference, or the type of the dataset that is owned
class shuffled_source {
public:
  using batch = dataset_batch<Dataset>;

  shuffled_source(Dataset&& examples, shuffle_options options)
      : examples_(std::forward<Dataset>(examples)), options_(std::move(options)), size_(data::example_count(examples_)) {
    check();
    end_ = detail::end_after(options_.epochs, size_);
  }

  /// Returns the current batch, or null after the last epoch.
  /// @errors `failed_precondition_error` if the source owned its dataset and was moved from. Exceptions of the dataset.
  /// @cost The first call for a batch makes the batch: one call of `make_batch` or `gather`, and a few hundred instructions for each
  ///   example.
  [[nodiscard]] const batch* peek() {
    if (position_ >= end_) { return nullptr; }
    if (!is_present_) { make_current(); }
    is_present_ = true;
    return &*batch_;
  }
  void advance() noexcept {
    if (position_ < end_) { seek(position_ + batch_length()); }
  }

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Sets the position. With `drop_remainder`, if no complete batch is left in the epoch of `position`, moves on to the next epoch.
  /// @cost O(1).
  void seek(std::uint64_t position) noexcept {
    position_ = position;
    is_present_ = false;
    if (options_.drop_remainder && batch_length() < options_.batch_size) { position_ = (epoch() + 1) * size_; }
  }

  /// Returns the epoch of the current batch, counted from 0. The result is also the number of complete epochs before this batch.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return position_ / size_; }
  /// Returns true if the current batch is the last one of its epoch. Meant for hooks, during a run.
  [[nodiscard]] bool is_last_of_epoch() const noexcept {
    if (position_ >= end_) { return false; }
    const auto rest = size_ - position_ % size_ - batch_length();
    return rest == 0 || (options_.drop_remainder && rest < options_.batch_size);
  }
  /// Returns true if the current batch is the first one of an epoch, or if the data has ended. Meant for the body of a loop, after a step.
  [[nodiscard]] bool is_at_epoch_start() const noexcept { return position_ % size_ == 0; }
  /// Returns the number of batches in each epoch.
  [[nodiscard]] std::uint64_t batches_per_epoch() const noexcept {
    return size_ / options_.batch_size + (!options_.drop_remainder && size_ % options_.batch_size != 0 ? 1 : 0);
  }
  /// Returns the number of epochs after which the data ends. Empty: endless.
  [[nodiscard]] std::optional<std::uint64_t> epochs() const noexcept { return options_.epochs; }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  /// Returns for example "1000 examples, seed 3", or "1000 examples, in order" without shuffling. If the dataset has a `fingerprint()`, its
  /// text is appended. The batch size and the number of epochs are not part of the fingerprint, so a resumed run may change them.
  [[nodiscard]] std::string fingerprint() const {
    auto text = std::to_string(size_) + " examples, " + (options_.shuffle ? "seed " + std::to_string(options_.seed) : "in order");
    if constexpr (requires { std::string_view(examples_.fingerprint()); }) { text.append(", ").append(examples_.fingerprint()); }
    return text;
  }

private:
  void check() const {
    if (size_ == 0) { throw invalid_argument_error("shuffled_batches: the dataset is empty; give it at least one example"); }
    if (options_.batch_size == 0) { throw invalid_argument_error("shuffled_batches: batch_size is 0; give it at least 1"); }
    if (options_.drop_remainder && options_.batch_size > size_) {
      throw invalid_argument_error("shuffled_batches: batch_size is " + std::to_string(options_.batch_size) + ", but there are only " +
                                   std::to_string(size_) + " examples, so no batch can be filled; reduce batch_size, " +
                                   "or set drop_remainder to false");
    }
  }

  [[nodiscard]] std::uint64_t batch_length() const noexcept { return std::min(options_.batch_size, size_ - position_ % size_); }

  void make_current() {
    if (data::example_count(examples_) < size_) [[unlikely]] {
      throw failed_precondition_error(
          "shuffled_batches: the dataset has fewer examples than before; the source was moved from, or the "
          "dataset was changed");
    }
    const random_permutation order(size_, options_.seed, epoch());
    const auto first = position_ % size_;
    indices_.resize(static_cast<std::size_t>(batch_length()));
    for (std::uint64_t i = 0; i < indices_.size(); ++i) {
      indices_[static_cast<std::size_t>(i)] = options_.shuffle ? order(first + i) : first + i;
    }
    const auto& examples = std::as_const(examples_);
    if constexpr (requires(batch& into) { examples.gather(example_indices(), into); }) {
      if (batch_) { return examples.gather(indices_, *batch_); }
    }
    batch_.emplace(data::make_batch(examples, indices_));
  }

  Dataset examples_;
  shuffle_options options_;
  std::uint64_t size_;
  std::uint64_t end_ = 0;  // the position at the end of the last epoch
  std::uint64_t position_ = 0;
  std::vector<std::uint64_t> indices_;
  std::optional<batch> batch_;
  bool is_present_ = false;  // true if `batch_` is the batch at `position_`
};

/// Returns a seekable source of shuffled batches of `examples`. The source refers to an lvalue dataset; an rvalue dataset is moved into the
/// source.
/// @errors   `invalid_argument_error` for an empty dataset, for a batch size of 0, or if `drop_remainder` is true and the batch size is
///   above the number of examples.
/// @lifetime An lvalue dataset must outlive the source and must not change.
template<class Dataset>
  requires dataset<Dataset>
[[nodiscard]] shuffled_source<Dataset> shuffled_batches(Dataset&& examples, shuffle_options options) {
  return shuffled_source<Dataset>(std::forward<Dataset>(examples), std::move(options));
}

/// Like `shuffled_batches`, but each epoch has the order of the dataset. For evaluations, and for data that is in a random order already.
template<class Dataset>
  requires dataset<Dataset>
[[nodiscard]] shuffled_source<Dataset> batches_in_order(Dataset&& examples, shuffle_options options) {
  options.shuffle = false;
  return shuffled_source<Dataset>(std::forward<Dataset>(examples), std::move(options));
}

}  // namespace stepwell::data
