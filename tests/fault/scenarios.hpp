// SPDX-License-Identifier: Apache-2.0
//
// The scenarios of a fault sweep: parts of the library that create threads, and complete sessions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stepwell::test {

/// A scenario. It runs to its end in a directory, or throws. It may be called again in the same directory, also after
/// an exception.
using scenario = std::function<void(const std::string& directory)>;

/// Returns the scenario with that name, or an empty function if there is none.
[[nodiscard]] scenario scenario_called(std::string_view name);

/// Runs two sessions, of which the second one resumes the first. They use checkpoints, event files, metrics, a signal,
/// a queue with two producers, a coordinated thread, a timeline, and an evaluation at each checkpoint.
void blocking_sessions(const std::string& directory);

/// Like blocking_sessions(), but asynchronous: with steps on an executor, a save and a snapshot on request, and an
/// evaluation during the training.
void awaited_sessions(const std::string& directory);

/// Runs two sessions, of which the second one resumes the first, with an evaluation beside the training, best checkpoints, two metric
/// files, and record files that a thread reads ahead.
void featured_sessions(const std::string& directory);

}  // namespace stepwell::test
