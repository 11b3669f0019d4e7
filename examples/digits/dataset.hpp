// SPDX-License-Identifier: Apache-2.0
//
// Images and labels in memory, and the batches a network trains on.
#pragma once

#include "idx.hpp"
#include "xtensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace digits {

/// Some examples: one image a row, pixels from 0 (paper) to 1 (ink), and what each shows.
struct batch {
  xt::xtensor<float, 2> images;
  xt::xtensor<std::int32_t, 1> labels;
};

/// Labelled images, any of which is reached at once.
class dataset {
public:
  /// @errors `invalid_argument_error` unless there is one label from 0 to 9 for each of at least one 28x28 image.
  dataset(idx_array images, idx_array labels);

  [[nodiscard]] std::uint64_t size() const noexcept { return labels_.elements.size(); }

  /// The examples at `indices`, in that order. @pre Each is below `size()`.
  [[nodiscard]] digits::batch batch(std::span<const std::uint64_t> indices) const;
  /// The same into `into`, whose memory is used again if it has the right size already.
  void gather(std::span<const std::uint64_t> indices, digits::batch& into) const;

private:
  idx_array images_;
  idx_array labels_;
};

/// What one learns from, and what shows how much was learnt.
struct datasets {
  dataset train;
  dataset test;
};

/// The four MNIST files in `directory`.
/// @errors The typed exception of what is wrong with a file, naming it.
[[nodiscard]] datasets load_datasets(stepwell::io::file_system& files, const std::string& directory);

}  // namespace digits
