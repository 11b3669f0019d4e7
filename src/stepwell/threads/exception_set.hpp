// SPDX-License-Identifier: Apache-2.0
//
// Which exceptions are meant, where some of them are no failures: the end of the data, a queue that is closed.
#pragma once

#include "stepwell/base/status.hpp"

#include <exception>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

namespace stepwell {

/// Some exceptions: those of some kinds of ours, or those that a predicate says yes to. None by default.
class exception_set {
public:
  /// Must not throw; what it throws counts as no.
  using predicate = std::function<bool(const std::exception_ptr&)>;

  exception_set() = default;
  exception_set(std::initializer_list<errc> kinds) : kinds_(kinds) {}
  explicit exception_set(predicate says_yes) : says_yes_(std::move(says_yes)) {}

  [[nodiscard]] bool empty() const noexcept { return kinds_.empty() && !says_yes_; }
  /// @pre `failure` is not null.
  [[nodiscard]] bool contains(const std::exception_ptr& failure) const noexcept;

private:
  std::vector<errc> kinds_;
  predicate says_yes_;
};

}  // namespace stepwell
