// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/update_fence.hpp"

#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/pending_copy.hpp"

#include <fmt/format.h>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

void update_fence::settle() noexcept {
  for (const auto& copy : pending_) {
    copy->complete();
    try {
      copy->hold_back_updates();
    } catch (const std::exception&) {}  // NOLINT(bugprone-empty-catch): the snapshot reports the failure of the copy
    copy->release_owners();
  }
  pending_.clear();
}

void update_fence::wait_for_copies() {
  std::optional<std::string> moved;
  std::optional<std::string> changed;
  detail::error_collector failures;
  for (const auto& copy : pending_) {
    failures.attempt([&] { copy->hold_back_updates(); });
    copy->complete();
    if (!moved && copy->has_checks() && list_) { moved = copy->moved_source(list_()); }
    if (!moved && !changed) { changed = copy->changed_source(); }
    copy->release_owners();
  }
  pending_.clear();
  failures.rethrow();
  if (moved) {
    throw failed_precondition_error(
        fmt::format("the variable \"{}\" was resized, replaced or destroyed before update_fence::wait() was called, while a snapshot of it "
                    "could be copied; call wait() before the first change of a variable, or declare this variable early()",
                    *moved));
  }
  if (!changed) { return; }
  throw failed_precondition_error(
      fmt::format("the variable \"{}\" changed before update_fence::wait() was called, while a snapshot of it was copied; call wait() "
                  "before the first change of a variable, or declare this variable early()",
                  *changed));
}

}  // namespace stepwell
