// SPDX-License-Identifier: Apache-2.0
//
// A source that ends after a number of batches.
#pragma once

#include "stepwell/data/source.hpp"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell::data {

/// At most `count` batches of another source, beginning at its position at construction. Seekable if that source is seekable.
template<batch_source Source>  // an lvalue reference, or the type that is owned
class taken_source {
  using under = std::remove_reference_t<Source>;

public:
  taken_source(Source&& source, std::uint64_t count) : source_(std::forward<Source>(source)), count_(count) {
    if constexpr (seekable_source<Source>) { begin_ = source_.position(); }
  }

  /// Returns the current batch, or null after `count` batches. It then does not access the source.
  [[nodiscard]] auto peek() -> decltype(std::declval<under&>().peek()) { return taken_ < count_ ? source_.peek() : nullptr; }
  void advance() {
    if (taken_ >= count_) { return; }
    source_.advance();
    ++taken_;
  }

  /// Returns the position of the underlying source.
  [[nodiscard]] std::uint64_t position() const
    requires seekable_source<Source>
  {
    return source_.position();
  }
  /// Sets the position. Advances from the beginning to count the batches before `position`.
  /// @cost One `advance` of the underlying source for each batch; no batch is made.
  void seek(std::uint64_t position)
    requires seekable_source<Source>
  {
    source_.seek(begin_);
    for (taken_ = 0; taken_ < count_ && source_.position() < position; ++taken_) {
      const auto before = source_.position();
      source_.advance();
      if (source_.position() == before) { break; }  // the source has ended
    }
    source_.seek(position);
  }

  [[nodiscard]] std::string name() const { return data::name_of<under>(source_); }

private:
  Source source_;
  std::uint64_t count_;
  std::uint64_t taken_ = 0;
  std::uint64_t begin_ = 0;
};

/// Returns a source of the next `count` batches of `source`. An lvalue is referred to, an rvalue is moved into the result.
template<batch_source Source>
[[nodiscard]] taken_source<Source> take(Source&& source, std::uint64_t count) {
  return taken_source<Source>(std::forward<Source>(source), count);
}

}  // namespace stepwell::data
