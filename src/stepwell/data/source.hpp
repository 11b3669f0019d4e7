// SPDX-License-Identifier: Apache-2.0
//
// Sources of batches: the concepts that every training loop uses, a range as a source, views of sources, and a source of numbers.
#pragma once

#include "stepwell/base/error.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stepwell::data {

namespace detail {
template<class Pointer>
concept batch_pointer = std::is_pointer_v<Pointer>;

/// A data loader of LibTorch, or a pointer to one.
template<class T>
concept data_loader = requires(std::remove_reference_t<T>& loader) { loader.begin(), loader.join(), loader.options(); } ||
                      requires(std::remove_reference_t<T>& loader) { loader->begin(), loader->join(), loader->options(); };

[[noreturn, gnu::cold]] inline void throw_moved_from() {
  throw failed_precondition_error("this source was moved from; use the source object to which it was moved");
}
}  // namespace detail

/// A source: a type that provides batches one by one.
/// `peek()` returns a pointer to the current batch, or null at the end of the data. Until the next call of `advance()`, `peek()` returns
/// the same batch, so a retried step gets the same batch. `advance()` moves to the next batch, and does nothing at the end of the data. A
/// session calls `advance()` only after a complete step, or to skip a batch that `rollback_on_nan_hook` has excluded.
/// `peek` and `advance` may throw; no batch is then consumed. `out_of_range_error` from `peek` also means the end of the data.
/// `out_of_range_error` from `advance` after a step does not mean the end of the data. It is a failure, because the step that used the
/// batch is already complete.
template<class Source>
concept batch_source = requires(std::remove_reference_t<Source>& source) {
  { source.peek() } -> detail::batch_pointer;
  { *source.peek() };
  source.advance();
};

/// A source that can continue at the position where another process stopped.
/// `position()` returns a number that increases with each consumed batch; `peek` does not change the number. After `seek(position)` the
/// source provides exactly the batches that follow this position. `seek` must be cheap, ideally O(1).
template<class Source>
concept seekable_source = batch_source<Source> && requires(std::remove_reference_t<Source>& source, std::uint64_t position) {
  { std::as_const(source).position() } -> std::same_as<std::uint64_t>;
  source.seek(position);
};

/// The type of `*peek()` without reference and cv-qualifiers.
template<batch_source Source>
using batch_of = std::remove_cvref_t<decltype(*std::declval<std::remove_reference_t<Source>&>().peek())>;

/// Returns the name under which a checkpoint stores the position of `source`: `source.name()`, or "" for a source without a name. At most
/// one of the seekable sources that a session uses at the same time may have no name.
template<batch_source Source>
[[nodiscard]] std::string name_of(const Source& source) {
  if constexpr (requires {
                  { source.name() } -> std::convertible_to<std::string_view>;
                }) {
    return std::string(std::string_view(source.name()));
  }
  return {};
}

/// The place of a batch in the passes over the data.
struct epoch_position {
  std::uint64_t epoch = 0;  ///< Number of the pass over the data, counted from 0.
  bool is_last = false;     ///< True for the last batch of this pass.
  std::uint64_t of = 0;     ///< Number of passes after which the data ends. 0: the data is endless, or the number is not known.
  friend bool operator==(const epoch_position&, const epoch_position&) = default;
};

/// A source that passes over its data several times. `epoch()` returns the number of the pass to which the current batch belongs, counted
/// from 0. `is_last_of_epoch()` returns true if the current batch is the last one of its pass. `is_last_of_epoch()` returns false at the
/// end of the data, and may return false before the first `peek` at the batch. Both functions must be cheap and must not make a batch.
template<class Source>
concept epoch_source = batch_source<Source> && requires(const std::remove_reference_t<Source>& source) {
  { source.epoch() } -> std::same_as<std::uint64_t>;
  { source.is_last_of_epoch() } -> std::same_as<bool>;
};

/// Returns `source.epochs()`, the number of passes after which the data ends. Returns 0 if the source is endless or has no such function.
template<batch_source Source>
[[nodiscard]] constexpr std::uint64_t epochs_of(const Source& source) {
  if constexpr (requires { std::optional<std::uint64_t>(source.epochs()); }) {
    return std::optional<std::uint64_t>(source.epochs()).value_or(0);
  } else {
    return 0;
  }
}

