// SPDX-License-Identifier: Apache-2.0
//
// STEPWELL_DECLARES defines a function that detects whether a class declares a member with a given name, with any signature. With it, a
// member with the right name and a wrong signature becomes a compile error instead of being ignored.
#pragma once

#include <type_traits>

namespace stepwell::detail {

// A class with the bases `T` and `Name`. `Name` declares one name. If `T` declares this name, too, the name is ambiguous in `both`.
template<class T, class Name>
struct both : T, Name {};

}  // namespace stepwell::detail

// Defines `declares_NAME<T>()`. It detects templates, overloads, types and private members, because each of them makes the name ambiguous
// in `both`. A final class cannot be a base: there, only a public member that is neither a template nor overloaded nor a type is detected.
#define STEPWELL_DECLARES(NAME)                                \
  struct named_##NAME {                                        \
    int NAME;                                                  \
  };                                                           \
  template<class T>                                            \
  consteval bool declares_##NAME() {                           \
    if constexpr (std::is_class_v<T> && !std::is_final_v<T>) { \
      return !requires { &both<T, named_##NAME>::NAME; };      \
    } else {                                                   \
      return requires { &T::NAME; };                           \
    }                                                          \
  }
