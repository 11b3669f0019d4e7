// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/temporary_directory.hpp"

#include <idx.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sw = stepwell;
using digits::idx_array;

namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void overwrite(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }

const idx_array two_pictures{{2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255}};

}  // namespace

TEST_CASE("an IDX file reads back as it was written", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  const auto path = place / "pictures";
  REQUIRE(digits::write_idx(*files, path, two_pictures).ok());
  const auto read = digits::read_idx(*files, path, 3);
  REQUIRE(read.ok());
  CHECK(read->sizes == two_pictures.sizes);
  CHECK(read->elements == two_pictures.elements);
  CHECK(std::distance(std::filesystem::directory_iterator(place.path()), {}) == 1);  // no temporary file is left
}

TEST_CASE("an IDX file has the bytes MNIST's files have", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  const auto path = place / "labels";
  REQUIRE(digits::write_idx(*files, path, {{258}, std::vector<std::uint8_t>(258, 7)}).ok());
  CHECK(contents(path) == std::string("\0\0\x08\x01\0\0\x01\x02", 8) + std::string(258, '\x07'));
}

TEST_CASE("an IDX file of no elements is a file like any other", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  const auto path = place / "labels";
  REQUIRE(digits::write_idx(*files, path, {{0}, {}}).ok());
  const auto read = digits::read_idx(*files, path, 1);
  REQUIRE(read.ok());
  CHECK(read->elements.empty());
}

TEST_CASE("an IDX file cut short anywhere, or with a byte to spare, is an error that names it", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  const auto path = place / "pictures";
  REQUIRE(digits::write_idx(*files, path, two_pictures).ok());
  const auto whole = contents(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    overwrite(path, whole.substr(0, size));
    const auto read = digits::read_idx(*files, path, 3);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == sw::errc::data_loss);
    CHECK(read.error().place == path);
  }
  overwrite(path, whole + '\0');
  CHECK_FALSE(digits::read_idx(*files, path, 3).ok());
}

TEST_CASE("a file that is something else is not taken for an IDX file", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  const auto path = place / "pictures";
  REQUIRE(digits::write_idx(*files, path, two_pictures).ok());
  CHECK_FALSE(digits::read_idx(*files, path, 1).ok());  // a different rank
  const auto whole = contents(path);
  for (std::size_t i = 0; i < 4; ++i) {
    auto other = whole;
    other[i] = static_cast<char>(other[i] + 1);
    overwrite(path, other);
    CHECK_FALSE(digits::read_idx(*files, path, 3).ok());
  }
}

TEST_CASE("sizes that no file could hold are refused before anything is allocated", "[digits][idx]") {
  const std::uint32_t huge = 0xFFFFFFFF;
  for (const auto& sizes : {std::vector<std::uint32_t>{huge, huge, huge}, {huge, huge, 1}, {1U << 31, 1U << 31, 4}, {3, 2, 2}, {0, 3, 2}}) {
    const auto head = digits::encode_idx_header(sizes);
    CHECK_FALSE(digits::decode_idx_header(head, 3, head.size() + 6).ok());
  }
  const auto head = digits::encode_idx_header(std::vector<std::uint32_t>{1, 3, 2});
  CHECK(digits::decode_idx_header(head, 3, head.size() + 6).ok());
}

TEST_CASE("a file that is not there, or not a file, is an error that names it", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto files = sw::io::posix_file_system();
  const auto missing = digits::read_idx(*files, place / "nowhere", 1);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == sw::errc::not_found);
  CHECK(missing.error().place.ends_with("nowhere"));
  CHECK_FALSE(digits::read_idx(*files, place.path(), 1).ok());
  CHECK_FALSE(digits::write_idx(*files, place / "no/where", two_pictures).ok());
}

TEST_CASE("a disk that fails while an IDX file is written leaves what was there", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto path = place / "pictures";
  REQUIRE(digits::write_idx(*sw::io::posix_file_system(), path, two_pictures).ok());
  const auto whole = contents(path);
  for (const auto kind : {sw::test::operation::write, sw::test::operation::sync, sw::test::operation::close, sw::test::operation::rename}) {
    sw::test::fault_file_system files;
    files.inject({.kind = kind, .errno_value = ENOSPC});
    const auto written = digits::write_idx(files, path, {{1}, {3}});
    REQUIRE_FALSE(written.ok());
    CHECK(written.error().code == sw::errc::resource_exhausted);
    CHECK(contents(path) == whole);
  }
}

TEST_CASE("a disk that fails while an IDX file is read is an error that names it", "[digits][idx]") {
  const sw::test::temporary_directory place;
  const auto path = place / "pictures";
  REQUIRE(digits::write_idx(*sw::io::posix_file_system(), path, two_pictures).ok());
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    sw::test::fault_file_system files;
    files.inject({.kind = sw::test::operation::read, .nth = nth});
    const auto read = digits::read_idx(files, path, 3);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().place == path);
  }
}
