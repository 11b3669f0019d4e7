// SPDX-License-Identifier: Apache-2.0
//
// The tensor types that all layers of the library use: element types, shapes, a view that does not own its elements, a tensor that owns its
// elements, and adapters for tensor types of other libraries.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"

#include <algorithm>
#include <cassert>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// The type of a tensor's elements. Each enumerator has the number of the same type in TensorFlow's DataType. Files contain these numbers.
enum class dtype : std::int32_t {
  invalid = 0,
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  string = 7,
  complex64 = 8,
  int64 = 9,
  boolean = 10,
  qint8 = 11,
  quint8 = 12,
  qint32 = 13,
  bfloat16 = 14,
  qint16 = 15,
  quint16 = 16,
  uint16 = 17,
  complex128 = 18,
  half = 19,
  resource = 20,
  variant = 21,
  uint32 = 22,
  uint64 = 23,
  float8_e5m2 = 24,
  float8_e4m3fn = 25,
  float8_e4m3fnuz = 26,
  float8_e4m3b11fnuz = 27,
  float8_e5m2fnuz = 28,
  int4 = 29,
  uint4 = 30,
  int2 = 31,
  uint2 = 32,
  float4_e2m1fn = 33,
};

namespace detail {

struct dtype_entry {
  std::string_view name;
  std::size_t size;
};

/// The name of each dtype, and the size of one element in bytes. The index in the table is the number of the dtype.
inline constexpr dtype_entry dtype_table[] = {
    {"invalid", 0},
    {"float32", 4},
    {"float64", 8},
    {"int32", 4},
    {"uint8", 1},
    {"int16", 2},
    {"int8", 1},
    {"string", 0},
    {"complex64", 8},
    {"int64", 8},
    {"bool", 1},
    {"qint8", 1},
    {"quint8", 1},
    {"qint32", 4},
    {"bfloat16", 2},
    {"qint16", 2},
    {"quint16", 2},
    {"uint16", 2},
    {"complex128", 16},
    {"float16", 2},
    {"resource", 0},
    {"variant", 0},
    {"uint32", 4},
    {"uint64", 8},
    {"float8_e5m2", 1},
    {"float8_e4m3fn", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e4m3b11fnuz", 1},
    {"float8_e5m2fnuz", 1},
    {"int4", 1},
    {"uint4", 1},
    {"int2", 1},
    {"uint2", 1},
    {"float4_e2m1fn", 1},
};

constexpr const dtype_entry& entry_of(dtype type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(dtype_table) ? dtype_table[index] : dtype_table[0];
}

template<class T>
concept character =
    std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> || std::same_as<T, char16_t> || std::same_as<T, char32_t>;

template<class T>
constexpr dtype dtype_of_element() {
  if (std::same_as<T, bool>) { return dtype::boolean; }
  if (std::same_as<T, float>) { return dtype::float32; }
  if (std::same_as<T, double>) { return dtype::float64; }
  if (std::same_as<T, std::complex<float>>) { return dtype::complex64; }
  if (std::same_as<T, std::complex<double>>) { return dtype::complex128; }
  if (std::same_as<T, std::string>) { return dtype::string; }
  if constexpr (std::integral<T> && !character<T>) {  // character types have no dtype: they are text, not numbers
    switch (sizeof(T)) {
      case 1: return std::signed_integral<T> ? dtype::int8 : dtype::uint8;
      case 2: return std::signed_integral<T> ? dtype::int16 : dtype::uint16;
      case 4: return std::signed_integral<T> ? dtype::int32 : dtype::uint32;
      case 8: return std::signed_integral<T> ? dtype::int64 : dtype::uint64;
      default: break;
    }
  }
  return dtype::invalid;
}

}  // namespace detail

/// Returns the size of one element in bytes, in memory and in files. Returns 0 if elements have no fixed size (string, variant,
/// resource) and for unknown types. Elements of 2 and 4 bits take one byte each, as in TensorFlow.
[[nodiscard]] constexpr std::size_t size_of(dtype type) noexcept { return detail::entry_of(type).size; }

/// Returns the name of the type, as NumPy or TensorFlow writes it: "float32", "bool". Messages and the tool use this name. Returns
/// "invalid" for unknown numbers.
[[nodiscard]] constexpr std::string_view to_string(dtype type) noexcept { return detail::entry_of(type).name; }

/// The dtype of a C++ element type, or `invalid` if there is none.
template<class T>
inline constexpr dtype dtype_of = detail::dtype_of_element<std::remove_cv_t<T>>();

/// A C++ type that can be the fixed-size element of a variable.
template<class T>
concept tensor_element = size_of(dtype_of<T>) != 0;

/// The sizes of the dimensions, with the slowest-varying dimension first. Rank 0 is a scalar.
using tensor_shape = std::vector<std::int64_t>;

/// Returns the number of elements of a tensor with this shape: 1 for a scalar.
/// @pre No size is negative, and the product of the sizes fits into the result.
[[nodiscard]] inline std::int64_t element_count(const tensor_shape& shape) noexcept {
  std::int64_t count = 1;
  for (const auto size : shape) { count *= size; }
  return count;
}

/// A view of the sizes of a shape. Another object owns the sizes.
/// @lifetime The owner of the sizes must outlive the view.
class shape_view : public std::span<const std::int64_t> {
public:
  using std::span<const std::int64_t>::span;
  explicit(false) shape_view(const tensor_shape& shape) noexcept : std::span<const std::int64_t>(shape) {}

