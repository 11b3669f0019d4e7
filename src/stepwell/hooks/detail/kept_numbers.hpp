// SPDX-License-Identifier: Apache-2.0
//
// Copies of the values of a run that are numbers, for hooks that learn only at the close which run was the last one.
#pragma once

#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/raw_session.hpp"

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// True if `Projection` is a number in the result or in the model of a session over `Raw`, which reads it there.
template<class Raw, class Outcome, class Projection>
inline constexpr bool is_number_in_place = false;
template<class Raw, class Outcome, class Number, class Owner>
  requires std::is_arithmetic_v<Number> && can_read<Raw, Outcome, Number Owner::*>
inline constexpr bool is_number_in_place<Raw, Outcome, Number Owner::*> =
    (std::is_base_of_v<Owner, typename Raw::result_type> || std::is_base_of_v<Owner, subject_of<Raw>>) &&
    std::is_same_v<
        std::remove_cvref_t<decltype(std::declval<const Raw&>().read(std::declval<const Outcome&>(), std::declval<Number Owner::*>()))>,
        std::remove_cv_t<Number>>;

/// Copies of the values of fetches in a run, as far as they are numbers in the result or in the model, such as `&result::loss`. The other
/// values are not kept: nothing is computed, and no pointer is followed, for values that may never be needed.
template<class... Fetches>
class kept_numbers {
  struct not_kept {};
  template<class Fetch>
  struct copy_for : std::type_identity<not_kept> {};
  template<class Number, class Owner>
    requires std::is_arithmetic_v<Number>
  struct copy_for<Number Owner::*> : std::type_identity<std::optional<std::remove_cv_t<Number>>> {};

public:
  /// True if there is nothing to keep.
  static constexpr bool is_empty = (std::is_same_v<typename copy_for<Fetches>::type, not_kept> && ...);
  /// True for what stands for a value that is not kept.
  template<class Value>
  static constexpr bool is_missing = std::is_same_v<std::remove_cvref_t<Value>, not_kept>;

  /// Keeps the numbers of a run, whose `run_values` are `values`. @cost One load and one store for each number.
  void keep(const auto& values, const Fetches&... fetches) {
    const auto copy = [&](auto& kept, const auto& projection) {
      using raw_type = std::remove_cvref_t<decltype(values.raw())>;
      using outcome_type = std::remove_cvref_t<decltype(values.outcome())>;
      if constexpr (is_number_in_place<raw_type, outcome_type, std::remove_cvref_t<decltype(projection)>>) {
        kept = values.raw().read(values.outcome(), projection);
      }
    };
    std::apply([&](auto&... kept) { (copy(kept, fetches), ...); }, copies_);
  }

  /// Returns what stands for the value of a fetch: an optional, which is empty if this session cannot keep the number, or a value for which
  /// `is_missing` is true.
  template<std::size_t I>
  [[nodiscard]] const auto& get() const noexcept {
    return std::get<I>(copies_);
  }

private:
  std::tuple<typename copy_for<Fetches>::type...> copies_;
};

}  // namespace stepwell::detail
