// SPDX-License-Identifier: Apache-2.0
//
// Four data files with MNIST's names. Missing files are rendered.
#pragma once

#include <stepwell/io/file_system.hpp>

#include <cstdint>
#include <string>

namespace digits {

inline constexpr auto train_images = "train-images-idx3-ubyte";
inline constexpr auto train_labels = "train-labels-idx1-ubyte";
inline constexpr auto test_images = "t10k-images-idx3-ubyte";
inline constexpr auto test_labels = "t10k-labels-idx1-ubyte";

/// The number of images to render. The training images come first in the numbering, then the test images.
struct rendering {
  std::uint32_t train_size = 10'000;
  std::uint32_t test_size = 2'000;
  std::uint64_t seed = 20;
};

/// Creates the missing files of the four in `directory`. An existing pair of images and labels is not changed. A file
/// is either complete or absent, so the next call completes an interrupted one.
/// @errors The typed exception for the file-system error. It names the file.
void make_data_files(stepwell::io::file_system& files, const std::string& directory, const rendering& wanted = {});

}  // namespace digits
