// SPDX-License-Identifier: Apache-2.0
//
// Parses numbers from untrusted input.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace async_server {

/// Returns the numbers of `{"x": [0.5, 1]}`, `{"x": 0.5}`, or `0.5 1`. Numbers are written as in JSON: `0.5`, not `.5`. Returns
/// nothing for any other text, an empty list, or a number that is not finite.
[[nodiscard]] std::optional<std::vector<float>> numbers_in(const std::string& body);

}  // namespace async_server
