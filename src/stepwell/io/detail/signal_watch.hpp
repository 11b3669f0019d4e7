// SPDX-License-Identifier: Apache-2.0
//
// Delivery of signals as calls of a function on an ordinary thread, where the restrictions of signal handlers do not apply.
#pragma once

#include "stepwell/base/error.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::io {

/// A watch for a set of signals. It calls a function for the first of its signals that arrives during its lifetime.
/// Any number of watches may have the same signal, and each of them is notified. After all watches of a signal have been notified, the
/// signal has its default disposition. The next such signal therefore ends the process, even if the process hangs. System calls that a
/// watched signal interrupts are restarted.
///
/// When the last watch of a signal is destroyed, the previous disposition of the signal is restored. If the signal arrives during this
/// destruction, too late for the watch, the restored disposition handles it.
/// @threads Any thread. The destructor waits until a running call of the function has ended.
class signal_watch {
public:
  /// Starts a watch. `on_signal` is called once, with the first of `signals` that arrives, on a thread that all watches share.
  /// @pre    `on_signal` does not throw, and neither creates nor destroys a watch.
  /// @errors `invalid_argument` if one of `signals` is not a signal or cannot be caught. `resource_exhausted` if the system cannot provide
  ///         a thread or a descriptor. All dispositions are unchanged in these cases.
  [[nodiscard]] static result<std::unique_ptr<signal_watch>> start(std::vector<int> signals, std::function<void(int)> on_signal);

  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;
  ~signal_watch();

private:
  friend class signal_hub;
  signal_watch(std::vector<int> signals, std::function<void(int)> on_signal);
  [[nodiscard]] bool wants(int signal) const noexcept;

  std::vector<int> signals_;
  std::function<void(int)> on_signal_;
  bool is_notified_ = false;
};

/// Returns the name of a signal: "SIGTERM", or "signal 77" if it has no name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace stepwell::io
