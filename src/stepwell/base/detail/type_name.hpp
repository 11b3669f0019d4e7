// SPDX-License-Identifier: Apache-2.0
//
// The names of types, for messages and timelines.
#pragma once

#include <string_view>

namespace stepwell {

/// Returns the name of `T` as the compiler spells it: "my::hook". Compilers agree on the spelling of names that users write.
template<class T>
[[nodiscard]] constexpr std::string_view type_name() noexcept {
  constexpr std::string_view all = __PRETTY_FUNCTION__;
  constexpr auto begin = all.find("T = ") + 4;
  constexpr auto end = all.find_first_of(";]", begin);
  return all.substr(begin, end - begin);
}

}  // namespace stepwell
