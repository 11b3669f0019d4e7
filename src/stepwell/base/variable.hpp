// SPDX-License-Identifier: Apache-2.0
//
// Variables: named references to those objects in the memory of a model that checkpoints save and restore. Tensor types are recognised by
// their members (data, shape, strides) or by an adapter, so this header includes no tensor library. Random engines and distributions, and
// values that two functions read and write, are variables, too.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <istream>
#include <iterator>
#include <memory>
#include <ostream>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef _LIBCPP_VERSION
#include <random>
#endif

namespace stepwell {

/// A type with the member functions of a tensor: `data`, `size` and `shape`.
template<class T>
concept tensor_like = requires(T& value) {
  { *value.data() } -> std::convertible_to<typename std::remove_cvref_t<T>::value_type>;
  { value.size() } -> std::convertible_to<std::size_t>;
  { std::begin(value.shape()) } -> std::input_iterator;
} && tensor_element<typename std::remove_cvref_t<T>::value_type>;

/// A contiguous range of fixed-size elements: std::vector, std::array, std::span.
template<class T>
concept element_range =
    !tensor_like<T> && std::ranges::contiguous_range<T> && std::ranges::sized_range<T> && tensor_element<std::ranges::range_value_t<T>>;

/// A type that can be a variable: a scalar, a range of elements, a tensor, or a type with an adapter.
template<class T>
concept variable_like = tensor_element<std::remove_cvref_t<T>> || adapted_tensor<T> || element_range<T> || tensor_like<T>;

namespace detail {
/// True for a distribution whose stream operators omit a part of its state.
template<class T>
inline constexpr bool omits_state = false;
#ifdef _LIBCPP_VERSION
template<class Real>
inline constexpr bool omits_state<std::student_t_distribution<Real>> = true;  // the value that its normal distribution keeps
#endif
}  // namespace detail

/// A random engine or distribution, such as those of `<random>`: its stream operators write and read its complete state. With libc++ this
/// excludes `std::student_t_distribution`, whose operators omit the value that it keeps for the next call.
template<class T>
concept random_state = !variable_like<T> && std::copyable<T> && !detail::omits_state<T> &&
    (requires(T& value) { { T::min() } -> std::same_as<typename T::result_type>; { value() } -> std::same_as<typename T::result_type>; } ||
     requires(T& value) { { value.param() } -> std::same_as<typename T::param_type>; value.reset(); }) &&
    requires(std::ostream& out, std::istream& in, T& value) { out << std::as_const(value); in >> value; };

namespace detail {

/// Returns true if `strides` are those of a row-major tensor. A dimension of size one may have any stride.
[[nodiscard]] bool is_row_major(const tensor_shape& shape, const tensor_shape& strides);

/// Converts sizes or strides of any integer type to a `tensor_shape`.
template<class Sizes>
tensor_shape as_shape(const Sizes& sizes) {
  tensor_shape shape;
  for (const auto size : sizes) { shape.push_back(static_cast<std::int64_t>(size)); }
  return shape;
}

inline std::span<const std::byte> bytes_at(const void* first, std::size_t size) { return {static_cast<const std::byte*>(first), size}; }

[[noreturn]] void throw_not_row_major();
/// Throws an error with the code of `failure` and a message that names the variable.
[[noreturn]] void throw_named(const std::string& name, const error& failure);

template<class T>
concept has_strides = requires(T& value) { std::begin(value.strides()); };

/// Returns a pointer to the first element. In a view of a larger tensor, the first element lies `data_offset()` elements behind `data()`.
template<class T>
auto* first_element(T& value) {
  if constexpr (requires {
                  { value.data_offset() } -> std::convertible_to<std::ptrdiff_t>;
                }) {
    return value.data() + static_cast<std::ptrdiff_t>(value.data_offset());
  }
  return value.data();
}

/// Returns the elements of `value` if a save must copy them from a device. Returns null if `view_of` can refer to them.
template<class T>
std::shared_ptr<device_elements> elements_on_device(const T& value) {
  if constexpr (requires { tensor_adapter<T>::on_device(value); }) { return tensor_adapter<T>::on_device(value); }
  return nullptr;
}

/// Returns an object that keeps the elements of `value` in memory, or null if there is none.
template<class T>
std::shared_ptr<const void> owner_of(const T& value) {
  if constexpr (requires { tensor_adapter<T>::owner(value); }) { return tensor_adapter<T>::owner(value); }
  return nullptr;
}

/// True for view types. The elements of a view are owned by another object.
template<class T>
inline constexpr bool refers_to_elements = [] {
  if constexpr (adapted_tensor<T>) {
    return tensor_adapter<std::remove_const_t<T>>::is_borrowed;
  } else {
    return element_range<T> && std::ranges::enable_borrowed_range<T>;
  }
}();

/// Returns true if the elements of a `T&` can be assigned to. Also returns true if `T` is a constant span of non-constant elements.
template<class T>
consteval bool has_writable_elements() {
  if constexpr (tensor_element<T>) {
    return !std::is_const_v<T>;
  } else if constexpr (adapted_tensor<T>) {
    return tensor_adapter<std::remove_const_t<T>>::is_writable &&
           (tensor_adapter<std::remove_const_t<T>>::is_borrowed || !std::is_const_v<T>);
  } else if constexpr (tensor_like<T>) {
    return !std::is_const_v<std::remove_pointer_t<decltype(std::declval<T&>().data())>>;
  } else {
    return !std::is_const_v<std::remove_pointer_t<decltype(std::ranges::data(std::declval<T&>()))>>;
  }
}

}  // namespace detail

/// Returns the dtype, shape and bytes of a scalar, range or tensor. Copies no elements.
/// @errors   `invalid_argument_error` if the elements are not contiguous in row-major order.
/// @lifetime The view is valid until `value` is resized or destroyed.
template<variable_like T>
[[nodiscard]] tensor_view view_of(const T& value) {
  if constexpr (tensor_element<T>) {
    return {dtype_of<T>, {}, detail::bytes_at(&value, sizeof(T))};
  } else if constexpr (adapted_tensor<T>) {
    return tensor_adapter<T>::view(value);
  } else if constexpr (tensor_like<const T>) {
    auto shape = detail::as_shape(value.shape());
    if constexpr (detail::has_strides<const T>) {
      if (!detail::is_row_major(shape, detail::as_shape(value.strides()))) { detail::throw_not_row_major(); }
    }
    using element = typename T::value_type;
    return {dtype_of<element>, std::move(shape), detail::bytes_at(detail::first_element(value), value.size() * sizeof(element))};
  } else {
    using element = std::ranges::range_value_t<T>;
    const std::size_t count = std::ranges::size(value);
    return {dtype_of<element>, {static_cast<std::int64_t>(count)}, detail::bytes_at(std::ranges::data(value), count * sizeof(element))};
  }
}

namespace detail {

/// Returns the dtype and the elements of `value`. Allocates nothing for a range, and if the adapter of `T` has `elements`.
/// @errors Those of `view_of`.
template<class T>
[[nodiscard]] elements_view elements_of(const T& value) {
  if constexpr (requires { tensor_adapter<T>::elements(value); }) {
    return tensor_adapter<T>::elements(value);
  } else if constexpr (element_range<T>) {
    using element = std::ranges::range_value_t<T>;
    return {dtype_of<element>, bytes_at(std::ranges::data(value), std::ranges::size(value) * sizeof(element))};
  } else {
    const auto view = stepwell::view_of(value);
    return {view.dtype, view.bytes};
  }
}
/// Stores `view_of(value)` in `to`. Reuses the memory of the shape if the adapter of `T` has `copy_shape`. @errors Those of `view_of`.
template<class T>
void view_into(const T& value, tensor_view& to) {
  if constexpr (requires { tensor_adapter<T>::copy_shape(value, to.shape); }) {
    const auto elements = detail::elements_of(value);
    tensor_adapter<T>::copy_shape(value, to.shape);
    to.dtype = elements.dtype;
    to.bytes = elements.bytes;
  } else {
    to = stepwell::view_of(value);
  }
}

/// Returns the text that `write` writes to a stream with the classic locale.
[[nodiscard]] std::string text_of_state(function_ref<void(std::ostream&)> write);
template<class T>
[[nodiscard]] std::string state_text(const T& value) {
  return text_of_state([&value](std::ostream& out) { out << value; });
}
/// Calls `read` with a stream of `text` with the classic locale.
/// @errors `invalid_argument_error` that names `type`, if `read` fails or does not read the complete text.
void read_state(std::string_view text, std::string_view type, function_ref<void(std::istream&)> read);
/// Throws an error that says that the stream operators of `type` do not reproduce a state.
[[noreturn]] void throw_not_reproduced(std::string_view type);
/// Throws an error that says that a function rejected the restored value with `failure`.
[[noreturn]] void throw_rejected(const std::exception& failure);

/// A value that a function may return for a variable: a string, or a value that has the same shape at all times.
template<class T>
concept fixed_value = std::same_as<T, std::string> ||
                      (variable_like<T> && std::is_trivially_copyable_v<T> && std::default_initializable<T> && !refers_to_elements<T>);

/// The elements of a variable whose value is read by `Get` and written by `Set`.
template<class Get, class Set, fixed_value Value>
class accessed_value final : public device_elements {
  static constexpr bool is_text = std::same_as<Value, std::string>;

public:
  accessed_value(Get get, Set set) : get_(std::move(get)), set_(std::move(set)) {}

