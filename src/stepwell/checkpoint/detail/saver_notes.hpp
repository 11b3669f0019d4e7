// SPDX-License-Identifier: Apache-2.0
//
// Internal: the tensors that a saver adds to each checkpoint for itself. They are not part of a model's state.
#pragma once

#include <string_view>

namespace stepwell::detail {

/// Name of the tensor that marks a checkpoint of a saver of this library, which retention may delete. Its value is the version of
/// this mark. The layout of a session's state has a separate version, `stepwell/version`.
inline constexpr std::string_view own_version_name = "stepwell/saver/version";

/// Name of the tensor with the number of the save. The first save in a directory has number 1. Each later save, by any process, has
/// a higher number.
inline constexpr std::string_view save_number_name = "stepwell/save_number";

/// Returns true if `name` is the name of a tensor that a saver adds for itself.
[[nodiscard]] constexpr bool is_saver_note(std::string_view name) noexcept {
  return name.starts_with("stepwell/saver/") || name == save_number_name;
}

}  // namespace stepwell::detail
