// SPDX-License-Identifier: Apache-2.0
//
// Private to format: conversion between `tensor` and the TensorProto message.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/base/tensor.hpp"

namespace tensorflow {
class TensorProto;
}

namespace stepwell::format {

/// Maximum size in bytes of a tensor whose message has fewer values than elements, so that the last value is repeated.
inline constexpr std::int64_t repeated_value_limit = std::int64_t{8} << 20;

/// Returns true if `tensor` can hold the dtype of `message`.
[[nodiscard]] bool is_representable(const tensorflow::TensorProto& message) noexcept;

/// Returns the tensor in `message`. @pre `is_representable(message)`.
/// @errors `data_loss` if the shape and the content disagree, or if a tensor with repeated values exceeds `repeated_value_limit`.
[[nodiscard]] result<tensor> read_tensor(const tensorflow::TensorProto& message);

/// Writes `value` to `message`: numbers to `tensor_content`, strings to `string_val`.
void write_tensor(const tensor& value, tensorflow::TensorProto& message);

}  // namespace stepwell::format
