// SPDX-License-Identifier: Apache-2.0
//
// `result`: a value, or the status of a failure. The functions of `base`, `format` and `io` return it to report errors.
#pragma once

#include "stepwell/base/status.hpp"

#include <cassert>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell {

template<class T>
class result;

namespace detail {
template<class T>
inline constexpr bool is_result = false;
template<class T>
inline constexpr bool is_result<result<T>> = true;
}  // namespace detail

/// A `T` or a `status`. Check `ok()` first: access to the alternative that is not held is a broken precondition.
template<class T>
class [[nodiscard]] result {
public:
  using value_type = T;

  template<class U = T>
    requires(std::is_constructible_v<T, U &&> && !detail::is_result<std::remove_cvref_t<U>> &&
             !std::is_same_v<std::remove_cvref_t<U>, status>)
  explicit(!std::is_convertible_v<U&&, T>) result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  result(status failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  [[nodiscard]] T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  [[nodiscard]] const status& error() const& {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] status&& error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

private:
  std::variant<T, status> state_;
};

/// Success, or the status of a failure.
template<>
class [[nodiscard]] result<void> {
public:
  using value_type = void;

  result() = default;
  result(status failure) : failure_(std::move(failure)) {}

  [[nodiscard]] bool ok() const noexcept { return !failure_; }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] const status& error() const& {
    assert(!ok());
    return *failure_;
  }
  [[nodiscard]] status&& error() && {
    assert(!ok());
    return std::move(*failure_);
  }

private:
  std::optional<status> failure_;
};

}  // namespace stepwell
