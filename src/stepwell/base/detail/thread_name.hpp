// SPDX-License-Identifier: Apache-2.0
//
// What threads are called, for people who read logs and timelines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell {

/// Gives this thread a name, for as long as it lives or until the next call. The system is not told.
void set_thread_name(std::string_view name);

/// The name of this thread: the one that was given, or "thread 3" after its id.
[[nodiscard]] std::string current_thread_name();

/// A small number that no other thread of this process has or had: 1 for the first one that asks, then 2, 3...
[[nodiscard]] std::uint32_t current_thread_id() noexcept;

}  // namespace stepwell