/// Returns the fingerprint of `source`: a description of its data, for example "1000 examples, seed 3". With other data, the same position
/// would select other examples. Returns `source.fingerprint()`, or an empty string if the source has no such function. A session saves the
/// fingerprint with the position. After a resume, it compares the saved fingerprint with that of the source.
template<batch_source Source>
[[nodiscard]] std::string fingerprint_of(const Source& source) {
  if constexpr (requires {
                  { source.fingerprint() } -> std::convertible_to<std::string_view>;
                }) {
    return std::string(std::string_view(source.fingerprint()));
  }
  return {};
}

/// A source whose batches are the elements of a range, in one pass. The source is not seekable: a resumed run starts from the beginning of
/// the range. The source does not access the range before the first `peek`, and never reads elements after the current element.
/// @errors `failed_precondition_error` from `peek` and `advance` if the source was moved from.
/// @cost One allocation, so that a source can be moved while it is in use.
template<class Range>  // an lvalue reference, or the type of the range that is owned
  requires std::ranges::input_range<Range>
class range_source {
public:
  using reference = std::ranges::range_reference_t<Range>;
  using batch = std::remove_reference_t<reference>;

  explicit range_source(Range&& range, std::string name = {})
      : state_(std::make_unique<state>(std::forward<Range>(range))), name_(std::move(name)) {}

