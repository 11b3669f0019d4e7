// SPDX-License-Identifier: Apache-2.0
//
// Builds graphs in C++: operations, variables, gradients, and the collections that a session reads.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/tensorflow/graph.hpp"
#include "stepwell/tensorflow/tensor.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

namespace detail {
namespace c {
struct operation_description;
}
class call_status;
}  // namespace detail

/// Describes one operation, and then adds it to a graph: `builder.add("MatMul", "logits").input(a).input(b).attr("transpose_b", true)`,
/// where `builder` is a `graph_builder`. The operation is added by a call of `build()`, or by a conversion to an `output` or `operation`.
///
/// TensorFlow checks the operation when it is added. The types and attributes of operations are in TensorFlow's documentation
/// (`tf.raw_ops`).
/// @lifetime This object shares ownership of the graph.
class operation_builder {
public:
  operation_builder(std::shared_ptr<detail::graph_state> graph, const std::string& type, std::string name);
  operation_builder(operation_builder&&) noexcept = default;
  operation_builder& operator=(operation_builder&&) = delete;
  /// If the operation was not added, adds it now and ignores errors, because TensorFlow has no function that discards a description. This
  /// case is a mistake of the program: do not use the graph afterwards.
  ~operation_builder();

  operation_builder& input(const tensorflow::output& from);
  /// Adds one input that consists of a list of tensors.
  operation_builder& inputs(const std::vector<tensorflow::output>& from);
  operation_builder& control_input(const tensorflow::operation& before);
  operation_builder& device(const std::string& where);

  /// Sets an attribute: a number, a bool, a string, a dtype, a shape, or a tensor.
  /// @errors `invalid_argument_error` for a tensor that TensorFlow rejects.
  template<class T>
  operation_builder& attr(const char* name, const T& value) {
    if constexpr (std::same_as<T, bool>) {
      set_bool(name, value);
    } else if constexpr (std::integral<T>) {
      set_int(name, static_cast<std::int64_t>(value));
    } else if constexpr (std::floating_point<T>) {
      set_float(name, static_cast<float>(value));
    } else if constexpr (std::same_as<T, stepwell::dtype>) {
      set_type(name, value);
    } else if constexpr (std::same_as<T, tensor_shape>) {
      set_shape(name, value);
    } else if constexpr (std::same_as<T, tensor>) {
      set_tensor(name, value);
    } else {
      static_assert(std::convertible_to<const T&, std::string_view>,
                    "stepwell: an attribute is a number, a bool, a string, a dtype, a tensor_shape, or a tensor");
      set_string(name, value);
    }
    return *this;
  }

  /// Adds the operation to the graph, and returns it.
  /// @errors The error with which TensorFlow rejects the operation, usually `invalid_argument_error`, with TensorFlow's text.
  ///         `failed_precondition_error` in a second call.
  tensorflow::operation build();
  explicit(false) operator tensorflow::operation() { return build(); }
  explicit(false) operator tensorflow::output() { return build().output(); }

private:
  void set_bool(const char* name, bool value);
  void set_int(const char* name, std::int64_t value);
  void set_float(const char* name, float value);
  void set_type(const char* name, stepwell::dtype value);
  void set_shape(const char* name, const tensor_shape& value);
  void set_tensor(const char* name, const tensor& value);
  void set_string(const char* name, std::string_view value);
  [[nodiscard]] detail::c::operation_description* open() const;

  struct discard {
    void operator()(detail::c::operation_description* one) const noexcept;
  };
  std::shared_ptr<detail::graph_state> graph_;
  std::string name_;
  std::unique_ptr<detail::c::operation_description, discard> open_;
};

/// A variable that was added to a graph.
struct graph_variable {
  output handle;  ///< The resource handle, an input of the operations that assign a value.
  output value;   ///< The result of an operation that reads the variable: its value in the current run.
};

/// Builds a graph in C++. The graph is trained like an imported graph. The train operation is the operation that one step executes. Name it
/// in the options of the session (`operations.train_op`), or in the collection `train_op` of the graph. A variable named `global_step` with
/// one `std::int64_t` is the global step.
///
///     tensorflow::graph_builder build;
///     const auto x = build.add("Placeholder", "x").attr("dtype", dtype::float32).attr("shape", tensor_shape{-1});
///     const auto w = build.variable("w", tensorflow::tensor(0.0F));
///     ...
///     auto graph = std::move(build).finish();
class graph_builder {
public:
  graph_builder();

  /// Begins an operation. @errors `already_exists_error` if the graph has an operation of this name.
  [[nodiscard]] operation_builder add(const std::string& type, const std::string& name);
  /// Adds a constant.
  output constant(const std::string& name, const tensor& value);
  /// Adds a variable with its initial value. If `device` is not empty, the variable is on this device. The session initialises, saves and
  /// restores the variable. All graphs that run on the same TensorFlow server share variables of the same name.
  graph_variable variable(const std::string& name, const tensor& initial, const std::string& device = {});
  /// Adds operations that compute gradients: the derivatives of the sum of all outputs in `of`. Returns one gradient for each output in
  /// `by`, the derivative with respect to this output.
  /// @errors The error of TensorFlow with its text, for example if TensorFlow has no C++ gradient for an operation.
  std::vector<output> gradients(const std::vector<output>& of, const std::vector<output>& by);
  /// Adds the name of an operation to a collection that a session reads, such as "train_op".
  void add_to_collection(const std::string& collection, const std::string& name);

  /// Returns the graph. Nothing can be added to the graph afterwards. @errors Failures of TensorFlow.
  [[nodiscard]] graph finish() &&;

private:
  std::shared_ptr<detail::graph_state> state_;
};

}  // namespace stepwell::tensorflow
