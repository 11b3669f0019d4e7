// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/source_cursor.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>

namespace stepwell::detail {
namespace {

/// Returns "the source", and the name if there is one.
std::string source_text(const std::string& name) { return name.empty() ? "the source" : fmt::format("the source \"{}\"", name); }

}  // namespace

void warn_of_unseekable(detail::source_positions& positions, const std::string& name, std::int64_t global_step) {
  const log_scope session(positions.log_name());
  const bool is_new = positions.is_new(name);  // called in any case, so that a later loop over it does not warn
  if (const auto restored = positions.restored(name)) {
    log_warning(fmt::format("{} cannot seek to position {} of the checkpoint; it continues from its current position", source_text(name),
                            *restored));
  } else if (is_new && global_step > 0 && positions.resumes()) {
    log_warning(
        fmt::format("{} cannot seek: after step {} its batches come from its current position, not from where an earlier run ended; give a "
                    "seekable source",
                    source_text(name), global_step));
  }
}

void check_fingerprint(source_positions& positions, const std::string& name, std::string fingerprint, other_data_policy policy) {
  const log_scope session(positions.log_name());
  const auto restored = positions.restored(name);
  const auto saved = positions.restored_fingerprint(name);
  const auto former = restored || fingerprint.empty() ? std::string() : positions.waiting_with(fingerprint);
  std::string differs;
  if (!former.empty()) {
    differs = fmt::format(
        "the checkpoint has no position of the source \"{}\", but one of \"{}\" with the same data ({}), so \"{}\" begins at its start; give "
        "it the name that it had",
        name, former, fingerprint, name);
  } else if (restored && !saved.empty() && !fingerprint.empty() && saved != fingerprint) {
    differs = fmt::format(
        "{} has other data ({}) than the one of the checkpoint ({}), so its position {} selects other examples; give the same "
        "dataset and seed, or begin in another directory",
        source_text(name), fingerprint, saved, *restored);
  }
  if (!differs.empty()) {
    if (policy == other_data_policy::fail) { throw failed_precondition_error(differs); }
    log_warning(differs);
  }
  if (!fingerprint.empty() || !saved.empty()) { positions.set_fingerprint(name, std::move(fingerprint)); }
}

void refuse_rewind(unseekable_policy policy, const missed_rewind& missed) {
  const auto what = fmt::format("the state went from step {} to {}, but {} {}", missed.from, missed.to, source_text(missed.source),
                                missed.can_seek ? "has no position for that step" : "cannot seek");
  if (policy == unseekable_policy::fail) {
    throw failed_precondition_error("cannot rewind: " + what + "; give a seekable source, or set on_unseekable to skip");
  }
  log_warning(what + "; it continues from its current position");
}

}  // namespace stepwell::detail
