// SPDX-License-Identifier: Apache-2.0
//
// Hyper-parameters in events. They are stored in the metadata of a value with an empty tensor.
#pragma once

#include "stepwell/format/events/detail/hparams.hpp"
#include "tool/json_writer.hpp"

#include <optional>
#include <string>

namespace stepwell::tool {

/// Returns the decoded hyper-parameters of a value. Empty if there are none, or if they cannot be decoded.
[[nodiscard]] std::optional<format::hparams_record> hparams_of(const format::summary_value& value);

/// Returns printable text such as "units=32 rate=0.1", "2 settings, 1 metric", or "ended: success".
[[nodiscard]] std::string hparams_text(const format::hparams_record& record);

/// Writes one object: {"session_start": {...}}, {"experiment": {...}} or {"session_end": {...}}.
void write_hparams(json_writer& json, const format::hparams_record& record);

}  // namespace stepwell::tool
