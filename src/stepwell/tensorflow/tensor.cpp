// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/tensor.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

detail::tensor_memory::tensor_memory(c::tensor* taken, dtype taken_type, bool is_ours) noexcept : is_exclusive(is_ours) {
  hold(taken, taken_type);
}
detail::tensor_memory::~tensor_memory() { empty(); }

void detail::tensor_memory::hold(c::tensor* taken, dtype taken_type) noexcept {
  const auto& tf = functions();
  raw = taken;
  data = tf.tensor_data(taken);
  bytes = tf.tensor_byte_size(taken);
  type = taken_type;
  rank = tf.num_dims(taken);
  has_fixed_size = size_of(taken_type) != 0;
  checked.store(0, std::memory_order_relaxed);
}
void detail::tensor_memory::empty() noexcept {
  if (raw != nullptr) { functions().delete_tensor(std::exchange(raw, nullptr)); }
}

void detail::tensor_owner::destroy() noexcept { delete memory_; }

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
detail::tensor_owner allocate(stepwell::dtype type, const tensor_shape& shape) {
  const auto& tf = detail::functions();
  const auto bytes = checked_bytes(type, shape);
  auto* const raw = tf.allocate_tensor(static_cast<int>(type), shape.data(), static_cast<int>(shape.size()), bytes);
  if (raw == nullptr || (bytes > 0 && tf.tensor_data(raw) == nullptr)) {
    if (raw != nullptr) { tf.delete_tensor(raw); }
    throw resource_exhausted_error("could not allocate a tensor of " + std::string(to_string(type)) + " " + to_string(shape));
  }
  detail::tensor_owner made(new detail::tensor_memory(raw, type, true));
  if (type == dtype::string) {
    auto* const elements = static_cast<detail::c::string*>(made->data);
    for (std::size_t i = 0; i < bytes / sizeof(detail::c::string); ++i) { tf.string_init(elements + i); }
  }
  return made;
}

/// Returns a copy of the elements that nothing else refers to.
detail::tensor_owner copy_of(const detail::tensor_memory& from) {
  const auto& tf = detail::functions();
  auto made = allocate(from.type, detail::shape_of(from));
  if (from.type == dtype::string) {
    const auto* const source = static_cast<const detail::c::string*>(from.data);
    auto* const to = static_cast<detail::c::string*>(made->data);
    for (std::size_t i = 0; i < from.bytes / sizeof(detail::c::string); ++i) {
      tf.string_copy(to + i, tf.string_data(source + i), tf.string_size(source + i));
    }
  } else if (from.bytes > 0) {
    std::memcpy(made->data, from.data, from.bytes);
  }
  return made;
}

/// Returns true if `fetched`, a tensor of the same dtype, has the shape of `memory`.
bool has_shape_of(const detail::tensor_memory& memory, const detail::c::tensor* fetched) {
  const auto& tf = detail::functions();
  if (tf.num_dims(fetched) != memory.rank) { return false; }
  if (memory.rank == 0) { return true; }
  if (tf.tensor_byte_size(fetched) != memory.bytes) { return false; }
  for (int i = 0; memory.rank > 1 && i < memory.rank; ++i) {  // the size determines the only dimension
    if (tf.dim(fetched, i) != tf.dim(memory.raw, i)) { return false; }
  }
  return true;
}

}  // namespace

void detail::throw_other_elements(const tensor& found, std::string_view wanted) {
  throw invalid_argument_error("a tensor of " + std::string(to_string(found.dtype())) + " " + to_string(found.shape()) +
                               " was read as one with " + std::string(wanted) + "; read it with the C++ type of its elements");
}

void detail::throw_no_fixed_size(const tensor& found) {
  throw invalid_argument_error("a tensor of " + std::string(to_string(found.dtype())) +
                               " has no elements of a fixed size; read strings with strings()");
}

