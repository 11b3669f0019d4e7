// SPDX-License-Identifier: Apache-2.0
//
// Hyperparameters of a trial and its final status. `hparams.hpp` encodes them for TensorBoard's hyperparameter dashboard.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell::format {

/// The value of one hyperparameter: a number, a string or a boolean.
class hparam_value {
public:
  hparam_value(bool value) : value_(value) {}
  template<class Number>
    requires(std::is_arithmetic_v<Number> && !std::same_as<Number, bool>)
  hparam_value(Number value) : value_(static_cast<double>(value)) {}
  hparam_value(std::string value) : value_(std::move(value)) {}
  hparam_value(std::string_view value) : value_(std::string(value)) {}
  hparam_value(const char* value) : value_(std::string(value)) {}

  [[nodiscard]] const std::variant<double, std::string, bool>& get() const noexcept { return value_; }
  friend bool operator==(const hparam_value&, const hparam_value&) = default;

private:
  std::variant<double, std::string, bool> value_;
};

/// Hyperparameters by name.
using hparam_map = std::map<std::string, hparam_value>;

/// The status of a trial. The values are those of TensorBoard and are stored in files.
enum class hparams_status : std::int32_t { unknown = 0, success = 1, failure = 2, running = 3 };

}  // namespace stepwell::format
