// SPDX-License-Identifier: Apache-2.0
//
// Text for sizes, times, numbers and names.
#pragma once

#include "stepwell/base/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell::tool {

/// Returns text of a file in a form that can be printed: control bytes and invalid UTF-8 are escaped ("\x1b"), so that a name cannot
/// control the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// Returns the number of columns of `text`. It counts code points, which is exact except for wide and combining characters.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// Returns a size such as "17 B" or "1.2 MiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// Returns "1 file" or "2 files".
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view noun);

/// Returns the number with at most six digits: "0.123457", "1.2e+09", "nan".
[[nodiscard]] std::string number_text(double value);

/// Returns "2026-11-22 05:34:04" for seconds since 1970, in UTC; "-" if they are not a valid date.
[[nodiscard]] std::string time_text(double seconds);

/// Returns a duration such as "1.5 s", "2 min 3 s", "3 h 20 min", or "2 d 4 h".
[[nodiscard]] std::string duration_text(double seconds);

/// Returns NumPy's name of the type, such as "float32"; "dtype 99" for unknown numbers.
[[nodiscard]] std::string dtype_text(dtype type);

}  // namespace stepwell::tool
