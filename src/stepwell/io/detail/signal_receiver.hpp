// SPDX-License-Identifier: Apache-2.0
//
// A thread that receives signals.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"

#include <functional>
#include <memory>

namespace stepwell::io {

/// A thread that receives signals and calls a function for each.
/// @threads Other threads may call `call` and the destructor. All other functions must be called on the thread of the receiver.
class signal_receiver {
public:
  /// Starts the thread, which calls `on_signal(signal)` for each signal that it receives.
  /// @errors `resource_exhausted` if the system cannot provide a descriptor or a thread.
  [[nodiscard]] static result<std::unique_ptr<signal_receiver>> start(std::function<void(int)> on_signal);
  signal_receiver(const signal_receiver&) = delete;
  signal_receiver& operator=(const signal_receiver&) = delete;
  /// Ends the thread.
  ~signal_receiver();

  /// Calls `action` on the thread of the receiver, and waits until it has returned.
  void call(function_ref<void()> action);

  /// Receives `signal` from now on. Changes its disposition. @errors `invalid_argument` if it is not a signal or cannot be caught.
  result<void> add(int signal);
  /// Ends the reception of `signal`. @pre The disposition is the one that `add` has set.
  void remove(int signal);
  /// Calls `on_signal` for the signals that have arrived.
  void process_arrived();

private:
  struct thread_state;
  explicit signal_receiver(std::unique_ptr<thread_state> state) noexcept;

  std::unique_ptr<thread_state> state_;
};

}  // namespace stepwell::io