  /// Returns a copy that owns its sizes.
  explicit(false) operator tensor_shape() const { return {begin(), end()}; }
  friend bool operator==(shape_view a, shape_view b) noexcept { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
};

/// Like `element_count` of a `tensor_shape`.
template<std::same_as<shape_view> Shape>
[[nodiscard]] std::int64_t element_count(Shape shape) noexcept {
  std::int64_t count = 1;
  for (const auto size : shape) { count *= size; }
  return count;
}

/// Returns the shape as text: "[2,3]", or "[]" for a scalar.
[[nodiscard]] std::string to_string(const tensor_shape& shape);
[[nodiscard]] std::string to_string(shape_view shape);

/// A non-owning view of row-major elements of a fixed-size dtype.
/// @lifetime The bytes must outlive the view.
struct tensor_view {
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::span<const std::byte> bytes;
};

/// A non-owning view of row-major elements of a fixed-size dtype, without their shape.
/// @lifetime The bytes must outlive the view.
struct elements_view {
  stepwell::dtype dtype = dtype::invalid;
  std::span<const std::byte> bytes;
};

/// A tensor that owns its elements. They are in `bytes()` if the dtype has a fixed size, and in `strings()` if it is `dtype::string`.
class tensor {
public:
  tensor() noexcept;
  /// Creates `element_count(shape)` elements, which are zeros or empty strings. @pre `type` is `dtype::string` or has a fixed size.
  tensor(stepwell::dtype type, tensor_shape shape);
  tensor(const tensor&);
  tensor(tensor&&) noexcept;
  tensor& operator=(const tensor&);
  tensor& operator=(tensor&&) noexcept;
  ~tensor();

