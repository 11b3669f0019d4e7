// SPDX-License-Identifier: Apache-2.0
//
// The two concepts for sources of batches. Every training loop uses only these.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stepwell::data {

namespace detail {
template<class Pointer>
concept batch_pointer = std::is_pointer_v<Pointer>;
}  // namespace detail

/// Provides batches one by one.
/// `peek()` returns a pointer to the current batch, or null at the end of the data. It returns the same batch until `advance()`, so
/// a retried step gets the same batch. `advance()` moves to the next batch. It is called only after a complete step, and does
/// nothing at the end of the data.
/// Both may throw; no batch is then consumed. `out_of_range_error` from `peek` also means the end of the data. `out_of_range_error`
/// from `advance` is a failure, because the step before it is complete.
template<class Source>
concept batch_source = requires(std::remove_reference_t<Source>& source) {
  { source.peek() } -> detail::batch_pointer;
  { *source.peek() };
  source.advance();
};

/// A source that can continue at the position where another process stopped.
/// `position()` returns a number that increases with each consumed batch; `peek` does not change it. After `seek(position)` the
/// source provides exactly the batches that follow this position. `seek` must be cheap, ideally O(1).
template<class Source>
concept seekable_source = batch_source<Source> && requires(std::remove_reference_t<Source>& source, std::uint64_t position) {
  { std::as_const(source).position() } -> std::same_as<std::uint64_t>;
  source.seek(position);
};

/// The type of `*peek()` without reference and cv-qualifiers.
template<batch_source Source>
using batch_of = std::remove_cvref_t<decltype(*std::declval<std::remove_reference_t<Source>&>().peek())>;

/// Returns the name of the source's position in a checkpoint: `source.name()`, or "" for a source without a name. At most one
/// source may have no name.
template<batch_source Source>
[[nodiscard]] std::string name_of(const Source& source) {
  if constexpr (requires {
                  { source.name() } -> std::convertible_to<std::string_view>;
                }) {
    return std::string(std::string_view(source.name()));
  } else {
    return {};
  }
}

}  // namespace stepwell::data
