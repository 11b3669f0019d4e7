// SPDX-License-Identifier: Apache-2.0
//
// A gate that blocks threads until a test opens it. It simulates a slow disk without sleeping.
#pragma once

#include <condition_variable>
#include <mutex>

namespace stepwell::test {

/// A gate that blocks threads in pass() while it is closed.
/// @threads Any.
class gate {
public:
  void close() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
    }
    changed_.notify_all();
  }
  /// Blocks while the gate is closed.
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
    --waiting_;
  }
  /// Blocks until a thread waits in pass().
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int waiting_ = 0;
};

}  // namespace stepwell::test
