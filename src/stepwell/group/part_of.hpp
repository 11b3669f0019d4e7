// SPDX-License-Identifier: Apache-2.0
//
// The part of each batch that one process of a group computes. Sources, positions and checkpoints stay those of the whole group, so they do
// not depend on the number of processes.
#pragma once

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/data/shuffled_batches.hpp"
#include "stepwell/group/group.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// One of the fixed parts of a batch.
template<class Batch>
struct batch_part {
  int index;  ///< From 0; below `group::parts()`.
  Batch batch;
};

namespace detail {

/// Returns part `index` of `count` parts of `all`. The sizes of the parts differ by at most one.
template<class T>
[[nodiscard]] constexpr std::span<T> part_of_span(std::span<T> all, int index, int count) noexcept {
  const auto begin = all.size() * static_cast<std::size_t>(index) / static_cast<std::size_t>(count);
  const auto end = all.size() * (static_cast<std::size_t>(index) + 1) / static_cast<std::size_t>(count);
  return all.subspan(begin, end - begin);
}

/// The base of the datasets of this header: the examples of the whole group.
template<class Dataset>  // an lvalue reference, or the type of the dataset that is owned
class divided_dataset {
public:
  divided_dataset(Dataset&& examples, std::shared_ptr<group> with) : examples_(std::forward<Dataset>(examples)), group_(std::move(with)) {}

  [[nodiscard]] std::uint64_t size() const { return data::example_count(examples_); }
  [[nodiscard]] std::string fingerprint() const
    requires requires(const std::remove_cvref_t<Dataset>& examples) { std::string_view(examples.fingerprint()); }
  {
    return std::string(examples_.fingerprint());
  }

protected:
  [[nodiscard]] const std::remove_cvref_t<Dataset>& examples() const noexcept { return examples_; }
  [[nodiscard]] const stepwell::group& of() const noexcept { return *group_; }

private:
  Dataset examples_;
  std::shared_ptr<stepwell::group> group_;
};

}  // namespace detail

/// A dataset whose batches contain only the examples of this process. See `part_of`.
template<class Dataset>
class group_part : public detail::divided_dataset<Dataset> {
  using detail::divided_dataset<Dataset>::examples;
  using detail::divided_dataset<Dataset>::of;

public:
  using detail::divided_dataset<Dataset>::divided_dataset;
  using batch_type = data::dataset_batch<Dataset>;

  [[nodiscard]] batch_type batch(data::example_indices indices) const { return data::make_batch(examples(), mine(indices)); }
  void gather(data::example_indices indices, batch_type& into) const
    requires requires(const std::remove_cvref_t<Dataset>& all) { all.gather(indices, into); }
  {
    examples().gather(mine(indices), into);
  }

private:
  [[nodiscard]] data::example_indices mine(data::example_indices indices) const {
    return detail::part_of_span(indices, of().rank(), of().size());
  }
};

/// A dataset. Each of its batches is a vector of the fixed parts that this process computes. See `parts_of`.
template<class Dataset>
class group_parts : public detail::divided_dataset<Dataset> {
  using detail::divided_dataset<Dataset>::examples;
  using detail::divided_dataset<Dataset>::of;

public:
  using detail::divided_dataset<Dataset>::divided_dataset;
  using batch_type = std::vector<batch_part<data::dataset_batch<Dataset>>>;

  [[nodiscard]] batch_type batch(data::example_indices indices) const {
    const auto count = of().parts();
    const std::int64_t rank = of().rank();
    const std::int64_t size = of().size();
    batch_type mine;
    for (auto index = static_cast<int>(count * rank / size); index < count * (rank + 1) / size; ++index) {
      mine.push_back({index, data::make_batch(examples(), detail::part_of_span(indices, index, count))});
    }
    return mine;
  }
};

/// Returns a dataset whose batches contain only the part of this process: each batch of the whole group is divided into one part for each
/// process. Use it in a source of the whole group: `shuffled_batches(part_of(examples, group), {.batch_size = 256})`. The batch size is
/// that of the whole group. The sizes of the parts differ by at most one. Some parts are empty if the batch has fewer examples than the
/// group has processes. The result refers to an lvalue dataset; an rvalue dataset is moved into the result.
/// @threads  Any, like the dataset.
/// @lifetime An lvalue dataset must outlive the result.
template<data::dataset Dataset>
[[nodiscard]] group_part<Dataset> part_of(Dataset&& examples, std::shared_ptr<group> with) {
  return {std::forward<Dataset>(examples), std::move(with)};
}

/// Like `part_of`, but each batch is divided into `group::parts()` fixed parts, and the result is a vector of those parts that this process
/// computes. With `part_sums`, a training then has the same bits for each number of processes up to `group_options::parts`.
template<data::dataset Dataset>
[[nodiscard]] group_parts<Dataset> parts_of(Dataset&& examples, std::shared_ptr<group> with) {
  return {std::forward<Dataset>(examples), std::move(with)};
}

/// The sums of all parts of a batch. Each part is computed by one process, and its sum is zero in all other processes. The sum over the
/// group therefore only adds zeros to each part. Then the parts are added in their order. So the bits of the result depend neither on the
/// number of processes nor on the order in which an engine adds. A sum that is zero is +0.
/// @cost One sum of `group::parts()` times `size` elements for each step.
template<std::floating_point T>
class part_sums {
public:
  /// @errors `resource_exhausted_error` if there is no memory for the sums.
  part_sums(std::shared_ptr<group> with, std::size_t size) : group_(std::move(with)), size_(size) { clear(); }

  /// Returns the sum of the part `index`, into which this process adds. It is zero after `clear`.
  [[nodiscard]] std::span<T> part(int index) noexcept { return std::span(values_).subspan(static_cast<std::size_t>(index) * size_, size_); }
  /// Sets all sums to zero. Call it when a step begins.
  /// @errors `resource_exhausted_error`, only if the group has more parts than before.
  void clear() {
    detail::with_memory("could not allocate the sums of the parts of a batch", {}, [this] {
      std::size_t count = 0;
      if (__builtin_mul_overflow(static_cast<std::size_t>(group_->parts()), size_, &count)) { throw std::bad_alloc(); }
      values_.assign(count, T());
    });
  }
  /// Sums over the group, and returns the sum of all parts.
  /// @errors   Those of `group::sum`.
  /// @lifetime Valid until the next call of a function of this object.
  [[nodiscard]] std::span<const T> sum() {
    group_->sum(values_);
    const auto total = part(0);
    for (auto& value : total) { value += T(); }  // in a group of one process, no zero was added to -0
    for (std::size_t i = size_; i < values_.size(); ++i) { total[i % size_] += values_[i]; }
    return total;
  }

private:
  std::shared_ptr<group> group_;
  std::size_t size_;
  std::vector<T> values_;
};

}  // namespace stepwell
