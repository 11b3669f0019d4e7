// SPDX-License-Identifier: Apache-2.0
//
// A set of exceptions that are not failures, such as the end of the data or a closed queue.
#pragma once

#include "stepwell/base/status.hpp"

#include <exception>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

namespace stepwell {

/// A set of exceptions, given by error kinds of this library or by a predicate. Empty by default.
class exception_set {
public:
  /// Predicate that returns true for exceptions in the set. If it throws, the result counts as false.
  using predicate = std::function<bool(const std::exception_ptr&)>;

  exception_set() = default;
  exception_set(std::initializer_list<errc> kinds) : kinds_(kinds) {}
  explicit exception_set(predicate says_yes) : says_yes_(std::move(says_yes)) {}

  [[nodiscard]] bool empty() const noexcept { return kinds_.empty() && !says_yes_; }
  /// Returns true if the set contains `failure`.
  /// @pre `failure` is not null.
  [[nodiscard]] bool contains(const std::exception_ptr& failure) const noexcept;

private:
  std::vector<errc> kinds_;
  predicate says_yes_;
};

}  // namespace stepwell
