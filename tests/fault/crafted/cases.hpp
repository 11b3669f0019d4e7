// SPDX-License-Identifier: Apache-2.0
//
// One crafted run directory: good files, one of which is replaced as by an attacker, a bug or a bad disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stepwell::test {

/// Writes the files of case `number` of `seed` into the empty `directory`. Returns a description of the change.
std::string write_crafted_case(const std::string& directory, const std::map<std::string, std::string>& good, std::uint64_t seed,
                               std::uint64_t number);

}  // namespace stepwell::test
