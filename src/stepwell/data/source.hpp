// SPDX-License-Identifier: Apache-2.0
//
// Where batches come from: the two concepts every loop is written against.
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

/// Hands out batches one by one.
/// `peek()` points to the present batch, the same one until `advance()`, or is null at the end of the data: a step that
/// is tried again sees the same batch. `advance()` leaves it behind, and is called only after a whole step; at the end
/// it does nothing. Either may throw; nothing is then consumed. `out_of_range_error` from `peek` is the end of the data, too;
/// from `advance` it is a failure, as the step before it is done.
template<class Source>
concept batch_source = requires(std::remove_reference_t<Source>& source) {
  { source.peek() } -> detail::batch_pointer;
  { *source.peek() };
  source.advance();
};

/// A source that can go on from where another process stopped.
/// `position()` is a number that grows with what was consumed (never with what was only peeked at); `seek(position)`
/// makes the source hand out exactly what one at that position would. Cheap, ideally O(1).
template<class Source>
concept seekable_source = batch_source<Source> && requires(std::remove_reference_t<Source>& source, std::uint64_t position) {
  { std::as_const(source).position() } -> std::same_as<std::uint64_t>;
  source.seek(position);
};

/// What `*peek()` is.
template<batch_source Source>
using batch_of = std::remove_cvref_t<decltype(*std::declval<std::remove_reference_t<Source>&>().peek())>;

/// The name a checkpoint keeps the position under: `source.name()`, or "" where a source has none (one may have none).
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
