// SPDX-License-Identifier: Apache-2.0
//
// The values of float8, float4, int4 and int2 numbers, made by ml_dtypes.
#pragma once

#include "support/file_text.hpp"

#include <stepwell/base/dtype.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <vector>

namespace stepwell::test {

struct narrow_row {
  std::string name;  ///< As NumPy has it: "float8_e5m2".
  dtype type = dtype::invalid;
  std::vector<float> values;  ///< By bit pattern.
};

/// Reads tests/golden/format/narrow_numbers.txt.
inline std::vector<narrow_row> narrow_table() {
  std::vector<narrow_row> rows;
  std::istringstream lines(file_text(STEPWELL_GOLDEN "/format/narrow_numbers.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    narrow_row row;
    words >> row.name;
    std::string tensorflow_name = "DT_" + row.name;
    std::ranges::transform(tensorflow_name, tensorflow_name.begin(),
                           [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    for (std::int32_t number = 24; number <= 33; ++number) {
      if (to_string(dtype{number}) == tensorflow_name) { row.type = dtype{number}; }
    }
    for (std::string word; words >> word;) { row.values.push_back(std::stof(word)); }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepwell::test
