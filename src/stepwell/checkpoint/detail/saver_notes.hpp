// SPDX-License-Identifier: Apache-2.0
//
// Internal: the tensors that a saver adds to each checkpoint for itself. They are no part of a model's state.
#pragma once

#include <string_view>

namespace stepwell::detail {

/// By this tensor a saver recognises a checkpoint of a saver of this library, which retention may delete. Its value is the
/// version of this mark. The layout of a session's state has a version of its own, `stepwell/version`.
inline constexpr std::string_view own_version_name = "stepwell/saver/version";

/// The number of the save: 1 for the first one in a directory, then higher with each save, over all processes.
inline constexpr std::string_view save_number_name = "stepwell/save_number";

/// Returns true for the names of such tensors.
[[nodiscard]] constexpr bool is_saver_note(std::string_view name) noexcept {
  return name.starts_with("stepwell/saver/") || name == save_number_name;
}

}  // namespace stepwell::detail
