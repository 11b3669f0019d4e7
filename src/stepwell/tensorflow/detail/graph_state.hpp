// SPDX-License-Identifier: Apache-2.0
//
// The content of a graph, shared with its sessions: TensorFlow's graph, and the parts of the MetaGraphDef.
#pragma once

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/detail/meta_graph.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow::detail {

/// TensorFlow stores "reference to T" as the number of T plus this.
inline constexpr int reference_offset = 100;

struct graph_state {
  graph_state();
  graph_state(const graph_state&) = delete;
  graph_state& operator=(const graph_state&) = delete;
  ~graph_state();

  /// Sets the members that depend on the operations of the complete graph.
  void note_operations();

  /// Returns the operation, or null.
  [[nodiscard]] c::operation* find(std::string_view name) const;
  /// Returns the operation. @errors `not_found_error`, `what` says for which purpose it was looked up.
  [[nodiscard]] c::operation* get(std::string_view name, std::string_view what) const;
  [[noreturn]] void throw_no_operation(std::string_view name, std::string_view what) const;
  /// Returns the output "name:index" or "name". @errors `not_found_error`, `invalid_argument_error`.
  [[nodiscard]] c::output get_output(std::string_view name, std::string_view what) const;

  /// Returns the dtype of an output. That of a reference is the dtype of its target.
  [[nodiscard]] dtype dtype_of(c::output of) const;
  [[nodiscard]] bool is_reference(c::output of) const;
  /// Returns the static shape; a dimension of -1 is unknown. Empty if the rank is unknown.
  [[nodiscard]] std::optional<tensor_shape> shape_of(c::output of) const;
  /// Returns the name of an output, such as "loss:0".
  [[nodiscard]] static std::string name_of(c::output of);

  /// Returns the names in a collection of names.
  [[nodiscard]] std::vector<std::string> collection(std::string_view name) const;
  /// Returns the variables in a collection. @errors `data_loss_error`.
  [[nodiscard]] std::vector<variable_def> variables(std::string_view collection) const;
  /// Returns the only name in a collection. @errors `failed_precondition_error` if there are several. `data_loss_error` if the
  /// collection holds messages.
  /// @see contract SCAF-3
  [[nodiscard]] std::optional<std::string> only_name_in(std::string_view collection) const;

  /// Returns a name for a new operation.
  [[nodiscard]] std::string new_name(std::string_view base) { return std::string(base) + "_" + std::to_string(++made_operations); }

  c::graph* raw;
  std::string place;             // the file, for messages
  std::string meta_graph_bytes;  // as it was imported, or made for a bare graph
  std::string variables_prefix;  // the checkpoint with the initial values of a SavedModel, or empty
  meta_graph parts;              // `parts.graph_def` is the imported graph
  bool has_references = false;   // true if it has a reference variable; then every fetch is copied
  std::set<std::string> tasks;   // and jobs that devices of its operations name, such as "/job:ps/task:0" and "/job:ps"
  std::atomic<int> made_operations = 0;

  // Operations that sessions have added, by their purpose. A later session over the same graph uses them again.
  stepwell::detail::checked_mutex making;
  std::map<std::string, c::operation*> added STEPWELL_GUARDED_BY(making);
};

/// Returns the operations that the library has.
[[nodiscard]] const operation_list& known_operations();

/// Splits "name:index" and returns index 0 for "name". @errors `invalid_argument_error` for another form.
[[nodiscard]] std::pair<std::string, int> split_tensor_name(std::string_view name);

}  // namespace stepwell::tensorflow::detail
