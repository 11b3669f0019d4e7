// SPDX-License-Identifier: Apache-2.0
//
// Images and labels in memory, and the training batches.
#pragma once

#include "idx.hpp"
#include "xtensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace digits {

/// Examples: one image a row, with pixels from 0 (paper) to 1 (ink), and one label for each image.
struct batch {
  xt::xtensor<float, 2> images;
  xt::xtensor<std::int32_t, 1> labels;
};

/// Labelled images with random access.
class dataset {
public:
  /// @errors Throws `invalid_argument_error` unless there is at least one image, each image has 28x28 pixels, and each
  ///   has one label from 0 to 9.
  dataset(idx_array images, idx_array labels);

  [[nodiscard]] std::uint64_t size() const noexcept { return labels_.elements.size(); }

  /// Returns the examples at `indices`, in that order. @pre Each index is below `size()`.
  [[nodiscard]] digits::batch batch(std::span<const std::uint64_t> indices) const;
  /// Like batch(), but writes to `into` and reuses its memory if it already has the right size.
  void gather(std::span<const std::uint64_t> indices, digits::batch& into) const;

private:
  idx_array images_;
  idx_array labels_;
};

/// The training data and the test data.
struct datasets {
  dataset train;
  dataset test;
};

/// Reads the four MNIST files in `directory`.
/// @errors The typed exception for the failure of a file. It names the file.
[[nodiscard]] datasets load_datasets(stepwell::io::file_system& files, const std::string& directory);

/// Reads the files in `data`. If it is empty, reads those in `run_dir/data`, and renders the missing ones first.
/// @errors Those of `load_datasets` and `make_data_files`.
[[nodiscard]] datasets datasets_for(const std::string& data, const std::string& run_dir);

}  // namespace digits
