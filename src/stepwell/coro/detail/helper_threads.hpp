// SPDX-License-Identifier: Apache-2.0
//
// Threads for what would hold up an event loop: disks, long copies, and waiting for others.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace stepwell::coro {

/// Runs jobs that may block. Threads come as they are needed, at most `limit`, and then stay; a job that waits for somebody
/// who may himself need a job done gets a thread of its own, so that no number of those keeps the others from running.
/// @threads Any.
class helper_threads {
public:
  explicit helper_threads(std::size_t limit);
  helper_threads(const helper_threads&) = delete;
  helper_threads& operator=(const helper_threads&) = delete;
  /// Jobs not begun are dropped; the threads end by themselves.
  ~helper_threads();

  /// Runs `job`, which must not throw, on one of the threads, as soon as one is free.
  /// @errors `resource_exhausted_error` if there is no thread yet and the system has no more.
  void post(std::function<void()> job);
  /// The same on a thread that ends with it. @errors `resource_exhausted_error` if the system has no more threads.
  void post_apart(std::function<void()> job);

  /// Those of the process, 16 at most, never joined: whoever has a job there waits for it before the process ends.
  [[nodiscard]] static helper_threads& shared();

private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace stepwell::coro
