// SPDX-License-Identifier: Apache-2.0
//
// Private: the text of an exception of any type, and allocation failures as a status and as an exception.
#pragma once

#include "stepwell/base/error.hpp"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell::detail {

/// Returns the text of `failure` for a log line: `what()` of a `std::exception`, otherwise the name of its type.
/// @pre `failure` is not null.
[[nodiscard]] std::string text_of(const std::exception_ptr& failure);

inline constexpr std::string_view memory_shortage_text = "there is not enough memory";

/// Returns `resource_exhausted` for an allocation that failed while doing `tried` on `place`.
[[nodiscard]] inline status memory_shortage(std::string_view tried, std::string place) {
  return {errc::resource_exhausted, std::string(tried).append(": ").append(memory_shortage_text), std::move(place)};
}

/// Returns true for a status that `memory_shortage` made, and false for other exhausted resources, such as descriptors.
[[nodiscard]] inline bool is_memory_shortage(const status& failure) {
  return failure.code == errc::resource_exhausted && failure.message.find(memory_shortage_text) != std::string::npos;
}

/// Returns `act()`. @errors `resource_exhausted_error` if an allocation in `act` fails. Other exceptions of `act` are passed on.
template<class Act>
decltype(auto) with_memory(std::string_view tried, const std::string& place, Act&& act) {
  try {
    return std::forward<Act>(act)();
  } catch (const std::bad_alloc&) { throw_status(memory_shortage(tried, place)); } catch (const std::length_error&) {
    throw_status(memory_shortage(tried, place));  // the size exceeds the limit of all allocations
  }
}

}  // namespace stepwell::detail
