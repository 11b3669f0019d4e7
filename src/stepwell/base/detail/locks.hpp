// SPDX-License-Identifier: Apache-2.0
//
// A mutex and its lock, with annotations that clang's -Wthread-safety checks (`bash tests/run lint`). Other compilers ignore them. They are
// attributes of LevelDB's and Abseil's kind, because the standard library of GCC has none.
#pragma once

#include <mutex>

#if defined(__clang__)
#define STEPWELL_LOCKS(...) __attribute__((__VA_ARGS__))
#else
#define STEPWELL_LOCKS(...)
#endif

/// Behind a member: it is read and written with `MUTEX` held only.
#define STEPWELL_GUARDED_BY(MUTEX) STEPWELL_LOCKS(guarded_by(MUTEX))
/// Behind the parameters of a function or a lambda: its caller holds the mutex, or does not hold it.
#define STEPWELL_HOLDS(...) STEPWELL_LOCKS(requires_capability(__VA_ARGS__))
#define STEPWELL_HOLDS_NOT(...) STEPWELL_LOCKS(locks_excluded(__VA_ARGS__))
/// Behind the parameters of a function whose locks clang cannot follow. The reason is beside each use.
#define STEPWELL_UNCHECKED_LOCKS STEPWELL_LOCKS(no_thread_safety_analysis)

namespace stepwell::detail {

/// A `std::mutex` that guards members.
class STEPWELL_LOCKS(capability("mutex")) checked_mutex {
private:
  friend class mutex_lock;
  friend class mutex_unlock;
  std::mutex native_;
};

/// Holds a mutex from its constructor to its destructor, except between `unlock` and `lock`. Conditions wait with it.
class STEPWELL_LOCKS(scoped_lockable) mutex_lock {
public:
  explicit mutex_lock(checked_mutex& mutex) STEPWELL_LOCKS(acquire_capability(mutex)) : native_(mutex.native_) {}
  ~mutex_lock() STEPWELL_LOCKS(release_capability()) = default;
  mutex_lock(mutex_lock&&) noexcept = default;
  mutex_lock& operator=(mutex_lock&&) = delete;

  void lock() STEPWELL_LOCKS(acquire_capability()) { native_.lock(); }
  void unlock() STEPWELL_LOCKS(release_capability()) { native_.unlock(); }
  explicit(false) operator std::unique_lock<std::mutex>&() noexcept { return native_; }

private:
  std::unique_lock<std::mutex> native_;
};

/// Releases a mutex that its thread holds, from its constructor to its destructor.
class STEPWELL_LOCKS(scoped_lockable) mutex_unlock {
public:
  explicit mutex_unlock(checked_mutex& mutex) STEPWELL_LOCKS(release_capability(mutex)) : mutex_(mutex) { mutex.native_.unlock(); }
  ~mutex_unlock() STEPWELL_LOCKS(release_capability()) { mutex_.native_.lock(); }
  mutex_unlock(const mutex_unlock&) = delete;
  mutex_unlock& operator=(const mutex_unlock&) = delete;

private:
  checked_mutex& mutex_;
};

}  // namespace stepwell::detail
