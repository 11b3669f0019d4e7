// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's tf.train.Example as a plain value: named lists of byte strings, floats or integers. Works on bytes and does no I/O.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stepwell::format {

/// The values of one feature: a list of one type, or `std::monostate` for a feature that has no list.
using feature = std::variant<std::monostate, std::vector<std::string>, std::vector<float>, std::vector<std::int64_t>>;

/// One example of a dataset.
struct example {
  std::map<std::string, feature, std::less<>> features;

  friend bool operator==(const example&, const example&) = default;
};

/// Return the values of the feature `name`. The span refers to `from`.
/// @errors `not_found` if there is no such feature; the message lists the features. `invalid_argument` if the feature has values of another
///   type, or none.
[[nodiscard]] result<std::span<const std::string>> byte_strings(const example& from, std::string_view name);
[[nodiscard]] result<std::span<const float>> floats(const example& from, std::string_view name);
[[nodiscard]] result<std::span<const std::int64_t>> integers(const example& from, std::string_view name);

/// Returns the example that `bytes` encode.
/// @errors `data_loss` if `bytes` are not an Example message, or if the example would need more memory than 24 MiB plus twice the size of
///   `bytes`.
[[nodiscard]] result<example> decode_example(std::span<const std::byte> bytes);

/// Returns `value` as an Example message. The features are in the order of their names, so that equal examples have equal bytes.
[[nodiscard]] std::string encode(const example& value);

}  // namespace stepwell::format
