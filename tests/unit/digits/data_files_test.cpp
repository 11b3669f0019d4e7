// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <data_files.hpp>
#include <dataset.hpp>
#include <render.hpp>
#include <stepwell/base/error.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace fs = std::filesystem;
namespace sw = stepwell;

namespace {

constexpr digits::rendering few{.train_size = 30, .test_size = 10, .seed = 5};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the files made hold the rendered images, training first", "[digits][data]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  digits::make_data_files(*files, place / "deep/down", few);
  const auto data = digits::load_datasets(*files, place / "deep/down");
  REQUIRE(data.train.size() == 30);
  REQUIRE(data.test.size() == 10);
  const std::uint64_t third[] = {3};
  const auto read = data.test.batch(third);
  const auto drawn = digits::render(5, 33);
  CHECK(read.labels(0) == drawn.digit);
  for (std::size_t i = 0; i < digits::image_pixels; ++i) { REQUIRE(read.images(0, i) == static_cast<float>(drawn.pixels[i]) / 255.0F); }
}

TEST_CASE("a missing file is made anew with the same bytes, also after an interrupted run", "[digits][data]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  digits::make_data_files(*files, place.path(), few);
  const auto before = contents(place / digits::train_labels);
  fs::remove(place / digits::train_labels);
  std::ofstream(place / ".tmp-17-1-half") << "half";
  digits::make_data_files(*files, place.path(), few);
  CHECK(contents(place / digits::train_labels) == before);
  CHECK(std::distance(fs::directory_iterator(place.path()), {}) == 4);
}

TEST_CASE("a run killed at any operation on the disk is made good by the next", "[digits][data]") {
  for (std::uint64_t instant = 1;; ++instant) {
    const sw::test::log_capture quiet;
    const sw::test::temporary_directory place;
    sw::test::fault_file_system files;
    files.crash_at(instant);
    try {
      digits::make_data_files(files, place.path(), few);
    } catch (const sw::error&) {}
    const auto crashed = files.has_crashed();
    digits::make_data_files(*sw::io::posix_file_system(), place.path(), few);
    const auto data = digits::load_datasets(*sw::io::posix_file_system(), place.path());
    CHECK(data.train.size() == 30);
    CHECK(data.test.size() == 10);
    CHECK(std::distance(fs::directory_iterator(place.path()), {}) == 4);
    if (!crashed) { break; }
  }
}

TEST_CASE("files that are there are left alone", "[digits][data]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  digits::make_data_files(*files, place.path(), few);
  const auto before = contents(place / digits::test_images);
  digits::make_data_files(*files, place.path(), {.train_size = 30, .test_size = 10, .seed = 6});
  CHECK(contents(place / digits::test_images) == before);
}

TEST_CASE("a directory without the files, or with files that do not fit together, names what is wrong", "[digits][data]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  CHECK_THROWS_AS(digits::load_datasets(*files, place.path()), sw::not_found_error);
  digits::make_data_files(*files, place.path(), few);
  fs::copy_file(place / digits::test_labels, place / digits::train_labels, fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(digits::load_datasets(*files, place.path()),
                    ContainsSubstring("30 images but 10 labels") && ContainsSubstring(digits::train_images));
}

TEST_CASE("a dataset refuses labels that are no digits and images of another size", "[digits][data]") {
  const std::vector<std::uint8_t> pixels(digits::image_pixels);
  CHECK_NOTHROW(digits::dataset({{1, 28, 28}, pixels}, {{1}, {9}}));
  CHECK_THROWS_AS(digits::dataset({{1, 28, 28}, pixels}, {{1}, {10}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(digits::dataset({{1, 14, 56}, pixels}, {{1}, {9}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(digits::dataset({{0, 28, 28}, {}}, {{0}, {}}), sw::invalid_argument_error);
}

TEST_CASE("a data directory that cannot be made is an error that names it", "[digits][data]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  std::ofstream(place / "file") << "in the way";
  CHECK_THROWS_WITH(digits::make_data_files(*files, place / "file/data", few), ContainsSubstring(place / "file"));
}
