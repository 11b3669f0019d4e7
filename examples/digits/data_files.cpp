// SPDX-License-Identifier: Apache-2.0
#include "data_files.hpp"

#include "idx.hpp"
#include "render.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/io/atomic_file.hpp>
#include <stepwell/io/file_system.hpp>

#include <algorithm>
#include <iterator>

namespace digits {
namespace {

namespace sw = stepwell;

struct pair_of_files {
  std::string images;
  std::string labels;
};

bool exist(sw::io::file_system& files, const pair_of_files& names) {
  return sw::value_or_throw(files.exists(names.images)) && sw::value_or_throw(files.exists(names.labels));
}

/// Renders images `first` to `first + count` into the two files.
void render_into(sw::io::file_system& files, const pair_of_files& names, std::uint64_t seed, std::uint32_t first, std::uint32_t count) {
  idx_array pictures{{count, image_side, image_side}, {}};
  idx_array meanings{{count}, {}};
  pictures.elements.reserve(count * image_pixels);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto made = render(seed, first + i);
    std::ranges::copy(made.pixels, std::back_inserter(pictures.elements));
    meanings.elements.push_back(made.digit);
  }
  sw::value_or_throw(write_idx(files, names.images, pictures));
  sw::value_or_throw(write_idx(files, names.labels, meanings));
}

/// Removes the temporary files of a run that was killed.
void sweep(sw::io::file_system& files, const std::string& directory) {
  for (const auto& name : sw::value_or_throw(files.list(directory))) {
    if (sw::io::is_temporary_name(name)) { sw::value_or_throw(files.remove(sw::io::join_path(directory, name))); }
  }
}

}  // namespace

void make_data_files(sw::io::file_system& files, const std::string& directory, const rendering& wanted) {
  const auto inside = [&](const char* name) { return sw::io::join_path(directory, name); };
  const pair_of_files train{inside(train_images), inside(train_labels)};
  const pair_of_files test{inside(test_images), inside(test_labels)};
  if (exist(files, train) && exist(files, test)) { return; }

  sw::value_or_throw(files.create_directories(directory));
  sweep(files, directory);
  if (!exist(files, train)) { render_into(files, train, wanted.seed, 0, wanted.train_size); }
  if (!exist(files, test)) { render_into(files, test, wanted.seed, wanted.train_size, wanted.test_size); }
}

}  // namespace digits
