// SPDX-License-Identifier: Apache-2.0
#include "dataset.hpp"

#include "data_files.hpp"
#include "render.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/io/file_system.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace digits {
namespace {

namespace sw = stepwell;

dataset load(sw::io::file_system& files, const std::string& directory, const char* images, const char* labels) {
  const auto images_path = sw::io::join_path(directory, images);
  const auto labels_path = sw::io::join_path(directory, labels);
  try {
    return {sw::value_or_throw(read_idx(files, images_path, 3)), sw::value_or_throw(read_idx(files, labels_path, 1))};
  } catch (const sw::invalid_argument_error& failure) {
    throw sw::invalid_argument_error(failure.cause().message, images_path + " and " + labels);
  }
}

}  // namespace

dataset::dataset(idx_array images, idx_array labels) : images_(std::move(images)), labels_(std::move(labels)) {
  if (images_.sizes.size() != 3 || images_.sizes[1] != image_side || images_.sizes[2] != image_side) {
    throw sw::invalid_argument_error("the images are not 28x28 pixels, which the network requires");
  }
  if (images_.sizes[0] != size() || size() == 0) {
    throw sw::invalid_argument_error("there are " + std::to_string(images_.sizes[0]) + " images but " + std::to_string(size()) +
                                     " labels; each image needs one");
  }
  if (std::ranges::any_of(labels_.elements, [](std::uint8_t label) { return label > 9; })) {
    throw sw::invalid_argument_error("a label is not a digit from 0 to 9");
  }
}

digits::batch dataset::batch(std::span<const std::uint64_t> indices) const {
  digits::batch made;
  gather(indices, made);
  return made;
}

void dataset::gather(std::span<const std::uint64_t> indices, digits::batch& into) const {
  into.images.resize({indices.size(), image_pixels});
  into.labels.resize({indices.size()});
  float* pixel = into.images.data();
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const auto image = std::span(images_.elements).subspan(indices[row] * image_pixels, image_pixels);
    pixel = std::ranges::transform(image, pixel, [](std::uint8_t ink) { return static_cast<float>(ink) / 255.0F; }).out;
    into.labels(row) = labels_.elements[indices[row]];
  }
}

datasets load_datasets(sw::io::file_system& files, const std::string& directory) {
  return {load(files, directory, train_images, train_labels), load(files, directory, test_images, test_labels)};
}

datasets datasets_for(const std::string& data, const std::string& run_dir) {
  const auto files = stepwell::io::posix_file_system();
  if (!data.empty()) { return load_datasets(*files, data); }
  const auto directory = stepwell::io::join_path(run_dir, "data");
  make_data_files(*files, directory);
  return load_datasets(*files, directory);
}

}  // namespace digits