void detail::copy_shape(const tensor_memory& memory, tensor_shape& to) {
  const auto& tf = functions();
  to.resize(static_cast<std::size_t>(memory.rank));
  for (std::size_t i = 0; i < to.size(); ++i) { to[i] = tf.dim(memory.raw, static_cast<int>(i)); }
}
tensor_shape detail::shape_of(const tensor_memory& memory) {
  tensor_shape shape;
  copy_shape(memory, shape);
  return shape;
}

tensor::tensor(stepwell::dtype type, tensor_shape shape) : memory_(allocate(type, shape)) {
  if (type != dtype::string && memory_->bytes > 0) { std::memset(memory_->data, 0, memory_->bytes); }
}

tensor::tensor(const tensor_view& value, std::nullptr_t) : memory_(allocate(value.dtype, value.shape)) {
  if (!value.bytes.empty()) { std::memcpy(memory_->data, value.bytes.data(), value.bytes.size()); }
}

std::size_t tensor::size() const noexcept {
  if (!memory_) { return 0; }
  const auto bytes = element_bytes(memory_->type);
  return bytes == 0 ? 0 : memory_->bytes / bytes;
}

void* tensor::own_data() {
  if (!memory_) { return nullptr; }
  if (!memory_.is_only_owner() || !memory_->is_exclusive) { memory_ = copy_of(*memory_); }
  return memory_->data;
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

tensor tensor::of_strings(std::span<const std::string> elements, tensor_shape shape) {
  if (checked_bytes(dtype::string, shape) != elements.size() * sizeof(detail::c::string)) {
    throw invalid_argument_error(std::to_string(elements.size()) + " strings do not fill a tensor of shape " + to_string(shape));
  }
  const auto& tf = detail::functions();
  tensor made;
  made.memory_ = allocate(dtype::string, shape);
  auto* const to = static_cast<detail::c::string*>(made.memory_->data);
  for (std::size_t i = 0; i < elements.size(); ++i) { tf.string_copy(to + i, elements[i].data(), elements[i].size()); }
  return made;
}

tensor tensor::take(detail::c::tensor* fetched, bool may_alias) {
  tensor made;
  made.refill(fetched, static_cast<stepwell::dtype>(detail::functions().tensor_type(fetched)), may_alias);
  return made;
}
[[gnu::hot]] void tensor::refill(detail::c::tensor* fetched, stepwell::dtype type, bool may_alias) {
  const bool is_released_copy =
      memory_ && memory_->raw != nullptr && memory_->is_exclusive.load(std::memory_order_relaxed) && memory_.is_only_owner();
  if (!may_alias || !is_released_copy || memory_->type != type || !has_shape_of(*memory_, fetched)) {
    return take_over(fetched, type, may_alias);
  }
  const auto& tf = detail::functions();
  if (memory_->bytes == sizeof(float)) {  // a scalar, most often: without a call of memcpy
    std::memcpy(memory_->data, tf.tensor_data(fetched), sizeof(float));
  } else {
    std::memcpy(memory_->data, tf.tensor_data(fetched), memory_->bytes);
  }
  tf.delete_tensor(fetched);
}
[[gnu::hot]] void tensor::take_over(detail::c::tensor* fetched, stepwell::dtype type, bool may_alias) {
  if (memory_ && memory_->raw == nullptr) {
    memory_->hold(fetched, type);
    memory_->is_exclusive = false;
  } else {
    memory_ = detail::tensor_owner(new detail::tensor_memory(fetched, type, false));
  }
  if (may_alias && memory_->bytes > 0) { memory_ = copy_of(*memory_); }
}
[[gnu::hot]] void tensor::give_up_memory() noexcept {
  if (memory_.is_only_owner()) {
    memory_->empty();
  } else {
    memory_ = {};
  }
}

tensor tensor::for_graph(long owners) const {
  if (give_to_graph(owners)) { return *this; }
  tensor given;
  given.memory_ = copy_of(*memory_);
  given.memory_->is_exclusive = false;
  return given;
}

}  // namespace stepwell::tensorflow