  [[nodiscard]] stepwell::dtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] const tensor_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {bytes_.data(), bytes_.size()}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.data(), bytes_.size()}; }
  [[nodiscard]] std::span<std::string> strings() noexcept { return {strings_.data(), strings_.size()}; }
  [[nodiscard]] std::span<const std::string> strings() const noexcept { return {strings_.data(), strings_.size()}; }
  [[nodiscard]] tensor_view view() const { return {dtype_, shape_, bytes()}; }

  /// Returns the elements as `T`. @pre `dtype_of<T>` is the dtype of this tensor.
  template<tensor_element T>
  [[nodiscard]] std::span<const T> as() const {
    assert(dtype_of<T> == dtype_);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template<tensor_element T>
  [[nodiscard]] std::span<T> as() {
    assert(dtype_of<T> == dtype_);
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

  /// Returns a scalar tensor that holds `value`.
  template<tensor_element T>
  [[nodiscard]] static tensor scalar(T value) {
    tensor made(dtype_of<T>, {});
    std::memcpy(made.bytes_.data(), &value, sizeof(T));
    return made;
  }

private:
  stepwell::dtype dtype_ = dtype::invalid;
  tensor_shape shape_;
  std::vector<std::byte> bytes_;
  std::vector<std::string> strings_;
};

/// Customisation point. A specialisation makes `T` usable as a variable, as a fetched value, as a summary value, and as a value watched for
/// NaN. The specialisation has these members:
///
///     static constexpr bool is_writable;  // the elements of a `T&` can be assigned to
///     static constexpr bool is_borrowed;  // `T` is a view of elements of another object; a `variable_ref` then accepts a temporary `T`
///     static tensor_view view(const T& value);  // copies nothing; throws invalid_argument_error if the elements are not
///                                               // contiguous in row-major order
///
/// Two more members are optional. With them, hooks that read values in every step need not allocate a shape each time:
///
///     static elements_view elements(const T& value);             // like `view`, without the shape
///     static void copy_shape(const T& value, tensor_shape& to);  // stores the shape of `view(value)` in `to`
///
/// If other code may replace the elements of a `T` while they are copied for a snapshot, the specialisation has one more member. The copying
/// code holds the returned pointer:
///
///     static std::shared_ptr<const void> owner(const T& value);  // keeps the elements of `view(value)` in memory
///
/// A type whose only element may be on a device has this member, for hooks that read a number:
///
///     static double number(const T& value);  // throws invalid_argument_error unless there is one element, a real number
///
/// If elements may be on a device, and the device can look for NaN, NaN guards use this member:
///
///     static std::optional<bool> any_bad_on_device(const T& value, bool nan_only);  // true: an element is NaN, or infinite unless `nan_only`;
///                                                                                   // empty: the caller checks `view(value)`
///
/// A type whose copies share their elements, such as a view, has this member:
///
///     using owner_type;  // a type that owns a copy of the elements; constructed from a `const T&`. For a fetched `T`, `run` returns it.
///
/// The elements of a lazy tensor are computed when they are read (an expression such as `rate * gradient`), or may have gaps between them (a
/// view of a part of a tensor). Hooks, summaries and metrics read them in blocks. The specialisation has `owner_type` and the following
/// members. If `T` can be a variable, the specialisation also has `view`, which throws if there are gaps.
///
///     static constexpr dtype element_type;                       // has a fixed size
///     static std::size_t size(const T& value);                   // the number of elements
///     static void copy_shape(const T& value, tensor_shape& to);
///     static void evaluate(const T& value, std::size_t first, std::span<std::byte> to);  // writes consecutive elements, in row-major
///                                                                                        // order, from element number `first` on
///
/// `stepwell/eigen/eigen.hpp` and `stepwell/torch/torch.hpp` contain examples.
template<class T>
struct tensor_adapter;

/// A running asynchronous copy of elements from a device to the host.
/// @lifetime Keeps the elements in memory until they are read, also if the model replaces them by other ones.
class device_copy {
public:
  virtual ~device_copy();

  /// Orders later work after the copy: work that the calling thread gives to the device after this call begins when the device has read the
  /// elements. Does not block the host. The thread that runs the steps calls this function before it changes the elements.
  /// @errors Errors of the device.
  virtual void hold_back_updates() = 0;
  /// Blocks until all elements are on the host.
  /// @errors  Errors of the device, in each call.
  /// @threads Any; several threads may call it at the same time, and `hold_back_updates` does not wait for them.
  virtual void wait() = 0;
};

/// The elements of a variable if a `tensor_view` cannot refer to them, for example because they are in the memory of a GPU or of another
/// process. Each snapshot copies the elements from the device, and each restore copies them to the device. The adapter of a tensor type
/// with such elements has this member, in addition to those of `tensor_adapter`:
///
///     static std::shared_ptr<device_elements> on_device(const T& value);  // null if `view(value)` refers to the elements
class device_elements {
public:
  virtual ~device_elements();

  /// Returns a view with the type and the shape of the elements. `bytes` of the view is empty.
  [[nodiscard]] virtual tensor_view description() const = 0;
  /// Copies all elements to `to`, in row-major order. @pre `to` has the size of all elements in bytes. @errors Errors of the device.
  virtual void copy_to(std::span<std::byte> to) const = 0;
  /// Assigns `from` to all elements, in row-major order. @pre `from` has the size of all elements in bytes. @errors Errors of the device.
  virtual void copy_from(std::span<const std::byte> from) = 0;
  /// Returns the elements if they lie in the memory of this process, in row-major order. A snapshot then copies them from there, and several
  /// threads share the copy of large elements. Otherwise returns an empty span, as the default implementation does.
  /// @errors   Errors of the device.
  /// @lifetime The span must be valid until the elements change.
  [[nodiscard]] virtual std::span<const std::byte> host_bytes() const;
  /// Begins to copy all elements to `to`, in row-major order, and does not wait for the device. The copy has the values that the elements
  /// have after all work that the calling thread has given to the device before. Returns null if the device cannot do this, as the default
  /// implementation does; the snapshot then calls `copy_to`.
  /// @pre      `to` has the size of all elements in bytes.
  /// @errors   Errors of the device. The device then no longer writes to `to`.
  /// @lifetime `to` must stay valid until `wait` of the copy has returned.
  [[nodiscard]] virtual std::shared_ptr<device_copy> start_copy_to(std::span<std::byte> to) const;
  /// Returns `size` bytes of host memory that the device reaches without another copy (pinned memory). The address is a multiple of 4096. A
  /// snapshot with such elements uses it as its buffer. Returns null if any memory is as good, as the default implementation does.
  /// @errors Errors of the device.
  [[nodiscard]] virtual std::shared_ptr<std::byte> host_memory(std::size_t size) const;
  /// Returns elements of the same type, shape and values in other memory of the device, for an average that the device computes. Returns
  /// null if it cannot compute one, as the default implementation does; the average is then in host memory.
  /// @errors Errors of the device.
  [[nodiscard]] virtual std::shared_ptr<device_elements> make_average() const;
  /// Adds `weight * (element - average)` to each element of `average`, or exchanges the elements with those of `average`.
  /// @pre `make_average` of elements with this type, shape and device returned `average`. @errors Errors of the device.
  virtual void add_to_average(device_elements& average, double weight) const;
  virtual void exchange_with_average(device_elements& average);
  /// Like `copy_to` and `copy_from`, but for elements of `dtype::string`. The default implementations throw `unimplemented_error`. Override
  /// them if the elements are strings.
  virtual void copy_strings_to(std::span<std::string> to) const;
  virtual void copy_strings_from(std::span<const std::string> from);
};

/// The adapter of stepwell's own `tensor`.
template<>
struct tensor_adapter<tensor> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = false;

  /// Returns a view of the elements. @errors `invalid_argument_error` if the dtype has no fixed size, for example `dtype::string`.
  static tensor_view view(const tensor& value);
  /// Like `view`, without the shape. @errors Those of `view`.
  static elements_view elements(const tensor& value);
  static void copy_shape(const tensor& value, tensor_shape& to) { to = value.shape(); }
};
template<>
struct tensor_adapter<tensor_view> {
  static constexpr bool is_writable = false;
  static constexpr bool is_borrowed = true;

