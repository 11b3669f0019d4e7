// SPDX-License-Identifier: Apache-2.0
//
// Counts the calls of the global operator new. Include it in only one file of a test program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // a false warning about replaced operators (g++ 12)

inline std::atomic<std::size_t> allocations = 0;

void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) { return memory; }
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