  [[nodiscard]] tensor_view description() const override {
    if constexpr (is_text) {
      return {dtype::string, {}, {}};
    } else {
      const Value value{};
      const auto view = stepwell::view_of(value);
      return {view.dtype, view.shape, {}};
    }
  }
  void copy_to([[maybe_unused]] std::span<std::byte> to) const override {
    if constexpr (!is_text) {
      const Value value = get_();
      const auto from = stepwell::view_of(value).bytes;
      std::memcpy(to.data(), from.data(), from.size());
    }
  }
  void copy_from([[maybe_unused]] std::span<const std::byte> from) override {
    if constexpr (!is_text) {
      Value value{};
      const auto bytes = stepwell::view_of(value).bytes;
      std::memcpy(const_cast<std::byte*>(bytes.data()), from.data(), from.size());
      pass(std::move(value));
    }
  }
  void copy_strings_to([[maybe_unused]] std::span<std::string> to) const override {
    if constexpr (is_text) { to.front() = get_(); }
  }
  void copy_strings_from([[maybe_unused]] std::span<const std::string> from) override {
    if constexpr (is_text) { pass(std::string(from.front())); }
  }

private:
  void pass(Value&& value) {
    try {
      set_(std::move(value));
    } catch (const error&) { throw; } catch (const std::exception& failure) {
      throw_rejected(failure);
    }
  }

