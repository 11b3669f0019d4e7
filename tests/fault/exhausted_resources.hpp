// SPDX-License-Identifier: Apache-2.0
//
// Makes the system refuse threads, descriptors or memory on request. Linked only into programs that a fault sweep starts: it
// replaces the functions of the C library that make them, and the operators new.
#pragma once

#include <cstdint>
#include <string>

namespace stepwell::test {

/// A resource that can be counted and refused.
enum class resource {
  threads,      ///< `pthread_create`
  descriptors,  ///< `open` and the other functions that return a new descriptor
  memory,       ///< Allocations of 1 MiB and more.
};
inline constexpr std::uint64_t large_allocation = std::uint64_t{1} << 20;

/// Counts the requests for each resource from here on and refuses the request number `first` (from 1) for `which`; with
/// `and_all_later` also each request after it. A `first` of 0 refuses nothing.
void refuse(resource which, std::uint64_t first, bool and_all_later);

/// Stops counting and refusing; returns true if a request was refused.
bool refuse_no_more();

/// Returns the number of requests for `which` since `refuse` was called.
[[nodiscard]] std::uint64_t requests(resource which);

}  // namespace stepwell::test
