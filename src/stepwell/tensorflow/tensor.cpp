// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/tensor.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

/// A tensor of the library, and whether its elements are ours alone.
struct detail::tensor_memory {
  explicit tensor_memory(c::tensor* taken, bool is_ours) noexcept : raw(taken), is_exclusive(is_ours) {}
  tensor_memory(const tensor_memory&) = delete;
  tensor_memory& operator=(const tensor_memory&) = delete;
  ~tensor_memory() { functions().delete_tensor(raw); }

  c::tensor* raw;
  bool is_exclusive;  // false if the graph may hold the memory, too
};

namespace {

std::size_t element_bytes(stepwell::dtype type) { return type == dtype::string ? sizeof(detail::c::string) : size_of(type); }

/// Returns the size of all elements in bytes. @errors `invalid_argument_error`.
std::size_t checked_bytes(stepwell::dtype type, const tensor_shape& shape) {
  auto bytes = element_bytes(type);
  if (bytes == 0) {
    throw invalid_argument_error("a tensor of " + std::string(to_string(type)) + " cannot be made: its elements have no size");
  }
  for (const auto size : shape) {
    if (size < 0) { throw invalid_argument_error("a tensor of shape " + to_string(shape) + " cannot be made: a dimension is negative"); }
    if (size != 0 && bytes > std::numeric_limits<std::size_t>::max() / 2 / static_cast<std::size_t>(size)) {
      throw invalid_argument_error("a tensor of shape " + to_string(shape) + " cannot be made: it is too large");
    }
    bytes *= static_cast<std::size_t>(size);
  }
  return bytes;
}

/// Allocates a tensor without initialising its numbers. Strings are empty.
std::shared_ptr<detail::tensor_memory> allocate(stepwell::dtype type, const tensor_shape& shape) {
  const auto& tf = detail::functions();
  const auto bytes = checked_bytes(type, shape);
  auto* const raw = tf.allocate_tensor(static_cast<int>(type), shape.data(), static_cast<int>(shape.size()), bytes);
  if (raw == nullptr) {
    throw resource_exhausted_error("could not allocate a tensor of " + std::string(to_string(type)) + " " + to_string(shape));
  }
  auto made = std::make_shared<detail::tensor_memory>(raw, true);
  if (type == dtype::string) {
    auto* const elements = static_cast<detail::c::string*>(tf.tensor_data(raw));
    for (std::size_t i = 0; i < bytes / sizeof(detail::c::string); ++i) { tf.string_init(elements + i); }
  }
  return made;
}

stepwell::dtype dtype_of_raw(const detail::c::tensor* raw) { return static_cast<stepwell::dtype>(detail::functions().tensor_type(raw)); }

tensor_shape shape_of_raw(const detail::c::tensor* raw) {
  const auto& tf = detail::functions();
  tensor_shape shape(static_cast<std::size_t>(tf.num_dims(raw)));
  for (std::size_t i = 0; i < shape.size(); ++i) { shape[i] = tf.dim(raw, static_cast<int>(i)); }
  return shape;
}

/// Returns a copy of the elements that nothing else refers to.
std::shared_ptr<detail::tensor_memory> copy_of(const detail::c::tensor* raw) {
  const auto& tf = detail::functions();
  const auto type = dtype_of_raw(raw);
  auto made = allocate(type, shape_of_raw(raw));
  const auto bytes = tf.tensor_byte_size(raw);
  if (type == dtype::string) {
    const auto* const from = static_cast<const detail::c::string*>(tf.tensor_data(raw));
    auto* const to = static_cast<detail::c::string*>(tf.tensor_data(made->raw));
    for (std::size_t i = 0; i < bytes / sizeof(detail::c::string); ++i) {
      tf.string_copy(to + i, tf.string_data(from + i), tf.string_size(from + i));
    }
  } else if (bytes > 0) {
    std::memcpy(tf.tensor_data(made->raw), tf.tensor_data(raw), bytes);
  }
  return made;
}

}  // namespace

void detail::throw_other_elements(const tensor& found, std::string_view wanted) {
  throw invalid_argument_error("a tensor of " + std::string(to_string(found.dtype())) + " " + to_string(found.shape()) +
                               " was read as one with " + std::string(wanted) + "; read it with the C++ type of its elements");
}

