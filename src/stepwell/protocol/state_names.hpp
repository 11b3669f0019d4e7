// SPDX-License-Identifier: Apache-2.0
//
// The names of the library's own variables in a checkpoint.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepwell {

/// The prefix of the names of the variables that the library adds to a checkpoint. A model must not use this prefix.
inline constexpr std::string_view reserved_prefix = "stepwell/";
inline constexpr std::string_view hook_state_prefix = "stepwell/hook/";
inline constexpr std::string_view source_state_prefix = "stepwell/source/";
/// The name of the variable in which a session saves the layout version. The tensor `stepwell/saver/version` is unrelated to it: a saver
/// writes that tensor, with or without a session, to recognise the checkpoints that it may delete.
inline constexpr std::string_view version_name = "stepwell/version";
/// The layout version of the library's own variables in a checkpoint. A session rejects later versions, and supports earlier versions.
inline constexpr std::int64_t state_version = 1;
/// The names of the variables of a stop that belongs to the saved step: the name of its `stop_cause`, and its text. A checkpoint without
/// such a stop lacks them.
inline constexpr std::string_view stop_cause_name = "stepwell/stop/cause";
inline constexpr std::string_view stop_text_name = "stepwell/stop/text";
inline constexpr std::string_view global_step_name = "global_step";

}  // namespace stepwell
