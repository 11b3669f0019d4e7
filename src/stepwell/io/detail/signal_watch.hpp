// SPDX-License-Identifier: Apache-2.0
//
// Signals of the process as calls of a function, on a thread where everything is allowed.
#pragma once

#include "stepwell/base/result.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::io {

/// Told of the first of some signals that comes, while it lives. Any number of watches may ask for the same signal: all of
/// them are told. A signal that finds every watch that asked for it told already ends the process as if nobody watched: its
/// default disposition is then in force, so that even a process that hangs obeys. Calls of the system that a watched signal
/// interrupts are begun again.
///
/// What the program itself had arranged for the signals is back in force once the last watch of them is gone, and a signal
/// that came too late for a watch takes that way.
/// @threads Any. A call of `tell` is over when the watch is gone.
class signal_watch {
public:
  /// `tell` is called once, with the first of `signals` that comes, on a thread of its own for all watches.
  /// @pre    `tell` neither throws nor makes or drops a watch.
  /// @errors `invalid_argument` for what is no signal, or one that cannot be caught; `resource_exhausted` if the system
  ///         has no thread or descriptor for it. Then nothing is changed.
  [[nodiscard]] static result<std::unique_ptr<signal_watch>> start(std::vector<int> signals, std::function<void(int)> tell);

  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;
  ~signal_watch();

private:
  friend class signal_hub;
  signal_watch(std::vector<int> signals, std::function<void(int)> tell);
  [[nodiscard]] bool wants(int signal) const noexcept;

  std::vector<int> signals_;
  std::function<void(int)> tell_;
  bool is_told_ = false;
};

/// "SIGTERM"; "signal 77" for one without a name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace stepwell::io