  mutable Get get_;
  Set set_;
};

template<class Get, class Set>
[[nodiscard]] std::shared_ptr<device_elements> elements_by(Get get, Set set) {
  using value = std::remove_cvref_t<decltype(get())>;
  static_assert(fixed_value<value>,
                "stepwell: the function that reads a variable must return a string, a number or an array of numbers; write other values to "
                "a string");
  return std::make_shared<accessed_value<Get, Set, value>>(std::move(get), std::move(set));
}

/// Returns the elements of an engine or distribution: the text of its stream operators.
template<random_state T>
[[nodiscard]] std::shared_ptr<device_elements> elements_of_state(T& value) {
  return elements_by([&value] { return state_text(std::as_const(value)); },
                     [&value](const std::string& text) {
                       if (text == state_text(std::as_const(value))) { return; }
                       T read = value;  // `value` is unchanged if the text is rejected
                       read_state(text, type_name<T>(), [&read](std::istream& in) { in >> read; });
                       if (state_text(std::as_const(read)) != text) { throw_not_reproduced(type_name<T>()); }
                       value = std::move(read);
                     });
}

/// True for types that a `variable_ref` cannot refer to.
template<class T, class Variable>
concept not_a_variable = !variable_like<T> && !random_state<std::remove_reference_t<T>> && !std::convertible_to<T&, std::string&> &&
                         !std::convertible_to<T&, std::vector<std::string>&> &&
                         !std::convertible_to<T&&, std::shared_ptr<device_elements>> && !std::convertible_to<T&&, std::vector<Variable>>;

}  // namespace detail

/// A variable: a name, and either a reference to elements (numbers or strings) in objects of the caller, or two functions that read and
/// write the value. A `variable_ref` can also be a list of variables, to whose names it adds a prefix.
/// @lifetime The elements must outlive the reference. A session requests new references for each snapshot and each restore.
class variable_ref {
public:
  /// Refers to the elements of `value`.
  template<variable_like T>
  variable_ref(std::string name, T& value)
      : name_(std::move(name)), device_(), view_(view_named(name_, value, device_)), owner_(device_ ? nullptr : detail::owner_of(value)) {
    static_assert(detail::has_writable_elements<T>(), "stepwell: a variable must be writable, or it cannot be restored");
  }
  /// Refers to the elements of a temporary view, such as a span. Another object owns these elements.
  template<variable_like T>
    requires(!std::is_reference_v<T> && detail::refers_to_elements<T>)
  variable_ref(std::string name, T&& elements) : variable_ref(std::move(name), elements) {}
  /// Refers to one string, or to a list of strings. The number of strings must not change; their lengths may change.
  variable_ref(std::string name, std::string& value);
  variable_ref(std::string name, std::vector<std::string>& elements);
  /// Refers to a tensor of strings. @errors `invalid_argument_error` if the number of strings is not that of `shape`.
  variable_ref(std::string name, std::span<std::string> elements, tensor_shape shape);
  /// Refers to elements on a device. Each snapshot copies them from the device.
  variable_ref(std::string name, std::shared_ptr<device_elements> elements);
  /// Refers to a random engine or distribution, such as those of `<random>`. The variable is one string: the text that `operator<<` writes
  /// in the classic locale. A restore reads the text with `operator>>`.
  /// @errors A restore throws `invalid_argument_error` that names the variable if the text is not a state of `T`, or if `operator>>` does not
  ///   reproduce the state. `value` is then unchanged. The latter is possible if the weights of a `std::discrete_distribution` or of a
  ///   piecewise distribution change during the training: libstdc++ rounds or changes them. Save such weights instead of the distribution.
  template<random_state T>
  variable_ref(std::string name, T& value) : variable_ref(std::move(name), detail::elements_of_state(value)) {
    has_accessors_ = true;
  }
  /// Refers to a value that `get()` returns and `set(value)` accepts. The value is a `std::string`, a number, or an array of numbers such as
  /// `std::array<double, 3>`. Example: `{"rate", [this] { return optimizer.rate(); }, [this](double rate) { optimizer.set_rate(rate); }}`.
  ///
  /// `get` is called once for each copy of the state: for each checkpoint (once for each saver that saves the step; not again if writing the
  /// checkpoint is retried), for each copy that a recovery or an evaluation uses, and for each checksum. `set` is called once for each
  /// restore, after all checks and after all other values were read; it is not called if they fail. Creating this object calls neither.
  /// @errors The exceptions of `get` and `set`. A `stepwell::error` gets the name of the variable. Other exceptions of `set` that are derived
  ///   from `std::exception` become `invalid_argument_error`, with the name of the variable.
  template<class Get, class Set>
    requires requires(Get& get, Set& set) { set(get()); }
  variable_ref(std::string name, Get get, Set set) : variable_ref(std::move(name), detail::elements_by(std::move(get), std::move(set))) {
    has_accessors_ = true;
  }
  /// Refers to a list of variables. The prefix `name/` is added to the name of each variable.
  variable_ref(std::string name, std::vector<variable_ref> below);
  /// Explains why other types are not accepted.
  template<class T>
    requires detail::not_a_variable<T, variable_ref>
  variable_ref(std::string /*name*/, T&& /*value*/) {
    static_assert(
        sizeof(T) == 0,
        "stepwell: this type cannot be a variable. A variable is a number, a contiguous range of numbers, a tensor, a string, a "
        "vector of strings, a random engine or distribution, or a list of variables: for a vector of vectors, list each inner vector "
        "with a name of its own; for another type, give two functions that read and write its value");
  }

