// SPDX-License-Identifier: Apache-2.0
//
// MetaGraphDefs that someone has changed, given to TensorFlow's own library: each is a typed error, or a graph that trains.
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/tensorflow/detail/meta_graph.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

std::string bytes_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The MetaGraphDef of the graph `mlp`. The graph has a text form, which a test changes.
struct crafted {
  crafted() {
    REQUIRE(meta.ParseFromString(bytes_of(STEPWELL_TENSORFLOW_DATA "/graph/mlp/model.ckpt-0.meta")));
    text = tf::detail::graph_text(meta.graph_def()).value();
  }

  /// Replaces the first `from` behind the name of the node `node`.
  void replace(std::string_view node, std::string_view from, std::string_view to) {
    const auto name = text.find("name: \"" + std::string(node) + "\"");
    REQUIRE(name != std::string::npos);
    const auto at = text.find(from, name);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  auto& nodes_of(const std::string& collection) { return *(*meta.mutable_collection_def())[collection].mutable_node_list(); }
  auto& messages_of(const std::string& collection) { return *(*meta.mutable_collection_def())[collection].mutable_bytes_list(); }

  std::string encoded() {
    meta.set_graph_def(tf::detail::graph_of_text(text).value());
    return meta.SerializeAsString();
  }

  test::wire::MetaGraphDef meta;
  std::string text;
};

/// Imports the graph, takes a step and saves. Returns the message of a typed error, or nothing. Any other exception fails the test.
std::string error_of(const std::string& encoded) {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  const std::vector<tf::named_feed> feeds = {{"images:0", tf::tensor(sw::dtype::float32, {16, 64})},
                                             {"labels:0", tf::tensor(sw::dtype::int64, {16})}};
  try {
    auto graph = tf::graph::import_meta_graph(test::write_file(directory / "crafted.meta", encoded));
    auto session =
        sw::monitored_training_session(graph, {.checkpoint_dir = directory / "run", .config = {.intra_op_parallelism_threads = 1}});
    session.run(sw::target("train_op"), feeds);
    session.close();
  } catch (const sw::error& failed) { return failed.what(); }
  return {};
}

}  // namespace

TEST_CASE("a graph that was changed is an error that names the wrong part", "[tensorflow][real][crafted]") {
  struct change {
    const char* what;
    const char* node;
    const char* from;
    const char* to;
    const char* message;
  };
  static constexpr change changes[] = {
      {"a saver whose nodes form a cycle", "save/SaveV2/tensor_names", "op: \"Const\"",
       "op: \"Const\"\n  input: \"^save/control_dependency\"", "cycle"},
      {"a saver that writes another type than its variable", "save/SaveV2", "type: DT_INT64", "type: DT_HALF", "save/SaveV2"},
      {"a saver that restores another type than its variable", "save/RestoreV2", "type: DT_INT64", "type: DT_FLOAT", "save/RestoreV2:0"},
      {"a saver whose names are numbers", "save/SaveV2/tensor_names", "dtype: DT_STRING", "dtype: DT_FLOAT",
       "\"save/SaveV2\" of the saver of the graph has names that are no strings"},
      {"a saver with a slice that is outside its variable", "save/SaveV2/shape_and_slices", "string_val: \"\"", "string_val: \"12 9,9\"",
       "\"12 9,9\""},
      {"a saver that saves two variables under one name", "save/SaveV2/tensor_names", "string_val: \"hidden/kernel\"",
       "string_val: \"hidden/bias\"", "saves the variable \"hidden/bias\" twice, differently"},
      {"an input that does not exist", "hidden/add", "input: \"hidden/MatMul\"", "input: \"nothing\"", "nothing"},
      {"an output that its operation does not have", "hidden/add", "input: \"hidden/MatMul\"", "input: \"hidden/MatMul:7\"",
       "hidden/MatMul"},
      {"an attribute that is missing", "hidden/MatMul", "key: \"T\"", "key: \"U\"", "hidden/MatMul"},
  };
  crafted one;
  REQUIRE(error_of(one.encoded()).empty());
  for (const auto& each : changes) {
    DYNAMIC_SECTION(each.what) {
      one.replace(each.node, each.from, each.to);
      CHECK_THAT(error_of(one.encoded()), ContainsSubstring(each.message));
    }
  }
  SECTION("a saver that takes its names from an operation") {
    one.replace("save/SaveV2", "input: \"save/SaveV2/tensor_names\"", "input: \"save/control_dependency\"");
    CHECK_FALSE(error_of(one.encoded()).empty());
  }
  SECTION("two operations of one name") {
    one.text += "\nnode { name: \"loss\" op: \"NoOp\" }\n";
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("loss"));
  }
  SECTION("a variable that is larger than any memory") {
    one.replace("hidden/bias", "size: 32", "size: 4000000000000000000");
    CHECK_FALSE(error_of(one.encoded()).empty());
  }
}

TEST_CASE("a collection that was changed is an error that names it", "[tensorflow][real][crafted]") {
  crafted one;
  SECTION("the global step is a number with a fraction") {
    one.meta.mutable_collection_def()->erase("global_step");
    one.messages_of("global_step").add_value(one.messages_of("trainable_variables").value(0));
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("hidden/kernel"));
  }
  SECTION("the global step does not exist") {
    test::wire::VariableDef variable;
    variable.set_variable_name("nothing:0");
    one.meta.mutable_collection_def()->erase("global_step");
    one.messages_of("global_step").add_value(variable.SerializeAsString());
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("collection \"global_step\": \"nothing\""));
  }
  SECTION("the operation that says that the model is ready does not exist") {
    one.nodes_of("ready_op").set_value(0, "nothing:0");
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("ready_op"));
  }
  SECTION("the operation that says that the model is ready is no text") {
    one.nodes_of("ready_op").set_value(0, "loss:0");
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("ready_op \"loss:0\""));
  }
  SECTION("the operation that initialises is a message") {
    one.messages_of("init_op").add_value("\xff\xff");
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("\"init_op\" holds encoded messages"));
  }
  SECTION("a queue runner is no message") {
    one.messages_of("queue_runners").add_value("\xff\xff");
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("queue_runners"));
  }
  SECTION("the summary is a number") {
    one.nodes_of("summary_op").set_value(0, "loss:0");
    CHECK_THAT(error_of(one.encoded()), ContainsSubstring("summary_op \"loss:0\""));
  }
}

TEST_CASE("a saver behind 100,000 operations is read", "[tensorflow][real][crafted]") {
  crafted one;
  std::string last = "save/Const";
  for (int i = 0; i < 100'000; ++i) {
    const auto name = "chain/" + std::to_string(i);
    one.text += "node { name: \"" + name + "\" op: \"Identity\" input: \"" + std::exchange(last, name) +
                "\" attr { key: \"T\" value { type: DT_STRING } } }\n";
  }
  one.replace("save/control_dependency", "input: \"save/Const\"", "input: \"" + last + "\"");
  CHECK(error_of(one.encoded()) == "");
}

TEST_CASE("a file with wrong bits is an error, or a graph", "[tensorflow][real][crafted]") {
  const auto whole = crafted().encoded();
  std::mt19937_64 random(20'261'123);
  int errors = 0;
  constexpr int files = 300;
  for (int i = 0; i < files; ++i) {
    auto changed = whole;
    for (int flips = 0; flips < 3; ++flips) { changed[random() % changed.size()] ^= static_cast<char>(1U << (random() % 8)); }
    if (i % 10 == 0) { changed.resize(random() % changed.size()); }
    INFO("file " << i);
    errors += error_of(changed).empty() ? 0 : 1;
  }
  CHECK(errors > files / 4);
}
