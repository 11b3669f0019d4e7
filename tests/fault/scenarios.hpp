// SPDX-License-Identifier: Apache-2.0
//
// What a fault sweep runs: parts of the library that make threads, and whole sessions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stepwell::test {

/// Runs to its end in a directory, or throws. May be called again in the same directory, also after it threw.
using scenario = std::function<void(const std::string& directory)>;

/// The scenario of that name; empty if there is none.
[[nodiscard]] scenario scenario_called(std::string_view name);

/// Two sessions, one after the other: the second one resumes the first. Checkpoints, event files, metrics, a signal, a queue
/// with two producers, a looper thread, a timeline, an evaluation at each checkpoint.
void blocking_sessions(const std::string& directory);

/// The same awaited, with steps on an executor, a save and a snapshot on request, and an evaluation beside the training.
void awaited_sessions(const std::string& directory);

}  // namespace stepwell::test