  variable_ref(const variable_ref&);
  variable_ref(variable_ref&&) noexcept;
  variable_ref& operator=(const variable_ref&);
  variable_ref& operator=(variable_ref&&) noexcept;
  ~variable_ref();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const tensor_view& view() const noexcept { return view_; }
  [[nodiscard]] stepwell::dtype dtype() const noexcept { return view_.dtype; }
  [[nodiscard]] const tensor_shape& shape() const noexcept { return view_.shape; }
  /// Returns the size of all elements in bytes. Strings count as 0.
  [[nodiscard]] std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(element_count(view_.shape)) * size_of(view_.dtype);
  }
  /// Returns the elements of a variable of numbers. The span is empty if the elements are on a device.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return view_.bytes; }
  [[nodiscard]] std::span<std::byte> writable_bytes() const noexcept {
    return {const_cast<std::byte*>(view_.bytes.data()), view_.bytes.size()};  // the constructor accepts writable elements only
  }
  /// Returns the elements of a variable of strings. The span is empty for other variables, and if the elements are on a device.
  [[nodiscard]] std::span<std::string> strings() const noexcept { return strings_; }
  [[nodiscard]] bool holds_strings() const noexcept { return view_.dtype == dtype::string; }
  /// Copies the elements to `to`. The elements may be on a device. @pre `to` has `size_bytes()` bytes. @errors Errors of the device; the
  /// message names the variable.
  void copy_to(std::span<std::byte> to) const;
  /// Copies `from` to the elements. The elements may be on a device. @pre `from` has `size_bytes()` bytes. @errors The errors of
  /// `copy_to`.
  void copy_from(std::span<const std::byte> from) const;
  /// Like the overloads for bytes, but for a variable of strings. @pre The number of strings in the span is that of the variable.
  void copy_to(std::span<std::string> to) const;
  void copy_from(std::span<const std::string> from) const;
  /// Returns true if the elements are not on a device. `bytes()` or `strings()` then refers to them.
  [[nodiscard]] bool is_addressable() const noexcept { return device_ == nullptr; }
  /// Returns true if two functions, or the stream operators of a random engine, read and write the value. An `ema_hook` does not average
  /// such a variable.
  [[nodiscard]] bool has_accessors() const noexcept { return has_accessors_; }
  /// Returns the elements of a variable of numbers, if they lie in the memory of this process. The span is empty otherwise.
  /// @errors   Errors of the device; the message names the variable.
  /// @lifetime Valid until the elements change.
  [[nodiscard]] std::span<const std::byte> host_bytes() const;
  /// Like the functions of `device_elements` with these names; the first three return null if the elements are not on a device.
  /// @errors Errors of the device; the message names the variable. The last two throw `failed_precondition_error` if the elements are not on
  ///   a device.
  [[nodiscard]] std::shared_ptr<device_copy> start_copy_to(std::span<std::byte> to) const;
  [[nodiscard]] std::shared_ptr<std::byte> host_memory(std::size_t size) const;
  [[nodiscard]] std::shared_ptr<device_elements> make_average() const;
  void add_to_average(device_elements& average, double weight) const;
  void exchange_with_average(device_elements& average) const;
  /// Returns an object that keeps the elements in memory, also if the model replaces them by other ones. Null for most types.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const noexcept { return owner_; }
  [[nodiscard]] const std::vector<variable_ref>& below() const noexcept { return below_; }

