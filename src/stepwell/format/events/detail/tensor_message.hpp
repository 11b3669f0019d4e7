// SPDX-License-Identifier: Apache-2.0
//
// Private to format: tensors in and out of TensorProto.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/base/tensor.hpp"

namespace tensorflow {
class TensorProto;
}

namespace stepwell::format {

/// Greatest tensor made of fewer values than it has elements ("this value everywhere").
inline constexpr std::int64_t repeated_value_limit = std::int64_t{8} << 20;

/// True when `tensor` can hold messages of that dtype.
[[nodiscard]] bool is_representable(const tensorflow::TensorProto& message) noexcept;

/// @errors `data_loss` when shape and content do not agree. @pre `is_representable(message)`.
[[nodiscard]] result<tensor> read_tensor(const tensorflow::TensorProto& message);

/// Numbers go into `tensor_content`, strings into `string_val`.
void write_tensor(const tensor& value, tensorflow::TensorProto& message);

}  // namespace stepwell::format
