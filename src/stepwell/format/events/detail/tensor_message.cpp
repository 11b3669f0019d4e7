// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/detail/tensor_message.hpp"

#include "stepwell/format/proto/tensor.pb.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>

namespace stepwell::format {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor_content would have to be swapped");

status damaged(std::string message) { return {errc::data_loss, std::move(message)}; }

// A shape and the number of its elements.
struct sized_shape {
  tensor_shape shape;
  std::int64_t count = 1;
};

result<sized_shape> read_shape(const tensorflow::TensorShapeProto& message) {
  if (message.unknown_rank()) { return damaged("tensor of unknown rank"); }
  sized_shape read;
  for (const auto& dim : message.dim()) {
    if (dim.size() < 0) { return damaged(fmt::format("tensor with a dimension of size {}", dim.size())); }
    if (dim.size() != 0 && read.count > std::numeric_limits<std::int64_t>::max() / 32 / dim.size()) {
      return damaged("tensor with too many elements");
    }
    read.shape.push_back(dim.size());
    read.count *= dim.size();
  }
  return read;
}

// Writes the values of the typed field of a dtype to the tensor `out`, as `Element`s.
// By TensorFlow's rule the last value is repeated for all missing values. Without any value the elements are zero.
template<class Element, class Field>
void spread(const Field& field, std::span<std::byte> out) {
  Element value{};
  for (std::size_t i = 0; i < out.size() / sizeof(Element); ++i) {
    if (i < static_cast<std::size_t>(field.size())) { value = static_cast<Element>(field[static_cast<int>(i)]); }
    std::memcpy(out.data() + i * sizeof(Element), &value, sizeof(Element));
  }
}

// Like `spread`, but for a field that holds one element in each byte.
void spread_bytes(const std::string& field, std::span<std::byte> out) {
  if (field.empty()) { return; }  // the elements are zero already
  for (std::size_t i = 0; i < out.size(); ++i) { out[i] = static_cast<std::byte>(field[std::min(i, field.size() - 1)]); }
}

bool is_float_of_a_byte(dtype type) noexcept {
  return (type >= dtype::float8_e5m2 && type <= dtype::float8_e5m2fnuz) || type == dtype::float4_e2m1fn;
}

// Like `spread`, but for complex numbers, which are pairs in the field. The last pair is repeated.
template<class Part, class Field>
void spread_pairs(const Field& field, std::span<std::byte> out) {
  Part value[2] = {};
  for (std::size_t i = 0; i < out.size() / sizeof value; ++i) {
    const auto at = static_cast<int>(std::min(i, static_cast<std::size_t>(field.size())) * 2);
    if (at + 1 < field.size()) {
      value[0] = field[at];
      value[1] = field[at + 1];
    }
    std::memcpy(out.data() + i * sizeof value, value, sizeof value);
  }
}

// Returns the number of values in the typed field of the dtype.
std::int64_t typed_values(dtype type, const tensorflow::TensorProto& message) {
  if (is_float_of_a_byte(type)) { return static_cast<std::int64_t>(message.float8_val().size()); }
  switch (type) {
    case dtype::float32: return message.float_val_size();
    case dtype::float64: return message.double_val_size();
    case dtype::complex64: return message.scomplex_val_size() / 2;
    case dtype::complex128: return message.dcomplex_val_size() / 2;
    case dtype::int64: return message.int64_val_size();
    case dtype::boolean: return message.bool_val_size();
    case dtype::half:
    case dtype::bfloat16: return message.half_val_size();
    case dtype::uint32: return message.uint32_val_size();
    case dtype::uint64: return message.uint64_val_size();
    case dtype::string: return message.string_val_size();
    default: return message.int_val_size();
  }
}

void read_typed(const tensorflow::TensorProto& message, tensor& made) {
  const auto out = made.bytes();
  if (is_float_of_a_byte(made.dtype())) { return spread_bytes(message.float8_val(), out); }
  switch (made.dtype()) {
    case dtype::float32: return spread<float>(message.float_val(), out);
    case dtype::float64: return spread<double>(message.double_val(), out);
    case dtype::complex64: return spread_pairs<float>(message.scomplex_val(), out);
    case dtype::complex128: return spread_pairs<double>(message.dcomplex_val(), out);
    case dtype::int64: return spread<std::int64_t>(message.int64_val(), out);
    case dtype::boolean: return spread<bool>(message.bool_val(), out);
    case dtype::half:
    case dtype::bfloat16: return spread<std::uint16_t>(message.half_val(), out);
    case dtype::uint32: return spread<std::uint32_t>(message.uint32_val(), out);
    case dtype::uint64: return spread<std::uint64_t>(message.uint64_val(), out);
    default: break;
  }
  switch (size_of(made.dtype())) {
    case 1: return spread<std::int8_t>(message.int_val(), out);
    case 2: return spread<std::int16_t>(message.int_val(), out);
    default: return spread<std::int32_t>(message.int_val(), out);
  }
}

void read_strings(const tensorflow::TensorProto& message, tensor& made) {
  const auto strings = made.strings();
  for (std::size_t i = 0; i < strings.size() && message.string_val_size() > 0; ++i) {
    strings[i] = message.string_val(std::min(static_cast<int>(i), message.string_val_size() - 1));
  }
}

result<void> check_amount(dtype type, std::int64_t count, const tensorflow::TensorProto& message) {
  auto width = static_cast<std::int64_t>(type == dtype::string ? sizeof(std::string) : size_of(type));
  const auto values = typed_values(type, message);
  if (type == dtype::string && values > 0) { width += std::ssize(message.string_val(static_cast<int>(values) - 1)); }  // that is repeated
  if (values > count) { return damaged(fmt::format("tensor of {} elements with {} values", count, values)); }
  if (values < count && count > repeated_value_limit / width) {
    return damaged(fmt::format("tensor of {} elements with only {} values", count, values));
  }
  return {};
}

}  // namespace

bool is_representable(const tensorflow::TensorProto& message) noexcept {
  const auto type = static_cast<dtype>(message.dtype());
  return type == dtype::string || size_of(type) != 0;
}

result<tensor> read_tensor(const tensorflow::TensorProto& message) {
  const auto type = static_cast<dtype>(message.dtype());
  auto shape = read_shape(message.tensor_shape());
  if (!shape) { return std::move(shape).error(); }
  const auto& content = message.tensor_content();
  if (!content.empty() && type != dtype::string) {
    if (content.size() != static_cast<std::size_t>(shape->count) * size_of(type)) {
      return damaged(fmt::format("tensor of {} {} elements with {} bytes", shape->count, to_string(type), content.size()));
    }
    tensor made(type, std::move(shape->shape));
    std::memcpy(made.bytes().data(), content.data(), content.size());
    return made;
  }
  if (auto amount = check_amount(type, shape->count, message); !amount) { return std::move(amount).error(); }
  tensor made(type, std::move(shape->shape));
  if (type == dtype::string) {
    read_strings(message, made);
  } else {
    read_typed(message, made);
  }
  return made;
}

void write_tensor(const tensor& value, tensorflow::TensorProto& message) {
  message.set_dtype(static_cast<tensorflow::DataType>(value.dtype()));
  auto* const shape = message.mutable_tensor_shape();
  for (const auto size : value.shape()) { shape->add_dim()->set_size(size); }
  if (value.dtype() == dtype::string) {
    for (const auto& text : value.strings()) { message.add_string_val(text); }
  } else {
    message.set_tensor_content(value.bytes().data(), value.bytes().size());
  }
}

}  // namespace stepwell::format
