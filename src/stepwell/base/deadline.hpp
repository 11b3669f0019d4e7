// SPDX-License-Identifier: Apache-2.0
//
// A deadline of a wait, which can be converted from one clock to another.
#pragma once

#include "stepwell/base/clock.hpp"

#include <algorithm>

namespace stepwell {

/// A point in time on the clock `source`. It can be converted to a point in time on another clock.
class deadline {
public:
  deadline(const clock& source, clock::time_point when) noexcept : source_(&source), when_(when) {}

  /// Returns a deadline that never passes.
  [[nodiscard]] static deadline never(const clock& source) noexcept { return {source, clock::time_point::max()}; }

  /// Returns the time of `other` at which the deadline passes. The remaining time is the same on both clocks.
  [[nodiscard]] clock::time_point on(const clock& other) const {
    if (&other == source_ || when_ == clock::time_point::max()) { return when_; }
    return other.now() + (when_ - source_->now());
  }
  /// Returns the remaining time. Returns zero if the deadline has passed.
  [[nodiscard]] clock::duration remaining() const {
    if (when_ == clock::time_point::max()) { return clock::duration::max(); }
    return std::max(when_ - source_->now(), clock::duration::zero());
  }

private:
  const clock* source_;
  clock::time_point when_;
};

namespace detail {

[[nodiscard]] inline deadline earlier_of(const deadline& one, const deadline& other) {
  return one.remaining() < other.remaining() ? one : other;
}

}  // namespace detail

}  // namespace stepwell
