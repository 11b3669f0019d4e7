// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/meta_graph.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/detail/messages.hpp"
#include "stepwell/tensorflow/proto/graph.pb.h"
#include "stepwell/tensorflow/proto/meta_graph.pb.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow::detail {
namespace {

// The estimate for the smallest useful node, of 20 bytes in a file, is 800 bytes.
constexpr std::size_t graph_memory_per_byte = 48;
constexpr int deepest_text = 100;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// Parses `bytes` as a `Message`.
template<class Message>
result<Message> parse(std::span<const std::byte> bytes, const char* name) {
  Message message;
  if (!format::parse_message(message, bytes, graph_memory_per_byte)) {
    return status(errc::data_loss, std::string("the bytes are no ") + name + ", or one that would need too much memory");
  }
  return message;
}

template<class Nodes>
void add_types(const Nodes& nodes, std::map<std::string, std::string>& types) {
  for (const auto& node : nodes) { types.try_emplace(node.op(), node.name()); }
}

saver_def saver_of(const wire::SaverDef& message) {
  return {message.filename_tensor_name(),
          message.save_tensor_name(),
          message.restore_op_name(),
          message.sharded(),
          message.version(),
          message.max_to_keep(),
          message.keep_checkpoint_every_n_hours()};
}

/// Keeps the first message of the text parser, instead of printing it.
class first_error final : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int line, google::protobuf::io::ColumnNumber /*column*/, const std::string& message) override {
    if (text.empty()) { text = "line " + std::to_string(line + 1) + ": " + message; }
  }
  std::string text;
};

}  // namespace

result<meta_graph> parse_meta_graph(std::span<const std::byte> bytes) {
  auto parsed = parse<wire::MetaGraphDef>(bytes, "MetaGraphDef");
  if (!parsed) { return std::move(parsed).error(); }
  auto& message = *parsed;
  meta_graph made;
  made.graph_def = std::move(*message.mutable_graph_def());
  if (message.has_saver_def()) { made.saver = saver_of(message.saver_def()); }
  for (const auto& [name, collection] : message.collection_def()) {
    if (collection.has_node_list()) {
      const auto& values = collection.node_list().value();
      made.nodes[name].assign(values.begin(), values.end());
    } else if (collection.has_bytes_list()) {
      const auto& values = collection.bytes_list().value();
      made.messages[name].assign(values.begin(), values.end());
    }
  }
  made.tags.assign(message.meta_info_def().tags().begin(), message.meta_info_def().tags().end());
  made.tensorflow_version = message.meta_info_def().tensorflow_version();
  return made;
}

result<std::vector<std::string>> parse_saved_model(std::span<const std::byte> bytes) {
  auto parsed = parse<wire::SavedModel>(bytes, "SavedModel");
  if (!parsed) { return std::move(parsed).error(); }
  return std::vector<std::string>(parsed->meta_graphs().begin(), parsed->meta_graphs().end());
}

std::string encode_meta_graph(const meta_graph& parts, std::string_view tensorflow_version) {
  wire::MetaGraphDef message;
  message.set_graph_def(parts.graph_def);
  message.mutable_meta_info_def()->set_tensorflow_version(std::string(tensorflow_version));
  auto& collections = *message.mutable_collection_def();
  for (const auto& [name, values] : parts.nodes) {
    for (const auto& value : values) { collections[name].mutable_node_list()->add_value(value); }
  }
  for (const auto& [name, values] : parts.messages) {
    for (const auto& value : values) { collections[name].mutable_bytes_list()->add_value(value); }
  }
  return message.SerializeAsString();
}

std::string encode_variable(const variable_def& variable) {
  wire::VariableDef message;
  message.set_variable_name(variable.variable_name);
  message.set_initializer_name(variable.initializer_name);
  message.set_snapshot_name(variable.snapshot_name);
  message.set_initial_value_name(variable.initial_value_name);
  message.set_is_resource(variable.is_resource);
  return message.SerializeAsString();
}

result<saver_def> parse_saver(std::string_view bytes) {
  auto parsed = parse<wire::SaverDef>(bytes_of(bytes), "SaverDef");
  if (!parsed) { return std::move(parsed).error(); }
  return saver_of(*parsed);
}

result<variable_def> parse_variable(std::string_view bytes) {
  auto parsed = parse<wire::VariableDef>(bytes_of(bytes), "VariableDef");
  if (!parsed) { return std::move(parsed).error(); }
  return variable_def{parsed->variable_name(), parsed->initializer_name(), parsed->snapshot_name(), parsed->initial_value_name(),
                      parsed->is_resource()};
}

result<queue_runner_def> parse_queue_runner(std::string_view bytes) {
  auto parsed = parse<wire::QueueRunnerDef>(bytes_of(bytes), "QueueRunnerDef");
  if (!parsed) { return std::move(parsed).error(); }
  queue_runner_def made{parsed->queue_name(), {}, parsed->close_op_name(), parsed->cancel_op_name(), {}};
  made.enqueue_op_names.assign(parsed->enqueue_op_name().begin(), parsed->enqueue_op_name().end());
  made.queue_closed_exception_types.assign(parsed->queue_closed_exception_types().begin(), parsed->queue_closed_exception_types().end());
  return made;
}

result<std::map<std::string, std::string>> operation_types(std::string_view graph_def) {
  auto parsed = parse<wire::GraphOperations>(bytes_of(graph_def), "GraphDef");
  if (!parsed) { return std::move(parsed).error(); }
  std::map<std::string, std::string> types;
  add_types(parsed->node(), types);
  for (const auto& function : parsed->library().function()) { add_types(function.node_def(), types); }
  for (const auto& function : parsed->library().function()) { types.erase(function.signature().name()); }
  return types;
}

result<operation_list> parse_operations(std::span<const std::byte> bytes) {
  auto parsed = parse<wire::OpList>(bytes, "OpList");
  if (!parsed) { return std::move(parsed).error(); }
  operation_list made;
  for (const auto& op : parsed->op()) {
    made.all.insert(op.name());
    const bool may_assign = std::ranges::any_of(op.input_arg(), [](const auto& input) { return input.is_ref(); });
    if (op.is_stateful() || may_assign) { made.stateful.insert(op.name()); }
  }
  return made;
}

result<std::string> graph_text(std::string_view graph_def) {
  auto parsed = parse<::tensorflow::GraphDef>(bytes_of(graph_def), "GraphDef");
  if (!parsed) { return std::move(parsed).error(); }
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(*parsed, &text)) { return status(errc::internal, "could not write the graph as text"); }
  return text;
}

result<std::string> graph_of_text(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return status(errc::data_loss, "the text of the graph is larger than 2 GiB");
  }
  ::tensorflow::GraphDef message;
  first_error error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(deepest_text);
  if (!parser.ParseFromString(std::string(text), &message)) { return status(errc::data_loss, "the text is no GraphDef; " + error.text); }
  return message.SerializeAsString();
}

}  // namespace stepwell::tensorflow::detail
