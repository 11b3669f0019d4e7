// SPDX-License-Identifier: Apache-2.0
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/tensorflow/graph.hpp>
#include <stepwell/tensorflow/graph_session.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

/// Opens a session over a MetaGraphDef. @errors Those of the import and of the session.
void open_session(const test::wire::MetaGraphDef& meta) {
  const test::temporary_directory directory;
  const auto graph = tf::graph::import_meta_graph(test::write_file(directory / "a.meta", meta.SerializeAsString()));
  const tf::graph_session session(graph);
}

}  // namespace

TEST_CASE("a graph finds operations, tensors and collections by name", "[tensorflow][graph]") {
  const test::temporary_directory directory;
  const auto graph = tf::graph::import_meta_graph(test::write_file(directory / "a.meta", test::stub_meta_graph().SerializeAsString()));
  CHECK(graph.operation("train_op").type() == "AssignSub");
  CHECK(graph.tensor("x").name() == "x:0");
  CHECK(graph.tensor("x:0") == graph.operation("x").output());
  CHECK(graph.dtype(graph.tensor("x")) == sw::dtype::float32);
  CHECK(*graph.shape(graph.tensor("x")) == sw::tensor_shape{-1});
  CHECK(graph.collection("train_op") == std::vector<std::string>{"train_op"});
  CHECK(graph.collection("nothing").empty());
  CHECK(graph.operations().size() > 10);
  CHECK_THROWS_WITH(graph.operation("los"), ContainsSubstring("\"los\"") && ContainsSubstring("no operation of this name"));
  CHECK_THROWS_WITH(graph.tensor("loss:1"), ContainsSubstring("the operation has 1 outputs"));
  CHECK_THROWS_WITH(graph.tensor("train_op"), ContainsSubstring("target(\"train_op\")"));
  CHECK_THROWS_AS(graph.tensor("loss:x"), sw::invalid_argument_error);
  CHECK_THROWS_AS(graph.operation("loss").output(3), sw::out_of_range_error);
}

TEST_CASE("operations that the library lacks are named in one error", "[tensorflow][graph]") {
  const auto bytes = test::graph_def_of({"MatMul", "Frobnicate", "NoOp", "Defenestrate", "Reticulate"});
  CHECK_THROWS_AS(tf::graph::import_graph_def(std::as_bytes(std::span(bytes))), sw::unimplemented_error);
  CHECK_THROWS_WITH(tf::graph::import_graph_def(std::as_bytes(std::span(bytes))),
                    ContainsSubstring("Defenestrate (\"node_Defenestrate\"), Frobnicate (\"node_Frobnicate\"), Reticulate"));
}

TEST_CASE("files that are no graphs are errors that name the file", "[tensorflow][graph]") {
  const test::temporary_directory directory;
  CHECK_THROWS_AS(tf::graph::import_meta_graph(directory / "missing.meta"), sw::not_found_error);
  const auto broken = test::write_file(directory / "broken.meta", std::string(100, '\xff'));
  CHECK_THROWS_AS(tf::graph::import_meta_graph(broken), sw::data_loss_error);
  CHECK_THROWS_WITH(tf::graph::import_meta_graph(broken), ContainsSubstring("broken.meta"));
  auto collection = test::stub_meta_graph();
  collection.mutable_collection_def()->erase("init_op");  // the variables are initialised one by one
  (*collection.mutable_collection_def())["variables"].mutable_bytes_list()->add_value("\xff\xff");
  CHECK_THROWS_AS(open_session(collection), sw::data_loss_error);
  const auto text = test::write_file(directory / "graph.pbtxt", "node { name: \"a\" op: \"NoOp\" ");
  CHECK_THROWS_WITH(tf::graph::import_graph_def(text), ContainsSubstring("line 1"));
  CHECK_NOTHROW(tf::graph::import_graph_def(test::write_file(directory / "good.pbtxt", "node { name: \"a\" op: \"NoOp\" }\n")));
}

TEST_CASE("a graph of 100,000 nodes is read", "[tensorflow][graph]") {
  std::vector<std::string> types(100'000, "NoOp");
  types.back() = "Unknown";
  const auto bytes = test::graph_def_of(types);
  CHECK_THROWS_WITH(tf::graph::import_graph_def(std::as_bytes(std::span(bytes))), ContainsSubstring("Unknown (\"node_Unknown\")"));
}

TEST_CASE("a saver or a collection with names that do not exist is an error", "[tensorflow][graph]") {
  auto meta = test::stub_meta_graph();
  SECTION("of the tensor that saves") {
    meta.mutable_saver_def()->set_save_tensor_name("nothing:0");
    CHECK_THROWS_WITH(open_session(meta), ContainsSubstring("save_tensor_name of the saver \"nothing:0\""));
  }
  SECTION("of the operation that restores") {
    meta.mutable_saver_def()->set_restore_op_name("nothing");
    CHECK_THROWS_AS(open_session(meta), sw::not_found_error);
  }
  SECTION("that restores nothing") {
    meta.mutable_saver_def()->set_restore_op_name("init");
    CHECK_THROWS_WITH(open_session(meta), ContainsSubstring("but does not restore it"));
  }
  SECTION("that saves the state of an iterator") {
    meta.mutable_saver_def()->set_save_tensor_name("iterator/Identity:0");
    CHECK_THROWS_AS(open_session(meta), sw::unimplemented_error);
    CHECK_THROWS_WITH(open_session(meta), ContainsSubstring("\"input-state\", a variant, which is the state of an iterator of tf.data") &&
                                              ContainsSubstring("do not add make_saveable_from_iterator"));
  }
  SECTION("of another format") {
    meta.mutable_saver_def()->set_version(1);
    CHECK_THROWS_AS(open_session(meta), sw::unimplemented_error);
  }
  SECTION("of the train operation") {
    meta.mutable_collection_def()->at("train_op").mutable_node_list()->set_value(0, "nothing");
    CHECK_THROWS_WITH(open_session(meta), ContainsSubstring("train_op \"nothing\""));
  }
  SECTION("with two operations that initialise") {
    meta.mutable_collection_def()->at("init_op").mutable_node_list()->add_value("train_op");
    CHECK_THROWS_WITH(open_session(meta), ContainsSubstring("More than one item in the collection"));
  }
}
