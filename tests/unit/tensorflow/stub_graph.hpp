// SPDX-License-Identifier: Apache-2.0
//
// The MetaGraphDef of the stub's graph, as a file.
#pragma once

#include "stepwell/tensorflow/proto/meta_graph.pb.h"

#include <fstream>
#include <string>
#include <vector>

namespace stepwell::test {

namespace wire = stepwell::tensorflow::wire;

/// Returns the bytes of a GraphDef with one node for each type.
inline std::string graph_def_of(const std::vector<std::string>& types) {
  wire::GraphOperations graph;
  for (const auto& type : types) {
    auto* const node = graph.add_node();
    node->set_name("node_" + type);
    node->set_op(type);
  }
  return graph.SerializeAsString();
}

/// Returns the MetaGraphDef that fits the graph of the stub.
inline wire::MetaGraphDef stub_meta_graph() {
  wire::MetaGraphDef made;
  made.set_graph_def(graph_def_of({"MatMul", "NoOp"}));
  auto& saver = *made.mutable_saver_def();
  saver.set_filename_tensor_name("save/Const:0");
  saver.set_save_tensor_name("save/control_dependency:0");
  saver.set_restore_op_name("save/restore_all");
  saver.set_version(2);
  auto& all = *made.mutable_collection_def();
  for (const std::string name : {"w", "global_step"}) {
    wire::VariableDef variable;
    variable.set_variable_name(name + ":0");
    variable.set_initializer_name("init");
    variable.set_snapshot_name(name + "/Read:0");
    variable.set_initial_value_name(name + "/Read:0");
    variable.set_is_resource(true);
    all["variables"].mutable_bytes_list()->add_value(variable.SerializeAsString());
  }
  all["train_op"].mutable_node_list()->add_value("train_op");
  all["init_op"].mutable_node_list()->add_value("init");
  all["summary_op"].mutable_node_list()->add_value("summary:0");
  return made;
}

inline std::string write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace stepwell::test
