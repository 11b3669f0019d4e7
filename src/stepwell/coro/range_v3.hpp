// SPDX-License-Identifier: Apache-2.0
//
// Makes an rvalue generator usable as a view of range-v3. This header is optional: the umbrella header does not include it. It requires
// range-v3.
#pragma once

#include "stepwell/coro/generator.hpp"

#include <iterator>
#include <memory>
#include <range/v3/range/concepts.hpp>
#include <ranges>
#include <utility>

namespace stepwell::coro {

/// A generator with shared ownership. It is copyable, because range-v3 requires copyable views. All copies share one position.
/// @cost One allocation in addition to that of the generator.
template<class T>
class shared_generator {
public:
  shared_generator() = default;
  explicit shared_generator(generator<T>&& owned) : owned_(std::make_shared<generator<T>>(std::move(owned))) {}

  [[nodiscard]] auto begin() const noexcept { return owned_->begin(); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  std::shared_ptr<generator<T>> owned_;
};

/// Returns a copyable view that owns the generator `owned`. Example: `coro::share(session.steps(batches)) | ranges::views::chunk(4)`.
template<class T>
[[nodiscard]] shared_generator<T> share(generator<T>&& owned) {
  return shared_generator<T>(std::move(owned));
}

}  // namespace stepwell::coro

template<class T>
inline constexpr bool ranges::enable_view<stepwell::coro::shared_generator<T>> = true;
template<class T>
inline constexpr bool std::ranges::enable_view<stepwell::coro::shared_generator<T>> = true;