tensor::tensor(stepwell::dtype type, tensor_shape shape) : memory_(allocate(type, shape)) {
  const auto& tf = detail::functions();
  if (type != dtype::string) {
    if (const auto bytes = tf.tensor_byte_size(memory_->raw); bytes > 0) { std::memset(tf.tensor_data(memory_->raw), 0, bytes); }
  }
}

tensor::tensor(const tensor_view& value, std::nullptr_t) : memory_(allocate(value.dtype, value.shape)) {
  if (!value.bytes.empty()) { std::memcpy(detail::functions().tensor_data(memory_->raw), value.bytes.data(), value.bytes.size()); }
}

stepwell::dtype tensor::dtype() const noexcept { return memory_ ? dtype_of_raw(memory_->raw) : dtype::invalid; }
tensor_shape tensor::shape() const { return memory_ ? shape_of_raw(memory_->raw) : tensor_shape(); }

std::size_t tensor::size() const noexcept {
  if (!memory_) { return 0; }
  const auto bytes = element_bytes(dtype());
  return bytes == 0 ? 0 : detail::functions().tensor_byte_size(memory_->raw) / bytes;
}

const void* tensor::data() const noexcept { return memory_ ? detail::functions().tensor_data(memory_->raw) : nullptr; }
void* tensor::own_data() {
  if (!memory_) { return nullptr; }
  if (memory_.use_count() > 1 || !memory_->is_exclusive) { memory_ = copy_of(memory_->raw); }
  return detail::functions().tensor_data(memory_->raw);
}

std::string tensor::string(std::size_t i) const {
  check_type(dtype::string);
  const auto& tf = detail::functions();
  const auto* const element = static_cast<const detail::c::string*>(data()) + i;
  return {tf.string_data(element), tf.string_size(element)};
}
std::vector<std::string> tensor::strings() const {
  check_type(dtype::string);
  std::vector<std::string> all;
  all.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) { all.push_back(string(i)); }
  return all;
}

std::span<const std::byte> tensor::bytes() const noexcept {
  if (!memory_ || size_of(dtype()) == 0) { return {}; }
  return {static_cast<const std::byte*>(data()), detail::functions().tensor_byte_size(memory_->raw)};
}
tensor_view tensor::view() const {
  if (memory_ && size_of(dtype()) == 0) {
    throw invalid_argument_error("a tensor of " + std::string(to_string(dtype())) +
                                 " has no elements of a fixed size; read strings with strings()");
  }
  return {dtype(), shape(), bytes()};
}

tensor tensor::of_strings(std::span<const std::string> elements, tensor_shape shape) {
  if (checked_bytes(dtype::string, shape) != elements.size() * sizeof(detail::c::string)) {
    throw invalid_argument_error(std::to_string(elements.size()) + " strings do not fill a tensor of shape " + to_string(shape));
  }
  const auto& tf = detail::functions();
  tensor made;
  made.memory_ = allocate(dtype::string, shape);
  auto* const to = static_cast<detail::c::string*>(tf.tensor_data(made.memory_->raw));
  for (std::size_t i = 0; i < elements.size(); ++i) { tf.string_copy(to + i, elements[i].data(), elements[i].size()); }
  return made;
}

tensor tensor::take(detail::c::tensor* fetched, bool may_alias) {
  tensor made;
  made.memory_ = std::make_shared<detail::tensor_memory>(fetched, false);
  if (may_alias && made.size() > 0) { made.memory_ = copy_of(fetched); }
  return made;
}

tensor tensor::for_graph(long owners) const {
  tensor given;
  if (!memory_ || !memory_->is_exclusive || memory_.use_count() <= owners) {
    given.memory_ = memory_;
  } else {
    given.memory_ = copy_of(memory_->raw);
  }
  if (given.memory_) { given.memory_->is_exclusive = false; }
  return given;
}
detail::c::tensor* tensor::raw() const noexcept { return memory_ ? memory_->raw : nullptr; }

}  // namespace stepwell::tensorflow
