// SPDX-License-Identifier: Apache-2.0
//
// The copy of the state from which a session without a checkpoint recovers.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/checkpoint/snapshot.hpp"

#include <cstddef>
#include <optional>

namespace stepwell {

/// The copy of the state from which a recovery continues while the session has no checkpoint.
/// @threads Any.
class recovery_copy {
public:
  /// Keeps `taken` instead of the previous copy. The memory of `taken` leaves its pool, which gets an empty buffer in exchange. If
  /// `is_initial` is true, `taken` is the state at the first creation of the session, and a recovery also repeats the initialisation. If
  /// `is_initial` is false, `taken` is a complete state, like that of a checkpoint.
  void keep(snapshot taken, bool is_initial);
  void drop() noexcept;
  /// Calls `restore` with the copy and returns true. Returns false if there is no copy, or if the copy was kept with another `is_initial`.
  bool restore(bool is_initial, function_ref<void(const snapshot&)> restore) const;
  /// Returns the memory of the copy in bytes.
  [[nodiscard]] std::size_t held_bytes() const noexcept;

private:
  mutable detail::checked_mutex mutex_;
  std::optional<snapshot> kept_ STEPWELL_GUARDED_BY(mutex_);
  bool is_initial_ STEPWELL_GUARDED_BY(mutex_) = false;
};

}  // namespace stepwell
