// SPDX-License-Identifier: Apache-2.0
#include "fault/exhausted_resources.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace stepwell::test {
namespace {

std::array<std::atomic<std::uint64_t>, 3> counts;
std::atomic<bool> is_counting = false;
std::atomic<bool> has_refused = false;
std::atomic<std::uint64_t> first_refused = 0;
resource refused = resource::threads;
bool refuses_later = false;

std::atomic<std::uint64_t>& count_of(resource which) { return counts[static_cast<std::size_t>(which)]; }

/// Counts one request for `which`. Returns true if the request must fail.
bool must_fail(resource which) {
  if (!is_counting) { return false; }
  const auto number = ++count_of(which);
  if (which != refused || first_refused == 0 || number < first_refused) { return false; }
  if (number > first_refused && !refuses_later) { return false; }
  has_refused = true;
  return true;
}

/// Returns the function `name` of the C library.
template<class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Calls the function `name` of the C library, or fails with EMFILE if this descriptor must be refused.
template<class Result, class... Args>
Result descriptor_from(const char* name, Result none, Args... args) {
  if (must_fail(resource::descriptors)) {
    errno = EMFILE;
    return none;
  }
  return next<Result(Args...)>(name)(args...);
}

mode_t mode_in(int flags, va_list& rest) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; }

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (size >= large_allocation && must_fail(resource::memory)) { return nullptr; }
  if (alignment <= alignof(std::max_align_t)) { return std::malloc(size == 0 ? 1 : size); }
  void* made = nullptr;
  return ::posix_memalign(&made, alignment, size) == 0 ? made : nullptr;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* const made = allocate(size, alignment)) { return made; }
  throw std::bad_alloc();
}

}  // namespace

void refuse(resource which, std::uint64_t first, bool and_all_later) {
  for (auto& count : counts) { count = 0; }
  refused = which;
  refuses_later = and_all_later;
  first_refused = first;
  has_refused = false;
  is_counting = true;
}

bool refuse_no_more() {
  is_counting = false;
  return has_refused;
}

std::uint64_t requests(resource which) { return count_of(which); }

}  // namespace stepwell::test

using stepwell::test::descriptor_from;
using stepwell::test::mode_in;
using stepwell::test::must_fail;
using stepwell::test::resource;

extern "C" {

// The sanitizers' version of pthread_create, if there is one. Sanitizers must see all threads.
int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) __attribute__((weak));

int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  if (must_fail(resource::threads)) { return EAGAIN; }
  if (__interceptor_pthread_create != nullptr) { return __interceptor_pthread_create(made, how, run, with); }
  return stepwell::test::next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(made, how, run, with);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return descriptor_from("open", -1, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return descriptor_from("open64", -1, path, flags, mode);
}
int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return descriptor_from("openat", -1, directory, path, flags, mode);
}
int creat(const char* path, mode_t mode) { return descriptor_from("creat", -1, path, mode); }
int mkstemp(char* name) { return descriptor_from("mkstemp", -1, name); }
FILE* fopen(const char* path, const char* mode) { return descriptor_from("fopen", static_cast<FILE*>(nullptr), path, mode); }
FILE* fopen64(const char* path, const char* mode) { return descriptor_from("fopen64", static_cast<FILE*>(nullptr), path, mode); }
DIR* opendir(const char* path) { return descriptor_from("opendir", static_cast<DIR*>(nullptr), path); }
int dup(int one) noexcept { return descriptor_from("dup", -1, one); }
int pipe(int* ends) noexcept { return descriptor_from("pipe", -1, ends); }
int pipe2(int* ends, int flags) noexcept { return descriptor_from("pipe2", -1, ends, flags); }
int eventfd(unsigned int start, int flags) noexcept { return descriptor_from("eventfd", -1, start, flags); }
int epoll_create(int size) noexcept { return descriptor_from("epoll_create", -1, size); }
int epoll_create1(int flags) noexcept { return descriptor_from("epoll_create1", -1, flags); }
int timerfd_create(int which, int flags) noexcept { return descriptor_from("timerfd_create", -1, which, flags); }
int socket(int domain, int type, int protocol) noexcept { return descriptor_from("socket", -1, domain, type, protocol); }

// No fault sweep simulates a power loss, so these functions do not wait for the disk.
int fsync(int /*descriptor*/) { return 0; }
int fdatasync(int /*descriptor*/) { return 0; }

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return stepwell::test::allocate(size, alignment < sizeof(void*) ? sizeof(void*) : alignment);
}
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void* operator new(std::size_t size) { return stepwell::test::allocate_or_throw(size, 0); }
void* operator new[](std::size_t size) { return stepwell::test::allocate_or_throw(size, 0); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return stepwell::test::allocate(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return stepwell::test::allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return stepwell::test::allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return stepwell::test::allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
