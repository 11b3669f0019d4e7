// SPDX-License-Identifier: Apache-2.0
//
// A graph of TensorFlow, which is imported from a file or from memory, and handles of its operations and tensors.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

namespace detail {
namespace c {
struct operation;
}
struct graph_state;
}  // namespace detail

class output;

/// An operation of a graph.
/// @lifetime Keeps its graph alive.
class operation {
public:
  [[nodiscard]] std::string name() const;
  /// Returns the type of the operation, such as "MatMul".
  [[nodiscard]] std::string type() const;
  /// Returns the device on which the graph places the operation. Empty if the graph does not name a device.
  [[nodiscard]] std::string device() const;
  [[nodiscard]] int output_count() const;
  /// Returns output number `index`, counted from 0. @errors `out_of_range_error` if there is no such output.
  [[nodiscard]] tensorflow::output output(int index = 0) const;

  [[nodiscard]] detail::c::operation* raw() const noexcept { return raw_; }

private:
  friend class graph;
  friend class graph_builder;
  friend class operation_builder;
  operation(std::shared_ptr<const detail::graph_state> owner, detail::c::operation* raw) noexcept : owner_(std::move(owner)), raw_(raw) {}

  std::shared_ptr<const detail::graph_state> owner_;
  detail::c::operation* raw_;
};

/// An output of an operation: a tensor of the graph. May be used as a fetch and as the key of a feed.
/// @lifetime Keeps its graph alive.
class output {
public:
  output(tensorflow::operation of, int index) noexcept : operation_(std::move(of)), index_(index) {}

  /// Returns the name of the tensor, such as "loss:0".
  [[nodiscard]] std::string name() const { return operation_.name() + ":" + std::to_string(index_); }
  [[nodiscard]] const tensorflow::operation& operation() const noexcept { return operation_; }
  [[nodiscard]] int index() const noexcept { return index_; }

  friend bool operator==(const output& a, const output& b) noexcept {
    return a.operation_.raw() == b.operation_.raw() && a.index_ == b.index_;
  }

private:
  tensorflow::operation operation_;
  int index_;
};

/// A graph. It can be moved, but not copied. A session shares the content of the graph, so the `graph` object may be destroyed before the
/// session.
///
/// A graph file is a program: its operations may read and write files, and execute other code. Import only files that you trust.
/// @threads `const` functions may be called from several threads at the same time.
class graph {
public:
  /// Imports a MetaGraphDef, such as "run/model.ckpt-0.meta".
  /// @errors   Failures of reading the file. `data_loss_error` if the file is no MetaGraphDef. `unimplemented_error` that lists all types
  ///   of operations that the loaded TensorFlow does not have. `invalid_argument_error` with TensorFlow's message, if TensorFlow rejects
  ///   the graph. `not_found_error` if TensorFlow's library is not found (see `runtime::open`).
  [[nodiscard]] static graph import_meta_graph(const std::string& file);
  /// Imports a GraphDef. The file is read as text if its name ends in ".pbtxt", otherwise as binary. A graph that is imported from a
  /// GraphDef has no collections and no SaverDef.
  /// @errors Like `import_meta_graph`.
  [[nodiscard]] static graph import_graph_def(const std::string& file);
  [[nodiscard]] static graph import_graph_def(std::span<const std::byte> bytes);

  /// Imports one graph of a SavedModel of TensorFlow 1: the graph whose tags are exactly `tags`. The variables of the graph start with the
  /// values that are saved in `directory`, if the SavedModel contains values.
  /// @errors Like `import_meta_graph`. Also `not_found_error` if no graph has exactly these tags; the message lists the tags of all graphs.
  ///   `unimplemented_error` for a model of TensorFlow 2 whose variables are saved by functions.
  [[nodiscard]] static graph load_saved_model(const std::string& directory, const std::vector<std::string>& tags = {"serve"});

  graph(graph&&) noexcept;
  graph& operator=(graph&&) noexcept;
  ~graph();

  /// Returns the operation with this name. @errors `not_found_error` if there is no such operation; the message contains `place()`.
  [[nodiscard]] tensorflow::operation operation(std::string_view name) const;
  /// Returns all operations of the graph. A session may add operations to the imported ones.
  [[nodiscard]] std::vector<tensorflow::operation> operations() const;

  /// Returns the tensor `name`: "loss:0", or "loss" for the first output. @errors `not_found_error` if there is no such operation, or if
  /// the operation does not have this output. `invalid_argument_error` if the operation has no outputs, or if `name` is not the name of a
  /// tensor.
  [[nodiscard]] tensorflow::output tensor(std::string_view name) const;
  [[nodiscard]] stepwell::dtype dtype(const tensorflow::output& of) const;
  /// Returns the static shape, that is, the shape that is known without a run. An unknown dimension is -1. Empty if the rank is unknown.
  [[nodiscard]] std::optional<tensor_shape> shape(const tensorflow::output& of) const;

  /// Returns the names of the operations and tensors in the collection `name`, such as "train_op". Empty if there is no such collection, or
  /// if the collection contains other objects than names.
  [[nodiscard]] std::vector<std::string> collection(std::string_view name) const;

  /// Returns the place from which the graph was imported, such as the path of the file, for messages.
  [[nodiscard]] const std::string& place() const noexcept;

  [[nodiscard]] const std::shared_ptr<detail::graph_state>& state() const noexcept { return state_; }

private:
  friend class graph_builder;
  explicit graph(std::shared_ptr<detail::graph_state> state) noexcept;
  std::shared_ptr<detail::graph_state> state_;
};

}  // namespace stepwell::tensorflow
