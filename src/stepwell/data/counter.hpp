// SPDX-License-Identifier: Apache-2.0
//
// A seekable source of consecutive numbers. Use it for a model that makes or finds its data itself.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace stepwell::data {

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
