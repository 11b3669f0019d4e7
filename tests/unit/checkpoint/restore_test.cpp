// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/restore.hpp>

#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_variables.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <stepwell/kernel/detail/crc32c.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::toy_at;

namespace {

/// Writes the checkpoint "m" with float32 w [4], int64 global_step, and two notes.
std::string write_model(const sw::test::temporary_directory& directory) {
  std::vector<float> w{1, 2, 3, 4};
  std::int64_t step = 9;
  std::int32_t version = 1;
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("w", sw::view_of(w));
  writer.add("global_step", sw::view_of(step));
  writer.add("stepwell/saver/version", sw::view_of(version));
  writer.add("spare", sw::view_of(version));
  const std::vector<std::string> graph{"graph"};
  writer.add_strings("_CHECKPOINTABLE_OBJECT_GRAPH", {}, graph);
  writer.commit();
  return directory / "m";
}

template<class Error, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& failure) { return failure.what(); }
  FAIL("nothing of the kind was thrown");
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a model is restored by name, and the report says what was and was not used", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> w(4);
  const auto report = sw::restore(sw::variables({{"w", w}}), reader);
  CHECK(w == std::vector<float>{1, 2, 3, 4});
  CHECK(report.restored == std::vector<std::string>{"w"});
  CHECK(report.missing.empty());
  CHECK(report.unused == std::vector<std::string>{"global_step", "spare"});
}

TEST_CASE("a name of ours may stand for another in the checkpoint", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> kernel(4);
  const auto report = sw::restore(sw::variables({{"dense/kernel", kernel}}), reader, {.names = {{"dense/kernel", "w"}}});
  CHECK(kernel == std::vector<float>{1, 2, 3, 4});
  CHECK(report.restored == std::vector<std::string>{"dense/kernel"});
}

TEST_CASE("a renamed variable that the model does not have is an error, and nothing is restored", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> w(4, 7);
  const sw::restore_options options{.names = {{"w", "w"}, {"dense/kernl", "w"}}, .allow_missing = true};
  const auto message = message_of<sw::invalid_argument_error>([&] { sw::restore(sw::variables({{"w", w}}), reader, options); });
  CHECK(contains(message, "\"dense/kernl\""));
  CHECK(w == std::vector<float>(4, 7));
}

TEST_CASE("CKPT-9 variables the checkpoint lacks are an error that lists them, and nothing is written", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> w(4, 7);
  float a = 0;
  float b = 0;
  const auto list = sw::variables({{"w", w}, {"a", a}, {"b", b}});
  const auto message = message_of<sw::not_found_error>([&] { sw::restore(list, reader, {.names = {{"b", "their_b"}}}); });
  CHECK(contains(message, "the model and the checkpoint differ"));
  CHECK(contains(message, "\n  a"));
  CHECK(contains(message, "b (\"their_b\" in the checkpoint)"));
  CHECK(contains(message, "/m:"));
  CHECK(w == std::vector<float>(4, 7));
}

TEST_CASE("missing variables may be allowed: they keep their value", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> w(4);
  float fresh = 5;
  const auto report = sw::restore(sw::variables({{"fresh", fresh}, {"w", w}}), reader, {.allow_missing = true});
  CHECK(fresh == 5);
  CHECK(w[3] == 4);
  CHECK(report.missing == std::vector<std::string>{"fresh"});
  CHECK(report.restored == std::vector<std::string>{"w"});
}

TEST_CASE("CKPT-9 every dtype and shape that differs is listed, with both sides, and nothing is written", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> w(5, 7);
  std::int32_t step = 3;
  float gone = 0;
  const auto list = sw::variables({{"w", w}, {"global_step", step}, {"gone", gone}});
  const auto message = message_of<sw::invalid_argument_error>([&] { sw::restore(list, reader); });
  CHECK(contains(message, "w: checkpoint has float32 [4], model has float32 [5]"));
  CHECK(contains(message, "global_step: checkpoint has int64 [], model has int32 []"));
  CHECK(contains(message, "gone"));
  CHECK(w == std::vector<float>(5, 7));
  CHECK(step == 3);
}

TEST_CASE("a damaged tensor is found before anything is written", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const auto prefix = write_model(directory);
  const auto data = prefix + ".data-00000-of-00001";
  auto bytes = sw::test::file_text(data);
  bytes[16] = static_cast<char>(bytes[16] ^ 4);  // in global_step, after w
  sw::test::write_file_text(data, bytes);
  const sw::checkpoint_reader reader(prefix);
  std::vector<float> w(4, 7);
  std::int64_t step = 3;
  const auto message = message_of<sw::data_loss_error>([&] { sw::restore(sw::variables({{"w", w}, {"global_step", step}}), reader); });
  CHECK(contains(message, "global_step"));
  CHECK(w == std::vector<float>(4, 7));
}

