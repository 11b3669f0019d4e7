// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/restore.hpp>

#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_variables.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/checkpoint_writer.hpp>

#include <memory>
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
  sw::checkpoint_writer writer(directory / "m");
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
  CHECK(contains(message, "w: checkpoint has DT_FLOAT [4], model has DT_FLOAT [5]"));
  CHECK(contains(message, "global_step: checkpoint has DT_INT64 [], model has DT_INT32 []"));
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
  CHECK(contains(text, "the variables hold a mixture of old and restored values"));
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
  CHECK(files->operations(sw::test::operation::read) - before == 5 + (verifies_first ? 2U : 0U));  // five tensors
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

  sw::checkpoint_writer writer(directory / "m");
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
