// SPDX-License-Identifier: Apache-2.0
//
// Includes Catch2 3, or Catch2 2 as in Debian 12. Tests include this header and use only names that exist with both
// versions: `Approx`, and `ContainsSubstring`, which Catch2 2 calls `Contains`.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>

#include <string>

inline auto ContainsSubstring(const std::string& text) { return Catch::Matchers::Contains(text); }
#endif
