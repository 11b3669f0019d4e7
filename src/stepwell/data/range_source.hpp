// SPDX-License-Identifier: Apache-2.0
//
// An input range as a source of batches.
#pragma once

#include "stepwell/data/source.hpp"

#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell::data {

/// A source whose batches are the elements of a range, in one pass. Not seekable: a resumed run starts from the beginning of the
/// range. The range is not accessed before the first `peek`, and never beyond the current element.
/// @cost One allocation, so that a source can be moved while it is in use.
template<class Range>  // an lvalue reference, or the type of the range that is owned
  requires std::ranges::input_range<Range>
class range_source {
public:
  using reference = std::ranges::range_reference_t<Range>;
  using batch = std::remove_reference_t<reference>;

  explicit range_source(Range&& range, std::string name = {})
      : state_(std::make_unique<state>(std::forward<Range>(range))), name_(std::move(name)) {}

  [[nodiscard]] batch* peek() { return state_->peek(); }
  void advance() { state_->advance(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
  /// Whether elements are values that must be stored. Elements that are references are not stored.
  static constexpr bool is_kept = !std::is_reference_v<reference>;

  struct state {
    explicit state(Range&& given) : range(std::forward<Range>(given)) {}

    batch* peek() {
      if (present != nullptr) { return present; }
      if (!position) { position.emplace(std::ranges::begin(range)); }
      if (*position == std::ranges::end(range)) { return nullptr; }
      if constexpr (is_kept) {
        kept.emplace(**position);
        present = std::addressof(*kept);
      } else {
        auto&& element = **position;
        present = std::addressof(element);
      }
      return present;
    }

    void advance() {
      if (peek() == nullptr) { return; }
      present = nullptr;
      ++*position;
    }

    Range range;
    std::optional<std::ranges::iterator_t<Range>> position;
    std::optional<std::remove_cv_t<std::conditional_t<is_kept, reference, char>>> kept;
    batch* present = nullptr;
  };

  std::unique_ptr<state> state_;
  std::string name_;
};

/// Returns a source of the elements of `range`. An lvalue is referred to, an rvalue is moved into the source.
/// @lifetime An lvalue range must outlive the source.
template<std::ranges::input_range Range>
[[nodiscard]] range_source<Range> source(Range&& range, std::string name = {}) {
  return range_source<Range>(std::forward<Range>(range), std::move(name));
}

}  // namespace stepwell::data