  /// Returns a reference with another name to the same elements.
  [[nodiscard]] variable_ref renamed(std::string name) const;
  /// Returns a reference to the same elements that is marked as optional: if a checkpoint lacks the variable, a restore leaves the variable
  /// unchanged and does not fail.
  [[nodiscard]] variable_ref optional() const;
  [[nodiscard]] bool is_optional() const noexcept { return is_optional_; }
  /// Returns a reference to the same elements that is marked as early. The mark has an effect only if the model's `step` takes an
  /// `update_fence`. Variables without the mark are then copied for a snapshot while the step runs, and may change only after the step has
  /// called `update_fence::wait`. An early variable is copied before the step begins, and may therefore change at any time in the step. An
  /// example is a running mean that the forward pass updates.
  [[nodiscard]] variable_ref early() const&;
  [[nodiscard]] variable_ref early() &&;
  [[nodiscard]] bool is_early() const noexcept { return is_early_; }

private:
  template<class Action>
  auto on_device(Action action) const;
  void require_device() const;
  template<class T>
  static tensor_view view_named(const std::string& name, const T& value, std::shared_ptr<device_elements>& device) {
    try {
      device = detail::elements_on_device(value);
      return device ? device->description() : view_of(value);
    } catch (const invalid_argument_error& failure) { detail::throw_named(name, failure); }
  }

  std::string name_;
  std::shared_ptr<device_elements> device_;  // null if the elements are not on a device
  tensor_view view_;
  std::shared_ptr<const void> owner_;
  std::span<std::string> strings_;
  std::vector<variable_ref> below_;
  bool is_optional_ = false;
  bool is_early_ = false;
  bool has_accessors_ = false;
};

/// A list of variables in a fixed order.
using variable_list = std::vector<variable_ref>;

/// Returns the variables of `entries`, as the result of a model's `variables()`. A session calls `variables()` of a model at its
/// construction, for each save, copy and restore of the state, and at other times between steps; an `ema_hook` calls it after each step.
/// The function must therefore only list the variables, and change nothing. If it prepared a value for a save, such as a text, a call after
/// a restore would overwrite the restored value.
///
/// Nested lists are flattened: a variable "w" in a list "encoder" gets the name "encoder/w".
/// Example: `variables({{"weights", weights}, {"encoder", encoder.variables()}})`.
/// @errors   `invalid_argument_error` if the elements of a variable are not contiguous in row-major order; the message names the variable.
/// @lifetime A reference is valid until its variable is resized, moved or destroyed.
[[nodiscard]] variable_list variables(std::initializer_list<variable_ref> entries);

}  // namespace stepwell
