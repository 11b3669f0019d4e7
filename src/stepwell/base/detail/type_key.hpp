// SPDX-License-Identifier: Apache-2.0
//
// Which type something is, when that is known only as the program runs: as `typeid`, but not refused by -fno-rtti.
#pragma once

#include <type_traits>
#include <typeinfo>

namespace stepwell {
namespace detail {
template<class T>
inline constexpr char mark_of_type = 0;  // what counts is where it lies
}  // namespace detail

/// Tells types apart; two keys are equal if they are of one type, or both of none. `const` and references do not count.
///
/// Code compiled with run-time type information and code compiled without may compare theirs. Without it on either side, a
/// type whose symbols are hidden has a key of its own in each shared library.
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

}  // namespace stepwell
