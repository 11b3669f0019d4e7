// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/detail/fair_shared_mutex.hpp"

#include <cassert>

namespace stepwell {

void fair_shared_mutex::enter(entry as) {
  std::unique_lock lock(mutex_);
  if (first_ == nullptr && is_open_for(as)) { return admit(as); }
  waiter me{as};
  (first_ == nullptr ? first_ : last_->next) = &me;
  last_ = &me;
  me.admitted.wait(lock, [&] { return me.is_in; });
}

void fair_shared_mutex::leave(entry as) noexcept {
  const std::lock_guard lock(mutex_);
  if (as == entry::alone) {
    assert(has_one_alone_);
    has_one_alone_ = false;
  } else {
    assert(sharing_ > 0);
    --sharing_;
  }
  while (first_ != nullptr && is_open_for(first_->as)) {
    waiter& next = *first_;
    first_ = next.next;
    admit(next.as);
    next.is_in = true;
    next.admitted.notify_one();  // under the lock: `next` may be destroyed once it is released
  }
}

int fair_shared_mutex::waiting() const {
  const std::lock_guard lock(mutex_);
  int count = 0;
  for (const auto* one = first_; one != nullptr; one = one->next) { ++count; }
  return count;
}

void fair_shared_mutex::admit(entry as) noexcept {
  if (as == entry::alone) {
    has_one_alone_ = true;
  } else {
    ++sharing_;
  }
}

}  // namespace stepwell
