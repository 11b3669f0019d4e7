// SPDX-License-Identifier: Apache-2.0
//
// Summary ops, which write values of a run, selected by projection: `summary::scalar("loss", &result::loss)`.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/summary/writer.hpp"

#include <concepts>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stepwell::summary {

/// Writes one number for each step; event files store it as a float.
template<class Projection>
struct scalar_op {
  std::string tag;
  Projection projection;

  /// Writes `value` to `out`, a `writer` or a `metric_writer`.
  void write(auto& out, const auto& value, std::int64_t step) const {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
      out.add_scalar(tag, value, step);
    } else {
      out.add_scalar(tag, static_cast<float>(value), step);
    }
  }
};
template<class Projection>
[[nodiscard]] scalar_op<std::decay_t<Projection>> scalar(std::string tag, Projection&& projection) {
  return {std::move(tag), std::forward<Projection>(projection)};
}

/// Writes a histogram of `values`.
/// @errors `invalid_argument_error` if the elements of the tensor are neither floats nor doubles.
void write_histogram(writer& out, const std::string& tag, const tensor_view& values, std::int64_t step);

/// Writes the distribution of the elements of a tensor of floats or doubles.
template<class Projection>
struct histogram_op {
  std::string tag;
  Projection projection;

  void write(writer& out, const auto& value, std::int64_t step) const {
    if constexpr (adapted_tensor<decltype(value)>) {
      write_histogram(out, tag, stepwell::view_of(value), step);
    } else {
      using element = std::remove_cvref_t<decltype(*std::data(value))>;
      static_assert(std::floating_point<element>, "stepwell: a histogram is made of floats or doubles");
      out.add_histogram(tag, std::span<const element>(std::data(value), std::size(value)), step);
    }
  }
};
template<class Projection>
[[nodiscard]] histogram_op<std::decay_t<Projection>> histogram(std::string tag, Projection&& projection) {
  return {std::move(tag), std::forward<Projection>(projection)};
}

/// Writes images: a tensor [height, width], [height, width, channels] or [count, height, width, channels] of `std::uint8_t`, or of `float`
/// from 0 to 1 (other values are clamped). It is a `tensor`, a `tensor_view`, or a tensor of another library. At most `max_outputs` images
/// of a batch are written.
template<class Projection>
struct image_op {
  std::string tag;
  Projection projection;
  int max_outputs = 3;

  void write(writer& out, const auto& value, std::int64_t step) const {
    if constexpr (may_be_picture<std::remove_cvref_t<decltype(value)>>()) {
      write_images(out, tag, stepwell::view_of(value), max_outputs, step);
    } else {
      static_assert(sizeof(value) == 0,
                    "stepwell: an image is a tensor [height,width], [height,width,channels] or [count,height,width,channels] of "
                    "std::uint8_t or float; a list has no rows: wrap it in a stepwell::tensor_view with a shape");
    }
  }

private:
  /// Returns false for types that cannot be images: numbers, lists, and tensors of other elements.
  template<class Value>
  static consteval bool may_be_picture() {
    if constexpr (adapted_tensor<Value>) {
      return true;
    } else if constexpr (tensor_like<const Value>) {
      return dtype_of<typename Value::value_type> == dtype::uint8 || dtype_of<typename Value::value_type> == dtype::float32;
    } else {
      return false;
    }
  }
};
template<class Projection>
[[nodiscard]] image_op<std::decay_t<Projection>> image(std::string tag, Projection&& projection, int max_outputs = 3) {
  return {std::move(tag), std::forward<Projection>(projection), max_outputs};
}
/// Writes `images`.
/// @errors `invalid_argument_error` that describes the tensor, if it is not an image.
void write_images(writer& out, const std::string& tag, const tensor_view& images, int max_outputs, std::int64_t step);

/// Writes text in Markdown.
template<class Projection>
struct text_op {
  std::string tag;
  Projection projection;

  void write(writer& out, const auto& value, std::int64_t step) const { out.add_text(tag, std::string_view(value), step); }
};
template<class Projection>
[[nodiscard]] text_op<std::decay_t<Projection>> text(std::string tag, Projection&& projection) {
  return {std::move(tag), std::forward<Projection>(projection)};
}

/// A type with a fetch and a function that writes its value.
template<class Op>
concept summary_op = std::move_constructible<Op> && requires(const Op& op) { op.projection; };

}  // namespace stepwell::summary
