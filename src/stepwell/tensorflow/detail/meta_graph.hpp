// SPDX-License-Identifier: Apache-2.0
//
// The content of a MetaGraphDef besides its graph: the SaverDef and the collections. Does no I/O and calls no function of TensorFlow.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tensorflow::detail {

/// The names of the nodes that save and restore.
struct saver_def {
  std::string filename_tensor;
  std::string save_tensor;
  std::string restore_op;
  bool is_sharded = false;
  int version = 0;  ///< 2 is the format of this library.
  int max_to_keep = 0;
  double keep_checkpoint_every_n_hours = 0;
};

/// A variable of a collection.
struct variable_def {
  std::string variable_name;
  std::string initializer_name;
  std::string snapshot_name;
  std::string initial_value_name;
  bool is_resource = false;
};

/// A queue runner of a collection.
struct queue_runner_def {
  std::string queue_name;
  std::vector<std::string> enqueue_op_names;
  std::string close_op_name;
  std::string cancel_op_name;
  std::vector<int> queue_closed_exception_types;
};

/// A MetaGraphDef, with its graph as bytes.
struct meta_graph {
  std::string graph_def;
  std::optional<saver_def> saver;
  std::map<std::string, std::vector<std::string>, std::less<>> nodes;     ///< Collections of names.
  std::map<std::string, std::vector<std::string>, std::less<>> messages;  ///< Collections of encoded messages.
  std::vector<std::string> tags;
  std::string tensorflow_version;
};

/// Parses a MetaGraphDef.
/// @errors `data_loss`: the bytes are no MetaGraphDef, or it would need too much memory.
[[nodiscard]] result<meta_graph> parse_meta_graph(std::span<const std::byte> bytes);
/// Returns the encoded MetaGraphDefs of a SavedModel. @errors `data_loss`.
[[nodiscard]] result<std::vector<std::string>> parse_saved_model(std::span<const std::byte> bytes);
/// Returns the encoded MetaGraphDef of a graph that was not imported from one.
[[nodiscard]] std::string encode_meta_graph(const meta_graph& parts, std::string_view tensorflow_version);
/// Returns an encoded VariableDef.
[[nodiscard]] std::string encode_variable(const variable_def& variable);
/// Parse an element of a collection. @errors `data_loss`.
[[nodiscard]] result<saver_def> parse_saver(std::string_view bytes);
[[nodiscard]] result<variable_def> parse_variable(std::string_view bytes);
[[nodiscard]] result<queue_runner_def> parse_queue_runner(std::string_view bytes);

/// The operations of a graph by type, with the name of one node of each type. The functions of the graph are not included.
/// @errors `data_loss`: the bytes are no GraphDef.
[[nodiscard]] result<std::map<std::string, std::string>> operation_types(std::string_view graph_def);

/// The operations that a library has.
struct operation_list {
  std::set<std::string, std::less<>> all;
  /// Those that may have side effects: the stateful ones, and those with a reference as input, which TensorFlow does not mark as stateful
  /// although they may assign it.
  std::set<std::string, std::less<>> stateful;
};
/// Parses an OpList. @errors `data_loss`.
[[nodiscard]] result<operation_list> parse_operations(std::span<const std::byte> bytes);

/// Returns the text form of a GraphDef, the content of graph.pbtxt. @errors `data_loss`: the bytes are no GraphDef.
[[nodiscard]] result<std::string> graph_text(std::string_view graph_def);
/// Returns the GraphDef of a text form. @errors `data_loss` that names the line.
[[nodiscard]] result<std::string> graph_of_text(std::string_view text);

}  // namespace stepwell::tensorflow::detail