TEST_CASE("read once, a damaged tensor leaves a mixture, and the error says so", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const auto prefix = write_model(directory);
  const auto data = prefix + ".data-00000-of-00001";
  auto bytes = sw::test::file_text(data);
  bytes[16] = static_cast<char>(bytes[16] ^ 4);  // in global_step, after w
  sw::test::write_file_text(data, bytes);
  const sw::checkpoint_reader reader(prefix);
  std::vector<float> w(4, 7);
  std::int64_t step = 3;
  const auto message = [&](const sw::variable_list& list) {
    return message_of<sw::data_loss_error>([&] { sw::restore(list, reader, {.verify_first = false}); });
  };
  auto optional_step = sw::variables({{"w", w}});
  optional_step.push_back(sw::variable_ref("global_step", step).optional());
  for (const auto& unwritten : {optional_step, sw::variables({{"w", w}})}) {
    const auto text = message(unwritten);  // a tensor that is optional, or not restored, is checked before anything is written
    CHECK(contains(text, "global_step"));
    CHECK_FALSE(contains(text, "mixture"));
    CHECK(w == std::vector<float>(4, 7));
    CHECK(step == 3);
  }
  const auto text = message(sw::variables({{"w", w}, {"global_step", step}}));
  CHECK(contains(text, "global_step"));
  CHECK(contains(text, "the variables may hold a mixture of old and restored values"));
  CHECK(w == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("read once, a restore reads no tensor twice, and checks those that no variable takes", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const auto files = std::make_shared<sw::test::fault_file_system>();
  const auto prefix = write_model(directory);
  const bool verifies_first = GENERATE(false, true);
  const sw::checkpoint_reader reader(prefix, files);
  const auto before = files->operations(sw::test::operation::read);
  std::vector<float> w(4);
  std::int64_t step = 0;
  sw::restore(sw::variables({{"w", w}, {"global_step", step}}), reader, {.verify_first = verifies_first});
  CHECK(w == std::vector<float>{1, 2, 3, 4});
  CHECK(step == 9);
  // Small tensors are read together, and the strings apart. Read once: the three others one by one, then both variables together.
  CHECK(files->operations(sw::test::operation::read) - before == (verifies_first ? 3U : 4U));
}

TEST_CASE("a snapshot restores by the same rules", "[checkpoint][restore]") {
  const auto taken = sw::test::toy_snapshot(4);
  auto toy = toy_at(1);
  float extra = 2;
  CHECK_THROWS_AS(sw::restore(sw::variables({{"extra", extra}}), taken), sw::not_found_error);
  CHECK_THROWS_AS(sw::restore(sw::variables({{"trained", extra}}), taken), sw::invalid_argument_error);
  const auto report = sw::restore(sw::variables({{"step", toy.global_step}}), taken, {.names = {{"step", "global_step"}}});
  CHECK(toy.global_step == 4);
  CHECK(report.unused.size() == 3);
}

TEST_CASE("strings are captured and restored with sizes that change", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  std::vector<std::string> labels = {"a", "", std::string(1000, 'z')};
  float weight = 2;
  const auto list = [&] { return sw::variables({{"labels", labels}, {"weight", weight}}); };
  sw::snapshot_pool pool(sw::snapshot_size(list()), 1);
  auto taken = sw::snapshot::capture(pool.acquire(), list(), 1);
  const auto first = labels;
  labels[1] = "longer";
  weight = 3;
  sw::restore(list(), taken);
  CHECK(labels == first);
  CHECK(weight == 2);

  taken = {};  // returns the buffer
  labels = {"other", "sizes", "now"};
  taken = sw::snapshot::capture(pool.acquire(), list(), 2);
  CHECK(taken.find("labels")->strings == labels);

  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add_strings("labels", {3}, first);
  writer.add("weight", sw::view_of(weight));
  writer.commit();
  const sw::checkpoint_reader reader(directory / "m");
  sw::restore(list(), reader);
  CHECK(labels == first);
  std::vector<std::string> fewer(2);
  CHECK_THROWS_AS(sw::restore(sw::variables({{"labels", fewer}}), reader), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::restore(sw::variables({{"labels", weight}}), reader), sw::invalid_argument_error);
}

TEST_CASE("an optional variable that the checkpoint lacks keeps its value and is reported", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> w(4);
  float extra = 5;
  const sw::variable_ref variable("extra", extra);
  const auto report = sw::restore({{"w", w}, variable.optional()}, reader);
  CHECK(report.missing == std::vector<std::string>{"extra"});
  CHECK(extra == 5);
  CHECK_THROWS_AS(sw::restore({{"w", w}, variable}, reader), sw::not_found_error);
  CHECK_THROWS_AS(sw::restore({sw::variable_ref("w", extra).optional()}, reader), sw::invalid_argument_error);  // it is there, but differs
}

namespace {

/// A model with large and small variables, of which some cross the boundaries of the pieces that are read at once.
struct mixed_model {
  std::vector<std::vector<double>> large;
  std::vector<std::vector<std::int16_t>> small;

  explicit mixed_model(int seed) {
    for (const std::size_t count : {std::size_t{400'001}, std::size_t{8192}, std::size_t{262'144}}) {
      auto& layer = large.emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) { layer[i] = static_cast<double>(i) + seed; }
    }
    for (std::size_t i = 0; i < 20'000; ++i) { small.emplace_back(i % 61, static_cast<std::int16_t>(i + static_cast<std::size_t>(seed))); }
  }
  [[nodiscard]] sw::variable_list list() {
    sw::variable_list made;
    for (std::size_t i = 0; i < small.size(); ++i) {
      made.emplace_back("s/" + std::to_string(i * 7919 % small.size()), small[i]);  // neither in the order of names nor of sizes
      if (i % 7000 == 5000) { made.emplace_back("large/" + std::to_string(9 - i / 7000), large[i / 7000]); }
    }
    return made;
  }
  friend bool operator==(const mixed_model&, const mixed_model&) = default;
};

std::string save_mixed(const sw::test::temporary_directory& directory, mixed_model& model, int shards) {
  sw::detail::checkpoint_writer writer(directory / "m", nullptr, shards);
  for (const auto& variable : model.list()) { writer.add(variable.name(), variable.view()); }
  writer.commit();
  return directory / "m";
}

}  // namespace

TEST_CASE("large and small variables are read into their places, from any number of files", "[checkpoint][restore]") {
  for (const int shards : {1, 3}) {
    for (const bool verify_first : {true, false}) {
      CAPTURE(shards, verify_first);
      const sw::test::temporary_directory directory;
      mixed_model saved(5);
      const sw::checkpoint_reader reader(save_mixed(directory, saved, shards));
      mixed_model restored(0);
      const auto report = sw::restore(restored.list(), reader, {.verify_first = verify_first});
      CHECK(restored == saved);
      CHECK(report.restored.size() == restored.list().size());
      CHECK(report.unused.empty());
    }
  }
}

TEST_CASE("one damaged byte in any variable of many is found and named", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  mixed_model saved(5);
  const auto prefix = save_mixed(directory, saved, 1);
  const auto file = prefix + ".data-00000-of-00001";
  const auto whole = sw::test::file_text(file);
  for (const std::string name : {"s/3", "s/19999", "large/9", "large/7"}) {
    CAPTURE(name);
    const sw::variable_list list = saved.list();
    const auto at = std::ranges::find(list, name, &sw::variable_ref::name);
    REQUIRE(at != list.end());
    if (at->bytes().empty()) { continue; }
    auto damaged = whole;
    const auto value = at->bytes();
    // not with std::string::rfind: the thread sanitizer looks at all bytes of each comparison of memcmp
    const auto place = std::ranges::find_end(damaged, value, {}, [](char one) { return static_cast<std::byte>(one); });
    REQUIRE_FALSE(place.empty());
    place.back() = static_cast<char>(place.back() ^ 1);
    sw::test::write_file_text(file, damaged);
    mixed_model restored(0);
    const sw::checkpoint_reader reader(prefix);
    const auto once = message_of<sw::data_loss_error>([&] { sw::restore(restored.list(), reader, {.verify_first = false}); });
    CHECK(contains(once, "hold a mixture"));
    CHECK(contains(once, "checksum does not match"));
    mixed_model untouched(0);
    const auto first = message_of<sw::data_loss_error>([&] { sw::restore(untouched.list(), reader); });
    CHECK(contains(first, "checksum does not match"));
    CHECK(untouched == mixed_model(0));
  }
}

TEST_CASE("D-28 large tensors that are not in the cache are read past it, each byte once", "[checkpoint][restore]") {
  for (const int shards : {1, 3}) {
    CAPTURE(shards);
    const sw::test::temporary_directory directory;
    mixed_model saved(5);
    const auto prefix = save_mixed(directory, saved, shards);
    const auto files = std::make_shared<sw::test::fault_file_system>();
    files->report_uncached();
    const sw::checkpoint_reader reader(prefix, files);
    mixed_model restored(0);
    sw::restore(restored.list(), reader, {.verify_first = false});
    CHECK(restored == saved);
    CHECK(files->uncached_reads() == 3);  // 3.2 MB in two parts, 2.1 MB in one; the third large tensor has 64 KiB
  }
}

TEST_CASE("D-28 tensors that begin and end inside a page are read past the cache, too", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  std::vector<float> a(900'001);
  std::vector<float> b(300'000);
  for (std::size_t i = 0; i < a.size(); ++i) { a[i] = static_cast<float>(i); }
  for (std::size_t i = 0; i < b.size(); ++i) { b[i] = -static_cast<float>(i); }
  const auto text_of = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  const auto entry_at = [&](std::size_t offset, const std::vector<float>& values) {
    const auto crc = sw::kernel::crc32c_mask(sw::kernel::crc32c(std::as_bytes(std::span(values))));
    return sw::format::bundle_entry{.dtype = sw::dtype::float32,
                                    .shape = {static_cast<std::int64_t>(values.size())},
                                    .offset = static_cast<std::int64_t>(offset),
                                    .size = static_cast<std::int64_t>(values.size() * sizeof(float)),
                                    .crc32c = crc,
                                    .slices = {}};
  };
  const std::string before(13, '-');
  sw::format::table_writer table;
  REQUIRE(table.add("", encode(sw::format::bundle_header())));
  REQUIRE(table.add("a", encode(entry_at(before.size(), a))));
  REQUIRE(table.add("b", encode(entry_at(before.size() + a.size() * sizeof(float), b))));
  sw::test::write_file_text(directory / "m.index", table.finish());
  sw::test::write_file_text(directory / "m.data-00000-of-00001", before + text_of(a) + text_of(b));

  const auto files = std::make_shared<sw::test::fault_file_system>();
  files->report_uncached();
  const sw::checkpoint_reader reader(directory / "m", files);
  std::vector<float> restored_a(a.size());
  std::vector<float> restored_b(b.size());
  sw::restore(sw::variables({{"a", restored_a}, {"b", restored_b}}), reader, {.verify_first = false});
  CHECK(restored_a == a);
  CHECK(restored_b == b);
  CHECK(files->uncached_reads() == 3);
}

TEST_CASE("D-28 past the cache, too, a failed read, damage and a file that became shorter end the restore", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  std::vector<float> w(1'500'000, 1.5f);
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("w", sw::view_of(w));
  writer.commit();
  const auto file = directory / "m.data-00000-of-00001";
  const auto whole = sw::test::file_text(file);
  const auto files = std::make_shared<sw::test::fault_file_system>();
  files->report_uncached();
  const auto restore = [&] {
    const sw::checkpoint_reader reader(directory / "m", files);
    sw::restore(sw::variables({{"w", w}}), reader, {.verify_first = false});
  };
  restore();
  REQUIRE(files->uncached_reads() == 3);

  auto damaged = whole;
  damaged[5'000'000] = static_cast<char>(damaged[5'000'000] ^ 1);
  sw::test::write_file_text(file, damaged);
  CHECK(contains(message_of<sw::data_loss_error>(restore), "tensor \"w\": its checksum does not match"));

  sw::test::write_file_text(file, whole);
  files->before_each([&](const sw::test::event& now) {
    if (now.kind == sw::test::operation::read && now.path == file) { std::filesystem::resize_file(file, 100'000); }
  });
  CHECK(contains(message_of<sw::data_loss_error>(restore), "tensor \"w\": its data file became shorter"));

  sw::test::write_file_text(file, whole);
  files->before_each({});
  files->inject({.kind = sw::test::operation::read, .path_contains = ".data-", .nth = 3, .errno_value = EIO});
  const auto message = message_of<sw::error>(restore);
  CHECK(contains(message, "injected by a test"));
  CHECK(contains(message, "hold a mixture"));
}

TEST_CASE("two variables may be restored from one tensor", "[checkpoint][restore]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> a(4);
  std::vector<float> b(4);
  sw::restore(sw::variables({{"a", a}, {"b", b}}), reader, {.names = {{"a", "w"}, {"b", "w"}}});
  CHECK(a == std::vector<float>{1, 2, 3, 4});
  CHECK(b == a);
}

TEST_CASE("many targets are read at once, and a wrong size is refused before anything is read", "[checkpoint][reader]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(write_model(directory));
  std::vector<float> w(4);
  std::int64_t step = 0;
  const std::vector<sw::read_target> targets{{reader.find("w"), std::as_writable_bytes(std::span(w))},
                                             {reader.find("global_step"), std::as_writable_bytes(std::span(&step, 1))}};
  reader.read_into(targets);
  CHECK(w == std::vector<float>{1, 2, 3, 4});
  CHECK(step == 9);
  w[0] = 7;
  const std::vector<sw::read_target> wrong{{reader.find("w"), std::as_writable_bytes(std::span(w))}, {reader.find("spare"), {}}};
  CHECK_THROWS_AS(reader.read_into(wrong), sw::invalid_argument_error);
  const std::vector<sw::read_target> strings{{reader.find("_CHECKPOINTABLE_OBJECT_GRAPH"), {}}};
  CHECK_THROWS_AS(reader.read_into(strings), sw::invalid_argument_error);
  CHECK(w[0] == 7);
}
