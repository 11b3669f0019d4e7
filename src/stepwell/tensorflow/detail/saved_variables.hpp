// SPDX-License-Identifier: Apache-2.0
//
// The variables of a graph as its saver sees them: the tensors to fetch for a checkpoint, and the tensors to feed for a restore.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tensorflow::detail {

struct graph_state;

/// A part of a variable: the whole, or one slice of a partitioned variable.
struct variable_part {
  c::output value{};     // fetched for a checkpoint
  c::output restored{};  // fed for a restore
  tensor_shape starts;
  tensor_shape sizes;
  tensor held;  // the value that was fetched, or that will be fed
};

/// A variable, copied between the tensors of its parts and the bytes of snapshots and checkpoints.
class saved_variable final : public device_elements {
public:
  saved_variable(std::string name, dtype type, tensor_shape shape) : name_(std::move(name)), type_(type), shape_(std::move(shape)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const tensor_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] dtype type() const noexcept { return type_; }

  [[nodiscard]] tensor_view description() const override { return {type_, shape_, {}}; }
  void copy_to(std::span<std::byte> to) const override;
  void copy_from(std::span<const std::byte> from) override;
  [[nodiscard]] std::span<const std::byte> host_bytes() const override;
  void copy_strings_to(std::span<std::string> to) const override;
  void copy_strings_from(std::span<const std::string> from) override;

  std::vector<variable_part> parts;

private:
  [[nodiscard]] const tensor& held_in(const variable_part& part) const;

  std::string name_;
  dtype type_;
  tensor_shape shape_;
};

/// All variables of a graph, and the operations that assign the fed values.
struct saved_variables {
  std::vector<std::shared_ptr<saved_variable>> all;
  std::vector<c::operation*> restore_ops;
  int shards = 1;  // data files that the saver of the graph writes
};

/// Returns the variables of the graph's SaverDef, or else of its collection `variables`.
/// @errors `not_found_error` for names that the graph does not have. `unimplemented_error` for a saver whose names are not constants, for
///   one in an older format than V2, and for a variable of unknown shape. `data_loss_error` for a slice that is not inside its variable.
[[nodiscard]] saved_variables variables_of(const graph_state& graph);

}  // namespace stepwell::tensorflow::detail
