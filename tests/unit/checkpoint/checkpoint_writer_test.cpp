// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>

#include "support/bundle_oracle.hpp"
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>

#include <fmt/format.h>
#include <array>
#include <complex>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::temporary_directory;

namespace {

template<class T>
std::string bytes_of(const T& value) {
  const auto bytes = sw::view_of(value).bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

}  // namespace

TEST_CASE("LevelDB, protobuf and stepwell read the written files", "[checkpoint][writer]") {
  const temporary_directory directory;
  const auto shards = GENERATE(1, 2, 5);
  std::vector<float> w(1000, 1.5f);
  std::vector<std::int64_t> none;
  std::array<std::complex<double>, 2> z{{{1, 2}, {3, 4}}};
  bool flag = true;
  std::int8_t tiny = -1;
  sw::detail::checkpoint_writer writer(directory / "model.ckpt-1", nullptr, shards);
  writer.add("z", sw::view_of(z));
  writer.add("w", sw::view_of(w));
  writer.add("none", sw::view_of(none));
  writer.add("flag", sw::view_of(flag));
  writer.add("a\xFF", sw::view_of(tiny));
  CHECK(writer.size_bytes() == 4000 + 32 + 2);
  writer.commit();

  const auto tensors = sw::test::read_with_oracle(directory / "model.ckpt-1");
  REQUIRE(tensors.size() == 5);
  CHECK(tensors.at("w").bytes == bytes_of(w));
  CHECK(tensors.at("w").dtype == 1);
  CHECK(tensors.at("w").shape == std::vector<std::int64_t>{1000});
  CHECK(tensors.at("z").bytes == bytes_of(z));
  CHECK(tensors.at("z").dtype == 18);
  CHECK(tensors.at("none").shape == std::vector<std::int64_t>{0});
  CHECK(tensors.at("flag").bytes == std::string("\x01", 1));
  CHECK(tensors.at("a\xFF").dtype == 6);

  const sw::checkpoint_reader reader(directory / "model.ckpt-1");
  reader.verify();
  CHECK(reader.entries().size() == 5);
  CHECK(reader.read("z").as<std::complex<double>>()[1] == std::complex<double>(3, 4));
  CHECK(files_in(directory.path()) == static_cast<std::size_t>(shards) + 1);
}

TEST_CASE("D-28 a tensor of a mebibyte begins at a page of its file, and is read by LevelDB and protobuf, and by us",
          "[checkpoint][writer]") {
  const temporary_directory directory;
  const auto shards = GENERATE(1, 2);
  const std::array<std::uint8_t, 3> small{1, 2, 3};
  std::vector<float> big(1 << 18);
  std::vector<float> bigger(2'000'001);  // needs several writes and does not end at a page boundary
  for (std::size_t i = 0; i < bigger.size(); ++i) { bigger[i] = static_cast<float>(i); }
  for (std::size_t i = 0; i < big.size(); ++i) { big[i] = -static_cast<float>(i); }
  {
    sw::detail::checkpoint_writer writer(directory / "model.ckpt-1", nullptr, shards);
    writer.add("a", sw::view_of(small));
    writer.add("big", sw::view_of(big));
    writer.add("b", sw::view_of(small));
    writer.add("bigger", sw::view_of(bigger));
    writer.add("c", sw::view_of(small));
    writer.commit();
  }
  const auto tensors = sw::test::read_with_oracle(directory / "model.ckpt-1");
  REQUIRE(tensors.size() == 5);
  CHECK(tensors.at("big").offset % 4096 == 0);
  CHECK(tensors.at("bigger").offset % 4096 == 0);
  CHECK((tensors.at("big").bytes == bytes_of(big)));
  CHECK((tensors.at("bigger").bytes == bytes_of(bigger)));
  for (const auto* name : {"a", "b", "c"}) { CHECK(tensors.at(name).bytes == bytes_of(small)); }

  const sw::checkpoint_reader reader(directory / "model.ckpt-1");
  std::vector<float> read(bigger.size());
  reader.read_into("bigger", std::as_writable_bytes(std::span(read)));
  CHECK((read == bigger));
}

TEST_CASE("strings are read back", "[checkpoint][writer]") {
  const temporary_directory directory;
  const std::vector<std::string> words{"", "one", std::string(5000, 'x')};
  sw::detail::checkpoint_writer writer(directory / "s");
  writer.add_strings("words", {3}, words);
  writer.add_strings("nothing", {0, 2}, {});
  writer.commit();
  const sw::checkpoint_reader reader(directory / "s");
  reader.verify();
  const auto read = reader.read("words");
  CHECK(std::vector<std::string>(read.strings().begin(), read.strings().end()) == words);
  CHECK(reader.read("nothing").strings().empty());
  CHECK(sw::test::read_with_oracle(directory / "s").at("nothing").bytes == "\xd8\xea\x82\xa2");
  CHECK_THROWS_AS(sw::detail::checkpoint_writer(directory / "t").add_strings("w", {2}, words), sw::invalid_argument_error);
}

TEST_CASE("a tensor written in slices is put together", "[checkpoint][writer]") {
  const temporary_directory directory;
  std::vector<float> left{1, 2, 5, 6};
  std::vector<float> right{3, 4, 7, 8};
  std::vector<float> whole{9};
  sw::detail::checkpoint_writer writer(directory / "p", nullptr, 2);
  const auto part = [](const std::vector<float>& values, sw::tensor_shape shape) {
    return sw::tensor_view{sw::dtype::float32, std::move(shape), sw::view_of(values).bytes};
  };
  writer.add_slice("t", {2, 4}, {{0, -1}, {0, 2}}, part(left, {2, 2}));
  writer.add_slice("t", {2, 4}, {{0, -1}, {2, 2}}, part(right, {2, 2}));
  writer.add_slice("one", {1}, {{}}, part(whole, {1}));
  CHECK_THROWS_AS(writer.add_slice("t", {2, 8}, {{0, -1}, {2, 2}}, part(right, {2, 2})), sw::invalid_argument_error);
  writer.commit();
  const auto oracle = sw::test::read_with_oracle(directory / "p");
  CHECK(oracle.at("t").slices == 2);
  CHECK(oracle.at("one").slices == 0);
  CHECK(oracle.size() == 4);
  const sw::checkpoint_reader reader(directory / "p");
  reader.verify();
  CHECK(reader.find("t")->is_partitioned);
  CHECK(reader.find("t")->size_bytes == 32);
  const auto read = reader.read("t");
  const auto values = read.as<float>();
  CHECK(std::vector<float>(values.begin(), values.end()) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("names that are empty, taken or like slice keys, and wrong sizes, are refused", "[checkpoint][writer]") {
  const temporary_directory directory;
  std::vector<float> w(3);
  sw::detail::checkpoint_writer writer(directory / "x");
  writer.add("w", sw::view_of(w));
  CHECK_THROWS_AS(writer.add("w", sw::view_of(w)), sw::invalid_argument_error);
  CHECK_THROWS_AS(writer.add("", sw::view_of(w)), sw::invalid_argument_error);
  CHECK_THROWS_AS(writer.add(std::string("\0w", 2), sw::view_of(w)), sw::invalid_argument_error);
  CHECK_THROWS_AS(writer.add("v", {sw::dtype::float32, {4}, sw::view_of(w).bytes}), sw::invalid_argument_error);
  CHECK_THROWS_AS(writer.add("v", {sw::dtype::string, {3}, {}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::detail::checkpoint_writer(directory / "x", nullptr, 0), sw::invalid_argument_error);
}

TEST_CASE("a writer that is not committed, or fails, leaves nothing", "[checkpoint][writer]") {
  const temporary_directory directory;
  std::vector<float> w(3);
  {
    sw::detail::checkpoint_writer writer(directory / "x", nullptr, 3);
    writer.add("w", sw::view_of(w));
  }
  CHECK(files_in(directory.path()) == 0);
  for (std::uint64_t nth = 1;; ++nth) {
    const auto files = std::make_shared<sw::test::fault_file_system>();
    files->inject({.nth = nth, .errno_value = ENOSPC});
    bool has_failed = false;
    try {
      sw::detail::checkpoint_writer writer(directory / "x", files, 2);
      writer.add("w", sw::view_of(w));
      writer.commit();
    } catch (const sw::resource_exhausted_error&) { has_failed = true; }
    if (!has_failed) {
      CHECK(nth > 10);
      break;
    }
    const bool only_last_sync_failed = std::filesystem::exists(directory / "x.index");
    if (only_last_sync_failed) {
      sw::checkpoint_reader(directory / "x").verify();
      for (const auto& entry : std::filesystem::directory_iterator(directory.path())) { std::filesystem::remove(entry); }
    }
    CHECK(files_in(directory.path()) == 0);
  }
}

TEST_CASE("the bytes on disk stay what they were in the first release", "[checkpoint][writer][golden]") {
  const temporary_directory directory;
  const std::string golden = sw::test::golden("/checkpoint/small");
  std::int64_t step = 42;
  std::array<float, 6> w{0.0f, -1.5f, 2.0f, 1e30f, -0.0f, 1.0f / 3};
  const std::vector<std::string> words{"golden", ""};
  const std::array<float, 2> rows{7, 8};
  sw::detail::checkpoint_writer writer(directory / "small", nullptr, 2);
  writer.add("layer/weights", {sw::dtype::float32, {2, 3}, sw::view_of(w).bytes});
  writer.add("global_step", sw::view_of(step));
  writer.add_strings("words", {2}, words);
  writer.add_slice("rows", {2, 1}, {{0, 1}, {}}, {sw::dtype::float32, {1, 1}, sw::view_of(rows).bytes.first(4)});
  writer.add_slice("rows", {2, 1}, {{1, 1}, {}}, {sw::dtype::float32, {1, 1}, sw::view_of(rows).bytes.last(4)});
  writer.commit();
  for (const std::string suffix : {".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
    CAPTURE(suffix);
    CHECK(sw::test::file_text(directory / "small" + suffix) == sw::test::file_text(golden + suffix));
  }
  CHECK(sw::test::read_with_oracle(golden).at("global_step").bytes == bytes_of(step));
  const sw::checkpoint_reader reader(golden);
  reader.verify();
  CHECK(reader.step() == 42);
  CHECK(reader.read("rows").as<float>()[1] == 8);
}

TEST_CASE("small tensors that are written together have the bytes of tensors written one by one", "[checkpoint][writer]") {
  const temporary_directory directory;
  std::vector<std::vector<float>> tensors;  // more than several buffers, with large tensors in between
  for (std::size_t i = 0; i < 300; ++i) { tensors.emplace_back(i % 100 == 50 ? 300'000 : i % 97, static_cast<float>(i)); }
  const auto files = std::make_shared<sw::test::fault_file_system>();
  sw::detail::checkpoint_writer writer(directory / "m", files);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    writer.add("t" + std::to_string(i), sw::view_of(tensors[i]));
    bytes += tensors[i].size() * sizeof(float);
  }
  CHECK(writer.size_bytes() >= bytes);
  writer.commit();
  const sw::checkpoint_reader reader(directory / "m");
  reader.verify();
  for (std::size_t i = 0; i < tensors.size(); i += 11) {
    const auto read = reader.read("t" + std::to_string(i));
    const auto values = read.as<float>();
    CHECK(std::vector<float>(values.begin(), values.end()) == tensors[i]);
  }
  CHECK(reader.entries().size() == tensors.size());
}

TEST_CASE("a reader accepts the index of many names with a long common prefix", "[checkpoint][writer]") {
  const temporary_directory directory;
  const std::int32_t value = 1;
  const auto [count, prefix_size] = GENERATE(std::pair(30'000, 900), std::pair(2'000, 20'000));
  sw::detail::checkpoint_writer writer(directory / "model.ckpt-1");
  for (int i = 0; i < count; ++i) { writer.add(fmt::format("{:n>{}}{}", "", prefix_size, i), sw::view_of(value)); }
  writer.commit();
  CHECK(sw::checkpoint_reader(directory / "model.ckpt-1").entries().size() == static_cast<std::size_t>(count));
}
