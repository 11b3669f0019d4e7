// SPDX-License-Identifier: Apache-2.0
//
// Copies of the values of a run that are numbers, for hooks that learn only at the close which run was the last one.
#pragma once

#include "stepwell/protocol/fetch.hpp"

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// Copies of the values of fetches in a run, as far as they are numbers in the result or in the model, such as `&result::loss`. The other
/// values are not kept.
template<class... Fetches>
class kept_numbers {
  struct not_kept {};
  template<class Fetch>
  struct copy_for : std::type_identity<not_kept> {};
  template<class Number, class Owner>
    requires std::is_arithmetic_v<Number>
  struct copy_for<Number Owner::*> : std::type_identity<std::remove_cv_t<Number>> {};
  template<class Projection>
  struct copy_for<tagged<Projection>> : copy_for<Projection> {};

public:
  /// True if there is nothing to keep.
  static constexpr bool is_empty = (std::is_same_v<typename copy_for<Fetches>::type, not_kept> && ...);
  /// True for what stands for a value that is not kept.
  template<class Value>
  static constexpr bool is_missing = std::is_same_v<std::remove_cvref_t<Value>, not_kept>;

  /// Keeps the numbers of a run, whose `run_values` are `values`. @cost One load and one store for each number.
  void keep(const auto& values, const Fetches&... fetches) {
    const auto copy = [&]<class Copy>(Copy& kept, const auto& projection) {
      if constexpr (!is_missing<Copy>) { kept = values.raw().read(values.outcome(), projection); }
    };
    std::apply([&](auto&... kept) { (copy(kept, detail::untagged(fetches)), ...); }, copies_);
  }

  template<std::size_t I>
  [[nodiscard]] const auto& get() const noexcept {
    return std::get<I>(copies_);
  }

private:
  std::tuple<typename copy_for<Fetches>::type...> copies_;
};

}  // namespace stepwell::detail
