// SPDX-License-Identifier: Apache-2.0
//
// Sizes, times, numbers and names as people read them.
#pragma once

#include "stepwell/base/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell::tool {

/// Text of a file that is safe to show: control bytes and bad UTF-8 are escaped ("\x1b"), so that no name moves the cursor.
[[nodiscard]] std::string printable(std::string_view text);

/// Columns it takes: code points, which is exact for all but wide and combining ones.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// "17 B", "1.2 MiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// "1 file", "2 files".
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view noun);

/// Six digits at most: "0.123457", "1.2e+09", "nan".
[[nodiscard]] std::string number_text(double value);

/// "2026-11-22 05:34:04" of seconds since 1970, in UTC; "-" where that is no date.
[[nodiscard]] std::string time_text(double seconds);

/// "1.5 s", "2 min 3 s", "3 h 20 min", "2 d 4 h".
[[nodiscard]] std::string duration_text(double seconds);

/// "float32", as NumPy calls it; "dtype 99" for numbers nobody knows.
[[nodiscard]] std::string dtype_text(dtype type);

}  // namespace stepwell::tool
