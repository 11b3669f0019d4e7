// SPDX-License-Identifier: Apache-2.0
//
// Four files named as MNIST names them, made by the renderer where there are none.
#pragma once

#include <stepwell/io/file_system.hpp>

#include <cstdint>
#include <string>

namespace digits {

inline constexpr auto train_images = "train-images-idx3-ubyte";
inline constexpr auto train_labels = "train-labels-idx1-ubyte";
inline constexpr auto test_images = "t10k-images-idx3-ubyte";
inline constexpr auto test_labels = "t10k-labels-idx1-ubyte";

/// How much to render. The images are numbered through: first those to train on, then those to test with.
struct rendering {
  std::uint32_t train_size = 10'000;
  std::uint32_t test_size = 2'000;
  std::uint64_t seed = 20;
};

/// Sees to it that `directory` holds all four files. A pair of images and labels that is there is left alone; a file is
/// either whole or not there, so an interrupted call is made good by the next.
/// @errors The typed exception of what the file system refuses, naming the file.
void make_data_files(stepwell::io::file_system& files, const std::string& directory, const rendering& wanted = {});

}  // namespace digits
