// SPDX-License-Identifier: Apache-2.0
//
// A source that applies a function to each batch of another source.
#pragma once

#include "stepwell/data/source.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell::data {

/// Applies a function to each batch of another source. Seekable if that source is seekable.
template<batch_source Source, class Function>  // Source: an lvalue reference, or the type that is owned
class transformed_source {
  using under = std::remove_reference_t<Source>;
  using outcome = std::invoke_result_t<Function&, decltype(*std::declval<under&>().peek())>;
  static_assert(!std::is_void_v<outcome>, "stepwell: data::transform needs a function that returns the new batch");
  static constexpr bool is_kept = !std::is_reference_v<outcome>;

public:
  using batch = std::remove_reference_t<outcome>;

  transformed_source(Source&& source, Function function) : source_(std::forward<Source>(source)), function_(std::move(function)) {}

  /// Returns the transformed batch, or null at the end of the data. A function that returns a value is called once for each batch,
  /// at the first `peek`. A function that returns a reference is called at each `peek`.
  [[nodiscard]] auto peek() {
    auto* const original = source_.peek();
    if constexpr (is_kept) {
      if (original == nullptr) { return static_cast<const batch*>(nullptr); }
      if (!made_) { made_.emplace(std::invoke(function_, *original)); }
      return static_cast<const batch*>(std::addressof(*made_));
    } else {
      if (original == nullptr) { return static_cast<batch*>(nullptr); }
      auto&& made = std::invoke(function_, *original);
      return static_cast<batch*>(std::addressof(made));
    }
  }
  void advance() {
    source_.advance();
    made_.reset();
  }

  [[nodiscard]] std::uint64_t position() const
    requires seekable_source<Source>
  {
    return source_.position();
  }
  void seek(std::uint64_t position)
    requires seekable_source<Source>
  {
    source_.seek(position);
    made_.reset();
  }

  [[nodiscard]] std::string name() const { return data::name_of<under>(source_); }

private:
  Source source_;
  Function function_;
  std::optional<std::conditional_t<is_kept, std::remove_cv_t<batch>, char>> made_;
};

/// Returns a source of the batches `function(batch)`. An lvalue source is referred to, an rvalue is moved into the result.
/// A resume restores only the position of the source, not state inside `function`. So the function should be stateless.
template<batch_source Source, std::move_constructible Function>
[[nodiscard]] transformed_source<Source, Function> transform(Source&& source, Function function) {
  return transformed_source<Source, Function>(std::forward<Source>(source), std::move(function));
}

}  // namespace stepwell::data
