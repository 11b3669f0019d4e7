// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/detail/recovery_copy.hpp"

#include "stepwell/base/detail/locks.hpp"

#include <utility>

namespace stepwell {

void recovery_copy::keep(snapshot taken, bool is_initial) {
  const detail::mutex_lock lock(mutex_);
  kept_.reset();
  taken.leave_pool();  // with the mutex held, so that a save that takes the free buffer drops this copy first
  kept_ = std::move(taken);
  is_initial_ = is_initial;
}

void recovery_copy::drop() noexcept {
  const detail::mutex_lock lock(mutex_);
  kept_.reset();
}

bool recovery_copy::restore(bool is_initial, function_ref<void(const snapshot&)> restore) const {
  const detail::mutex_lock lock(mutex_);
  if (!kept_ || is_initial_ != is_initial) { return false; }
  restore(*kept_);
  return true;
}

std::size_t recovery_copy::held_bytes() const noexcept {
  const detail::mutex_lock lock(mutex_);
  return kept_ ? kept_->held_bytes() : 0;
}

}  // namespace stepwell