  static tensor_view view(const tensor_view& value) { return value; }
  static elements_view elements(const tensor_view& value) { return {value.dtype, value.bytes}; }
  static void copy_shape(const tensor_view& value, tensor_shape& to) { to = value.shape; }
};

/// A type for which `tensor_adapter` is specialised.
template<class T>
concept adapted_tensor = requires(const std::remove_cvref_t<T>& value) {
  { tensor_adapter<std::remove_cvref_t<T>>::view(value) } -> std::same_as<tensor_view>;
};

/// A type whose elements are read in blocks, see `tensor_adapter`.
template<class T>
concept lazy_tensor = requires(const std::remove_cvref_t<T>& value, std::span<std::byte> to) {
  tensor_adapter<std::remove_cvref_t<T>>::evaluate(value, std::size_t{}, to);
};

/// A non-owning view of a lazy tensor, without its shape.
/// @lifetime The tensor must outlive the view.
class lazy_view {
public:
  template<lazy_tensor T>
  explicit lazy_view(const T& value)
      : dtype(tensor_adapter<T>::element_type), size(tensor_adapter<T>::size(value)), value_(std::addressof(value)),
        evaluate_(&evaluate_value<T>) {}

  /// Writes consecutive elements to `to`, in row-major order, from element number `first` on.
  /// @pre The size of `to` is a multiple of the size of one element. All elements that fit into `to` exist.
  void evaluate(std::size_t first, std::span<std::byte> to) const { evaluate_(value_, first, to); }

