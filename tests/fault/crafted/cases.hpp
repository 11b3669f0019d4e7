// SPDX-License-Identifier: Apache-2.0
//
// One crafted run directory: the good files, and one of them replaced by what an attacker, a bug or a bad disk makes of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stepwell::test {

/// Writes the files of case `number` of `seed` into `directory`, which is empty. Returns a line that says what was done.
std::string write_crafted_case(const std::string& directory, const std::map<std::string, std::string>& good, std::uint64_t seed,
                               std::uint64_t number);

}  // namespace stepwell::test
