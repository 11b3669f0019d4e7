// SPDX-License-Identifier: Apache-2.0
//
// Numbers that strangers send.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace async_server {

/// The numbers of `{"x": [0.5, 1]}`, `{"x": 0.5}`, or of `0.5 1`. Nothing where there is anything else, no number at all, or
/// one that is not finite.
[[nodiscard]] std::optional<std::vector<float>> numbers_in(const std::string& body);

}  // namespace async_server
