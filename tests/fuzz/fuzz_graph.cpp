// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the parsers of MetaGraphDef, of the elements of its collections, and of graph.pbtxt. The first byte selects one. No function of
// TensorFlow is called.
#include <stepwell/tensorflow/detail/meta_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace tf = stepwell::tensorflow::detail;

namespace {

void require(bool holds) {
  if (!holds) { std::abort(); }
}

void fuzz_meta_graph(std::string_view text) {
  const auto parsed = tf::parse_meta_graph(std::as_bytes(std::span(text)));
  if (!parsed) { return; }
  static_cast<void>(tf::operation_types(parsed->graph_def));
  for (const auto& [name, messages] : parsed->messages) {
    for (const auto& one : messages) {
      static_cast<void>(tf::parse_variable(one));
      static_cast<void>(tf::parse_queue_runner(one));
      static_cast<void>(tf::parse_saver(one));
    }
  }
  const auto encoded = tf::encode_meta_graph(*parsed, parsed->tensorflow_version);
  const auto again = tf::parse_meta_graph(std::as_bytes(std::span(encoded)));
  require(again && again->graph_def == parsed->graph_def);
}

/// A graph that has a text form is read back from it.
void fuzz_graph(std::string_view bytes) {
  const auto text = tf::graph_text(bytes);
  if (text) { static_cast<void>(tf::graph_of_text(*text)); }
}

void fuzz_text(std::string_view text) {
  const auto graph = tf::graph_of_text(text);
  if (!graph) { return; }
  const auto again = tf::graph_text(*graph);
  if (again) { require(tf::graph_of_text(*again).ok()); }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) { return 0; }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: fuzz_meta_graph(rest); break;
    case 1: fuzz_graph(rest); break;
    case 2: fuzz_text(rest); break;
    default: static_cast<void>(tf::parse_operations(std::as_bytes(std::span(rest)))); break;
  }
  return 0;
}
