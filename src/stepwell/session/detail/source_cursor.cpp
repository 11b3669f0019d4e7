// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/source_cursor.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>

namespace stepwell::detail {

void warn_of_unseekable(detail::source_positions& positions, const std::string& name, std::int64_t global_step) {
  const bool is_new = positions.is_new(name);  // called in any case, so that a later loop over it does not warn
  if (const auto restored = positions.restored(name)) {
    log_warning(fmt::format("the source \"{}\" cannot seek to position {} of the checkpoint; it continues from its current position", name,
                            *restored));
  } else if (is_new && global_step > 0) {
    log_warning(
        fmt::format("the source \"{}\" cannot seek: after step {} its batches come from its current position, not from where an earlier "
                    "run ended; give a seekable source",
                    name, global_step));
  }
}

void refuse_rewind(unseekable_policy policy, const missed_rewind& missed) {
  const auto what = fmt::format("the state went from step {} to {}, but the source \"{}\" {}", missed.from, missed.to, missed.source,
                                missed.can_seek ? "has no position for that step" : "cannot seek");
  if (policy == unseekable_policy::fail) {
    throw failed_precondition_error("cannot rewind: " + what + "; give a seekable source, or set on_unseekable to skip");
  }
  log_warning(what + "; it continues from its current position");
}

}  // namespace stepwell::detail
