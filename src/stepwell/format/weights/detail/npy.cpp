// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/weights/detail/npy.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <optional>

namespace stepwell::format {
namespace {

status damaged_npy(std::string_view why) { return {errc::data_loss, fmt::format("the header of the .npy array is damaged: {}", why)}; }

/// Reads the dictionary of a header: its values are a text or a list, a boolean, and a tuple of numbers.
class npy_literal {
public:
  explicit npy_literal(std::string_view text) : rest_(text) {}

  /// Reads the three members. Returns false if the text has another form.
  [[nodiscard]] bool read() {
    if (!take('{')) { return false; }
    while (!take('}')) {
      const auto key = text();
      if (!key || !take(':') || !member(*key)) { return false; }
      if (!take(',') && !starts_with('}')) { return false; }
    }
    skip_space();
    return rest_.empty() && has_type_ && has_order_ && has_shape_;
  }

  std::string_view type;  ///< Empty for a structure.
  bool is_fortran = false;
  tensor_shape shape;

private:
  void skip_space() noexcept { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r"), rest_.size())); }
  [[nodiscard]] bool starts_with(char letter) noexcept {
    skip_space();
    return rest_.starts_with(letter);
  }
  [[nodiscard]] bool take(char letter) noexcept {
    if (!starts_with(letter)) { return false; }
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] bool take_word(std::string_view word) noexcept {
    skip_space();
    if (!rest_.starts_with(word)) { return false; }
    rest_.remove_prefix(word.size());
    return true;
  }
  [[nodiscard]] std::optional<std::string_view> text() noexcept {
    const char quote = starts_with('"') ? '"' : '\'';
    if (!take(quote)) { return std::nullopt; }
    const auto end = rest_.find(quote);
    if (end == std::string_view::npos) { return std::nullopt; }
    const auto found = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return found;
  }

  [[nodiscard]] bool member(std::string_view key) {
    if (key == "descr") { return !std::exchange(has_type_, true) && descr(); }
    if (key == "shape") { return !std::exchange(has_shape_, true) && dimensions(); }
    if (key != "fortran_order" || std::exchange(has_order_, true)) { return false; }
    is_fortran = take_word("True");
    return is_fortran || take_word("False");
  }
  [[nodiscard]] bool descr() {
    if (!starts_with('[')) {
      const auto found = text();
      type = found.value_or("");
      return found && !type.empty();
    }
    for (int depth = 0; !rest_.empty();) {  // the fields of a structure
      if (starts_with('\'') || starts_with('"')) {
        if (!text()) { return false; }
        continue;
      }
      if (rest_.empty()) { return false; }
      depth += rest_.front() == '[' ? 1 : rest_.front() == ']' ? -1 : 0;
      rest_.remove_prefix(1);
      if (depth == 0) { return true; }
    }
    return false;
  }
  [[nodiscard]] bool dimensions() {
    if (!take('(')) { return false; }
    while (!take(')')) {
      skip_space();
      std::int64_t size = 0;
      const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (failure != std::errc{} || size < 0) { return false; }
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      static_cast<void>(take('L'));  // written by Python 2
      shape.push_back(size);
      if (!take(',') && !starts_with(')')) { return false; }
    }
    return true;
  }

  std::string_view rest_;
  bool has_type_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

/// Returns the dtype of a type without its byte order: "f4", or "f", or "float32". NumPy writes the first form and reads all of them.
/// Returns `dtype::invalid` for a type without a counterpart.
dtype dtype_of_code(std::string_view code) noexcept {
  struct row {
    std::string_view code;
    std::string_view letter;
    std::string_view name;
    stepwell::dtype dtype;
  };
  static constexpr row rows[] = {{"b1", "?", "bool", dtype::boolean},        {"i1", "b", "int8", dtype::int8},
                                 {"i2", "h", "int16", dtype::int16},         {"i4", "i", "int32", dtype::int32},
                                 {"i8", "q", "int64", dtype::int64},         {"u1", "B", "uint8", dtype::uint8},
                                 {"u2", "H", "uint16", dtype::uint16},       {"u4", "I", "uint32", dtype::uint32},
                                 {"u8", "Q", "uint64", dtype::uint64},       {"f2", "e", "float16", dtype::half},
                                 {"f4", "f", "float32", dtype::float32},     {"f8", "d", "float64", dtype::float64},
                                 {"c8", "F", "complex64", dtype::complex64}, {"c16", "D", "complex128", dtype::complex128}};
  const auto* found =
      std::ranges::find_if(rows, [&](const row& one) { return code == one.code || code == one.letter || code == one.name; });
  return found == std::end(rows) ? dtype::invalid : found->dtype;
}

/// Returns a hint at the probable type of an array without one: NumPy writes the types of other packages as bytes without a type.
std::string_view probable_type(std::string_view code) noexcept {
  if (code == "V2") { return "; bfloat16 probably: save array.astype('float32'), or a file of safetensors"; }
  if (code == "V1" || code == "f1") { return "; float8 of ml_dtypes probably: save array.astype('float32'), or a file of safetensors"; }
  return {};
}

void set_type(stored_array& array, std::string_view type) {
  if (type.empty()) {
    array.unsupported = "it is an array of structures; save each field as an array";
    return;
  }
  const char order = type.front();
  const auto code = type.substr(std::string_view("<>|=").find(order) == std::string_view::npos ? 0 : 1);
  if (code.starts_with('O')) {
    array.unsupported = "it consists of pickled Python objects, which are never read; save an array of numbers";
  } else if (array.dtype = dtype_of_code(code); array.dtype == dtype::invalid) {
    array.unsupported = fmt::format("its type '{}' is not supported{}", to_utf8(type), probable_type(code));
  }
  array.is_big_endian = order == '>';
}

std::vector<std::int64_t> fortran_strides(const tensor_shape& shape) {
  std::vector<std::int64_t> strides;
  std::int64_t stride = 1;
  for (const auto size : shape) {
    strides.push_back(stride);
    stride *= std::max<std::int64_t>(size, 1);
  }
  return strides;
}

}  // namespace

result<std::size_t> npy_header_size(std::string_view beginning) {
  if (beginning.size() < npy_prefix_size) { return status(errc::truncated, "the .npy array ends inside its header"); }
  if (!beginning.starts_with(npy_magic)) { return status(errc::data_loss, "this is not an .npy array"); }
  const auto version = static_cast<unsigned char>(beginning[6]);
  const auto minor = static_cast<unsigned char>(beginning[7]);
  if (version < 1 || version > 3 || minor != 0) {
    return status(errc::unimplemented, fmt::format("version {}.{} of .npy is unknown", version, minor));
  }
  const auto size = version == 1 ? std::size_t{10} + read_fixed<std::uint16_t>(beginning.substr(8))
                                 : std::size_t{12} + read_fixed<std::uint32_t>(beginning.substr(8));
  if (size > max_npy_header) { return status(errc::unimplemented, fmt::format("a header of {} bytes is too long", size)); }
  return size;
}

result<stored_array> decode_npy_header(std::string_view header) {
  npy_literal literal(header.substr(header[6] == 1 ? 10 : 12));
  if (!literal.read()) { return damaged_npy("it does not have the form of NumPy"); }
  stored_array array{.shape = std::move(literal.shape), .offset = header.size()};
  set_type(array, literal.type);
  const auto size = size_of_shape(array.shape, std::max<std::size_t>(size_of(array.dtype), 1));
  if (!size) { return damaged_npy("its shape is too large"); }
  array.size = array.dtype == dtype::invalid ? 0 : *size;
  if (literal.is_fortran && array.shape.size() > 1) { array.strides = fortran_strides(array.shape); }
  return array;
}

}  // namespace stepwell::format
