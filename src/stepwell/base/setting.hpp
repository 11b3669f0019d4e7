// SPDX-License-Identifier: Apache-2.0
//
// An option with three states: not set (the default applies), off, or a value.
#pragma once

#include <chrono>
#include <compare>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Switches a `setting` off: `.save_checkpoint_secs = stepwell::none`.
struct none_t {
  explicit constexpr none_t() = default;
};
inline constexpr none_t none{};

/// An option that is not set, off, or a value. Zero means off, too, as in TensorFlow. The code that uses the option rejects negative
/// numbers.
/// @see contract CREATE-2, CREATE-4 and PORT-1, decision D-31
template<class T>
class setting {
public:
  constexpr setting() = default;
  constexpr setting(none_t) : said_(true) {}
  template<class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, setting>)
  constexpr setting(U&& value) : said_(true), value_(static_cast<T>(std::forward<U>(value))) {}

  [[nodiscard]] constexpr bool is_default() const noexcept { return !said_; }

  /// Returns the value, also if it is zero or negative. Returns nullopt if the option is not set or is `none`.
  [[nodiscard]] constexpr const std::optional<T>& given() const noexcept { return value_; }
  /// Returns the value if there is one above zero. Returns nullopt otherwise.
  [[nodiscard]] constexpr std::optional<T> enabled() const { return value_ && *value_ > T{} ? value_ : std::nullopt; }

private:
  bool said_ = false;
  std::optional<T> value_;
};

/// A number of seconds, the type of all options in seconds. Made from `30`, `0.5` or a chrono duration.
class seconds_value {
public:
  constexpr seconds_value() = default;
  constexpr seconds_value(double seconds) : seconds_(seconds) {}
  template<class Rep, class Period>
  constexpr seconds_value(std::chrono::duration<Rep, Period> duration) : seconds_(std::chrono::duration<double>(duration).count()) {}

  [[nodiscard]] constexpr std::chrono::duration<double> duration() const noexcept { return std::chrono::duration<double>(seconds_); }
  [[nodiscard]] constexpr double count() const noexcept { return seconds_; }
  friend constexpr auto operator<=>(const seconds_value&, const seconds_value&) = default;

private:
  double seconds_ = 0;
};

}  // namespace stepwell
