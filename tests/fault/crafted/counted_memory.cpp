// SPDX-License-Identifier: Apache-2.0
#include "fault/crafted/counted_memory.hpp"

#include <malloc.h>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocated = 0;
std::atomic<std::size_t> peak = 0;

void* counted(void* made) noexcept {
  if (made == nullptr) { return nullptr; }
  const auto now = allocated.fetch_add(::malloc_usable_size(made)) + ::malloc_usable_size(made);
  for (auto before = peak.load(); before < now && !peak.compare_exchange_weak(before, now);) {}
  return made;
}

void release(void* memory) noexcept {
  if (memory == nullptr) { return; }
  allocated -= ::malloc_usable_size(memory);
  std::free(memory);
}

void* or_throw(void* made) {
  if (made == nullptr) { throw std::bad_alloc(); }
  return made;
}

std::size_t whole(std::size_t size, std::size_t alignment) noexcept { return (size + alignment - 1) / alignment * alignment; }

}  // namespace

namespace stepwell::test {

std::size_t allocated_bytes() noexcept { return allocated; }
std::size_t peak_bytes() noexcept { return peak; }
void reset_peak() noexcept { peak = allocated.load(); }

}  // namespace stepwell::test

void* operator new(std::size_t size) { return or_throw(counted(std::malloc(size))); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto boundary = static_cast<std::size_t>(alignment);
  return or_throw(counted(std::aligned_alloc(boundary, whole(size, boundary))));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