  stepwell::dtype dtype;
  std::size_t size;  ///< Number of elements.

private:
  template<class T>
  static void evaluate_value(const void* value, std::size_t first, std::span<std::byte> to) {
    tensor_adapter<T>::evaluate(*static_cast<const T*>(value), first, to);
  }

  const void* value_;
  void (*evaluate_)(const void* value, std::size_t first, std::span<std::byte> to);
};

namespace detail {

/// Returns true for the types float8, float4, int4, uint4, int2 and uint2. C++ has no such types, and each element takes one byte.
[[nodiscard]] constexpr bool is_narrow_number(dtype type) noexcept { return type >= dtype::float8_e5m2 && type <= dtype::float4_e2m1fn; }

/// Returns the value of an element of a narrow type. The result is exact, because a float can represent every value of these types. If the
/// type has less than 8 bits, only the low bits of `bits` are used.
/// @pre `is_narrow_number(type)`.
[[nodiscard]] float narrow_number(dtype type, std::uint8_t bits) noexcept;

/// Return the value of a 16-bit number: `half_number` of an IEEE half, `bfloat16_number` of a bfloat16.
[[nodiscard]] float half_number(std::uint16_t bits) noexcept;
[[nodiscard]] float bfloat16_number(std::uint16_t bits) noexcept;

/// The size of the largest element in bytes, that of `dtype::complex128`.
inline constexpr std::size_t largest_element = 16;

/// Calls `see` with each block of the elements, in row-major order, until `see` returns false. Returns false in this case, otherwise true. A
/// block fits into the first-level cache of the processor.
/// @cost Stores one block on the stack.
bool for_each_block(const lazy_view& values, function_ref<bool(const elements_view& block)> see);

/// Returns the elements of a lazy tensor.
template<lazy_tensor T>
[[nodiscard]] tensor evaluated(const T& value) {
  tensor_shape shape;
  tensor_adapter<T>::copy_shape(value, shape);
  tensor made(tensor_adapter<T>::element_type, std::move(shape));
  tensor_adapter<T>::evaluate(value, 0, made.bytes());
  return made;
}

/// The type of a fetched value that `run` returns: the `owner_type` of the adapter if it has one, otherwise the decayed type of the value.
template<class T>
struct owned {
  using type = std::decay_t<T>;
};
template<class T>
  requires requires { typename tensor_adapter<std::remove_cvref_t<T>>::owner_type; }
struct owned<T> {
  using type = typename tensor_adapter<std::remove_cvref_t<T>>::owner_type;
};
template<class T>
using owned_t = typename owned<T>::type;

/// If the elements are floats or doubles, returns `see(elements)`, where `elements` is a span. For other types, returns `otherwise`.
template<class See, class Result>
Result see_floats(const elements_view& values, See&& see, Result otherwise) {
  const auto elements = [&]<class Element>(Element) {
    return std::span(reinterpret_cast<const Element*>(values.bytes.data()), values.bytes.size() / sizeof(Element));
  };
  if (values.dtype == dtype::float32) [[likely]] { return see(elements(float{})); }
  if (values.dtype == dtype::float64) { return see(elements(double{})); }
  return otherwise;
}

}  // namespace detail
}  // namespace stepwell
