// SPDX-License-Identifier: Apache-2.0
//
// Delays threads at random. Preloaded into a program (LD_PRELOAD), it replaces three functions of the C library. A thread then sleeps in one of
// 20 calls of these functions, for at most 4 ms, so a test or code that works only if one thread is faster than another one fails soon.
// STEPWELL_DELAY_SEED selects other delays.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <thread>

namespace {

/// Returns the function of the C library that this library replaces.
template<class Function>
Function* original(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Returns the generator of the calling thread. Each thread has other numbers.
std::minstd_rand& generator() noexcept {
  static std::atomic<unsigned> threads = 0;
  static const unsigned long seed = [] {
    const char* text = std::getenv("STEPWELL_DELAY_SEED");
    return text != nullptr ? std::strtoul(text, nullptr, 10) : 1;
  }();
  thread_local std::minstd_rand mine(static_cast<unsigned>(seed * 1000 + ++threads));
  return mine;
}

void delay() noexcept {
  auto& random = generator();
  if (random() % 20 == 0) { std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000)); }
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const lock = original<int(pthread_mutex_t*)>("pthread_mutex_lock");
  delay();
  return lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static auto* const unlock = original<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  const int code = unlock(mutex);
  delay();
  return code;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept {
  static auto* const create = original<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  const int code = create(thread, attributes, start, argument);
  delay();
  return code;
}
}