  [[nodiscard]] batch* peek() { return current_state().peek(); }
  void advance() { current_state().advance(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
  /// True if the elements of the range are values. The source then stores the current value. Elements that are references are not stored.
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

  /// @errors `failed_precondition_error` if this source was moved from.
  [[nodiscard]] state& current_state() const {
    if (!state_) [[unlikely]] { detail::throw_moved_from(); }
    return *state_;
  }

  std::unique_ptr<state> state_;
  std::string name_;
};

/// Returns a source of the elements of `range`. The source refers to an lvalue range, and owns an rvalue range.
/// @lifetime An lvalue range must outlive the source.
template<std::ranges::input_range Range>
[[nodiscard]] range_source<Range> source(Range&& range, std::string name = {}) {
  return range_source<Range>(std::forward<Range>(range), std::move(name));
}

namespace detail {
/// The batch of a rejected source. It is accepted where any batch is, so the compiler reports no more errors after the assertion.
struct rejected_batch {
  template<class T>
  operator T&() const;  // NOLINT(google-explicit-constructor)
};
}  // namespace detail

/// Rejects a data loader of LibTorch, whose position cannot be saved.
template<detail::data_loader Loader>
  requires(!std::ranges::input_range<Loader>)
range_source<std::ranges::empty_view<detail::rejected_batch>> source(Loader&& /*loader*/) {
  static_assert(sizeof(Loader) == 0,
                "stepwell: a data loader of LibTorch cannot continue where it stopped; give its dataset instead: "
                "data::shuffled_batches(libtorch::examples(dataset), {.batch_size = 64})");
  return range_source<std::ranges::empty_view<detail::rejected_batch>>({});
}

/// At most `count` batches of an underlying source, beginning at the position of the underlying source at construction. Seekable if the
/// underlying source is seekable.
template<batch_source Source>  // an lvalue reference, or the type that is owned
class taken_source {
  using under = std::remove_reference_t<Source>;

public:
  taken_source(Source&& source, std::uint64_t count) : source_(std::forward<Source>(source)), count_(count) {
    if constexpr (seekable_source<Source>) { begin_ = source_.position(); }
  }

  /// Returns the current batch, or null after `count` batches. After `count` batches, the underlying source is not accessed.
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
  /// Sets the position. Advances the underlying source from its position at construction, to count the batches before `position`.
  /// @cost One `advance` of the underlying source for each batch; no batch is made.
  void seek(std::uint64_t position)
    requires seekable_source<Source>
  {
    source_.seek(begin_);
    for (taken_ = 0; taken_ < count_ && source_.position() < position; ++taken_) {
      const auto before = source_.position();
      source_.advance();
      if (source_.position() == before) { break; }  // the underlying source has ended
    }
    source_.seek(position);
  }

  [[nodiscard]] std::uint64_t epoch() const
    requires epoch_source<Source>
  {
    return source_.epoch();
  }
  [[nodiscard]] bool is_last_of_epoch() const
    requires epoch_source<Source>
  {
    return taken_ < count_ && source_.is_last_of_epoch();
  }
  [[nodiscard]] std::string name() const { return data::name_of<under>(source_); }
  [[nodiscard]] std::string fingerprint() const { return data::fingerprint_of<under>(source_); }

private:
  Source source_;
  std::uint64_t count_;
  std::uint64_t taken_ = 0;
  std::uint64_t begin_ = 0;
};

/// Returns a source of the next `count` batches of `source`. The result refers to an lvalue source, and owns an rvalue source.
template<batch_source Source>
[[nodiscard]] taken_source<Source> take(Source&& source, std::uint64_t count) {
  return taken_source<Source>(std::forward<Source>(source), count);
}

/// Applies a function to each batch of an underlying source. Seekable if the underlying source is seekable.
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
  [[nodiscard]] auto peek() -> std::conditional_t<is_kept, const batch, batch>* {
    auto* const original = source_.peek();
    if (original == nullptr) { return nullptr; }
    if constexpr (is_kept) {
      if (!made_) { made_.emplace(std::invoke(function_, *original)); }
      return std::addressof(*made_);
    } else {
      auto&& made = std::invoke(function_, *original);
      return std::addressof(made);
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

  [[nodiscard]] std::uint64_t epoch() const
    requires epoch_source<Source>
  {
    return source_.epoch();
  }
  [[nodiscard]] bool is_last_of_epoch() const
    requires epoch_source<Source>
  {
    return source_.is_last_of_epoch();
  }
  [[nodiscard]] std::string name() const { return data::name_of<under>(source_); }
  [[nodiscard]] std::string fingerprint() const { return data::fingerprint_of<under>(source_); }

private:
  Source source_;
  Function function_;
  std::optional<std::conditional_t<is_kept, std::remove_cv_t<batch>, char>> made_;
};

/// Returns a source of the batches `function(batch)`. The result refers to an lvalue source, and owns an rvalue source.
/// A resumed run restores only the position of the source, not state inside `function`. `function` should therefore be stateless.
template<batch_source Source, std::move_constructible Function>
[[nodiscard]] transformed_source<Source, Function> transform(Source&& source, Function function) {
  return transformed_source<Source, Function>(std::forward<Source>(source), std::move(function));
}

/// Options of `counter`.
struct counter_options {
  std::uint64_t first = 0;                            ///< The first number.
  std::optional<std::uint64_t> count = std::nullopt;  ///< How many numbers the source has. If empty, the source is endless.
  std::string name = {};                              ///< Name under which a checkpoint stores how many numbers were consumed.
};

/// A source of the numbers `first`, `first` + 1, and so on. The position of the source is the count of consumed numbers.
class counter_source {
public:
  using batch = std::uint64_t;

  explicit counter_source(const counter_options& options)
      : first_(options.first), count_(options.count.value_or(std::numeric_limits<std::uint64_t>::max())), number_(options.first),
        name_(options.name) {}

  /// Returns the current number, or null after the last one.
  [[nodiscard]] const batch* peek() const noexcept { return position() < count_ ? &number_ : nullptr; }
  void advance() noexcept {
    if (position() < count_) { ++number_; }
  }

  [[nodiscard]] std::uint64_t position() const noexcept { return number_ - first_; }
  /// Sets the position. @cost O(1).
  void seek(std::uint64_t position) noexcept { number_ = first_ + position; }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns a description of the data, for example "numbers from 0". A checkpoint stores it with the position, and a resumed run compares
  /// the two descriptions. The option `count` is not part of the description, so a resumed run may use another count.
  [[nodiscard]] std::string fingerprint() const { return "numbers from " + std::to_string(first_); }

private:
  std::uint64_t first_;
  std::uint64_t count_;
  std::uint64_t number_;
  std::string name_;
};

/// Returns a source of consecutive numbers: `counter({.count = 1000})` gives 0 to 999, and `counter()` is endless. A simulation can create
/// `random_stream(seed, number)` in each step, where `number` is the batch. Each step of a resumed run then draws the same random numbers
/// as in an uninterrupted run.
[[nodiscard]] inline counter_source counter(const counter_options& options = {}) { return counter_source(options); }

}  // namespace stepwell::data
