// SPDX-License-Identifier: Apache-2.0
//
// Makes requests for threads, descriptors or memory fail on demand. Linked only into programs that a fault sweep
// starts, because it replaces functions of the C library and the operators new.
#pragma once

#include <cstdint>
#include <string>

namespace stepwell::test {

/// A resource whose requests can be counted and made to fail.
enum class resource {
  threads,      ///< `pthread_create`
  descriptors,  ///< `open` and the other functions that return a new descriptor
  memory,       ///< Allocations of 1 MiB and more.
};
inline constexpr std::uint64_t large_allocation = std::uint64_t{1} << 20;

/// Counts the requests for each resource from now on. Makes request number `first` (from 1) for `which` fail; with
/// `and_all_later` also every later one. If `first` is 0, no request fails.
void refuse(resource which, std::uint64_t first, bool and_all_later);

/// Ends the counting and the failures. Returns true if a request has failed.
bool refuse_no_more();

/// Returns the number of requests for `which` since `refuse` was called.
[[nodiscard]] std::uint64_t requests(resource which);

}  // namespace stepwell::test
