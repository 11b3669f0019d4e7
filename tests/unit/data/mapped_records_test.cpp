// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/record_files.hpp>
#include <stepwell/data/shuffled_batches.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

std::string text_of(data::mapped_records::record bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct record_rig {
  record_rig() {
    write_file_text(directory / "a", "##aabbcc");
    write_file_text(directory / "b", "##");
    write_file_text(directory / "c", "##ddee");
  }
  [[nodiscard]] data::mapped_records records() const {
    return data::mapped_records({.paths = {directory / "a", directory / "b", directory / "c"}, .record_size = 2, .header_size = 2});
  }
  temporary_directory directory;
};

static_assert(data::dataset<data::mapped_records>);

}  // namespace

TEST_CASE("mapped_records is the dataset of the records of all files", "[data][mapped_records]") {
  const record_rig files;
  const auto records = files.records();
  REQUIRE(records.size() == 5);
  std::string all;
  for (std::uint64_t i = 0; i < records.size(); ++i) { all += text_of(records[i]); }
  CHECK(all == "aabbccddee");
  CHECK(records.fingerprint() == "a and 2 more, 5 records of 2 bytes");
}

TEST_CASE("a source over mapped records is seekable, in order or shuffled, also ahead on threads", "[data][mapped_records]") {
  const record_rig files;
  auto in_order = data::batches_in_order(files.records(), {.batch_size = 2, .epochs = 1});
  in_order.seek(2);
  std::string seen;
  for (; in_order.peek() != nullptr; in_order.advance()) {
    for (const auto& record : *in_order.peek()) { seen += text_of(record); }
  }
  CHECK(seen == "ccddee");
  auto ahead = data::prefetch(data::shuffled_batches(files.records(), {.batch_size = 1, .seed = 4, .epochs = 1}), {.threads = 2});
  CHECK(ahead.fingerprint() == "5 examples, seed 4, a and 2 more, 5 records of 2 bytes");
  std::vector<std::string> drawn;
  for (; ahead.peek() != nullptr; ahead.advance()) { drawn.push_back(text_of(ahead.peek()->front())); }
  std::ranges::sort(drawn);
  CHECK(drawn == std::vector<std::string>{"aa", "bb", "cc", "dd", "ee"});
}

TEST_CASE("files and sizes that do not fit together are refused with the reason", "[data][mapped_records]") {
  const record_rig files;
  const auto a = files.directory / "a";
  CHECK_THROWS_WITH(data::mapped_records({.record_size = 2}), ContainsSubstring("paths is empty"));
  CHECK_THROWS_WITH(data::mapped_records({.paths = {a}}), ContainsSubstring("record_size is 0"));
  CHECK_THROWS_WITH(data::mapped_records({.paths = {a}, .record_size = 3}), ContainsSubstring("ends with 2 bytes of a record of 3"));
  CHECK_THROWS_WITH(data::mapped_records({.paths = {a}, .record_size = 3, .header_size = 9}), ContainsSubstring("its header 9"));
  CHECK_THROWS_AS(data::mapped_records({.paths = {files.directory / "absent"}, .record_size = 1}), sw::not_found_error);
  CHECK_THROWS_WITH(data::mapped_records({.paths = {files.directory.path()}, .record_size = 1}), ContainsSubstring("not a regular file"));
  const auto none = data::mapped_records({.paths = {files.directory / "b"}, .record_size = 2, .header_size = 2});
  CHECK(none.size() == 0);
  CHECK_THROWS_WITH(data::shuffled_batches(none, {}), ContainsSubstring("the dataset is empty"));
}
