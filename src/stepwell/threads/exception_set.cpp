// SPDX-License-Identifier: Apache-2.0
#include "stepwell/threads/exception_set.hpp"

#include "stepwell/base/error.hpp"

#include <algorithm>

namespace stepwell {

bool exception_set::contains(const std::exception_ptr& failure) const noexcept try {
  if (says_yes_ && says_yes_(failure)) { return true; }
  if (kinds_.empty()) { return false; }
  try {
    std::rethrow_exception(failure);
  } catch (const error& ours) { return std::ranges::find(kinds_, ours.kind()) != kinds_.end(); }
} catch (...) { return false; }

}  // namespace stepwell
