// SPDX-License-Identifier: Apache-2.0
//
// Internal: finds numbered names in constant time. The names stay where they are.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace stepwell::detail {

/// A set of numbered names. `NameOf` returns the name of a number as a `std::string_view`. The hash function is known, so the names must
/// come from the caller and not from a file: an attacker could choose names with equal hashes.
/// @cost 5 to 10 bytes for each name.
template<class NameOf>
class name_index {
public:
  explicit name_index(NameOf name_of, std::size_t expected = 0) : numbers_(0, hash{name_of}, equal{name_of}) { numbers_.reserve(expected); }

  /// Allocates memory for `expected` names. Reads all names again if the memory has to grow.
  void reserve(std::size_t expected) { numbers_.reserve(expected); }

  /// Adds the name of `number`. Returns the number that has the same name, if there is one; nothing is then added.
  std::optional<std::uint32_t> add(std::uint32_t number) {
    const auto [at, is_new] = numbers_.insert(number);
    return is_new ? std::nullopt : std::optional(*at);
  }
  /// Returns the number of `name`, or nothing.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const {
    const auto at = numbers_.find(name);
    return at == numbers_.end() ? std::nullopt : std::optional(*at);
  }

private:
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>()(name); }
    std::size_t operator()(std::uint32_t number) const noexcept { return (*this)(name_of(number)); }
    NameOf name_of;
  };
  struct equal {
    using is_transparent = void;
    bool operator()(std::uint32_t a, std::uint32_t b) const noexcept { return a == b || name_of(a) == name_of(b); }
    bool operator()(std::string_view a, std::uint32_t b) const noexcept { return a == name_of(b); }
    bool operator()(std::uint32_t a, std::string_view b) const noexcept { return name_of(a) == b; }
    NameOf name_of;
  };
  boost::unordered_flat_set<std::uint32_t, hash, equal> numbers_;
};

}  // namespace stepwell::detail
