// SPDX-License-Identifier: Apache-2.0
//
// What an event says of hyperparameters: it stands in the metadata of a value, beside a tensor that is empty.
#pragma once

#include "stepwell/format/events/detail/hparams.hpp"
#include "tool/json_writer.hpp"

#include <optional>
#include <string>

namespace stepwell::tool {

/// Nothing where there are none, or they do not decode.
[[nodiscard]] std::optional<format::hparams_record> hparams_of(const format::summary_value& value);

/// "units=32 rate=0.1", "2 settings, 1 metric", "ended: success". Printable.
[[nodiscard]] std::string hparams_text(const format::hparams_record& record);

/// One object: {"session_start": {...}}, {"experiment": {...}} or {"session_end": {...}}.
void write_hparams(json_writer& json, const format::hparams_record& record);

}  // namespace stepwell::tool
