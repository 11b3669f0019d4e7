// SPDX-License-Identifier: Apache-2.0
//
// Types at run time: a key that also works with -fno-rtti, and the name.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <typeinfo>

namespace stepwell {
namespace detail {
template<class T>
inline constexpr char mark_of_type = 0;  // its address identifies the type
}  // namespace detail

/// A key that identifies a type. Two keys are equal if they identify the same type, or if both are default-constructed. `const` and
/// references are ignored.
///
/// Keys can be compared even if only one of them comes from code with run-time type information. If either side lacks this information, a
/// type with hidden symbols has a different key in each shared library.
class type_key {
public:
  constexpr type_key() noexcept = default;

  template<class T>
  [[nodiscard]] static type_key of() noexcept {
    type_key made;
    made.mark_ = &detail::mark_of_type<std::remove_cvref_t<T>>;
#ifdef __cpp_rtti
    made.info_ = &typeid(T);
#endif
    return made;
  }

  [[nodiscard]] friend bool operator==(const type_key& left, const type_key& right) noexcept {
    return left.mark_ == right.mark_ || (left.info_ && right.info_ && *left.info_ == *right.info_);
  }

private:
  const void* mark_ = nullptr;
  const std::type_info* info_ = nullptr;
};

namespace detail {
/// The compiler's text for this function, in which `T` is spelled.
template<class T>
[[nodiscard]] constexpr std::string_view text_with_type() noexcept {
  return {__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1};  // no search for the end: compilers evaluate a loop slowly
}
inline constexpr std::string_view text_with_void = text_with_type<void>();
inline constexpr std::size_t chars_before_type = text_with_void.rfind("void");
inline constexpr std::size_t chars_beside_type = text_with_void.size() - std::string_view("void").size();
}  // namespace detail

/// Returns the name of `T` as the compiler spells it: "my::hook". Compilers agree on the spelling of names that users write.
template<class T>
[[nodiscard]] constexpr std::string_view type_name() noexcept {
  constexpr auto all = detail::text_with_type<T>();
  return {all.data() + detail::chars_before_type, all.size() - detail::chars_beside_type};
}

}  // namespace stepwell
