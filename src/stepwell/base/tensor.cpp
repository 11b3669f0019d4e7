// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/tensor.hpp"

#include "stepwell/base/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace stepwell {

std::string to_string(const tensor_shape& shape) { return to_string(shape_view(shape)); }

std::string to_string(shape_view shape) {
  std::string text = "[";
  for (const auto size : shape) { text.append(text.size() > 1 ? "," : "").append(std::to_string(size)); }
  return text.append("]");
}

tensor::tensor() noexcept = default;
tensor::tensor(stepwell::dtype type, tensor_shape shape) : dtype_(type), shape_(std::move(shape)) {
  const auto count = static_cast<std::size_t>(element_count(shape_));
  if (type == dtype::string) {
    strings_.resize(count);
  } else {
    bytes_.resize(count * size_of(type));
  }
}
tensor::tensor(const tensor&) = default;
tensor::tensor(tensor&&) noexcept = default;
tensor& tensor::operator=(const tensor&) = default;
tensor& tensor::operator=(tensor&&) noexcept = default;
tensor::~tensor() = default;

device_copy::~device_copy() = default;

device_elements::~device_elements() = default;
std::span<const std::byte> device_elements::host_bytes() const { return {}; }
std::shared_ptr<device_copy> device_elements::start_copy_to(std::span<std::byte> /*to*/) const { return nullptr; }
std::shared_ptr<std::byte> device_elements::host_memory(std::size_t /*size*/) const { return nullptr; }
std::shared_ptr<device_elements> device_elements::make_average() const { return nullptr; }
void device_elements::add_to_average(device_elements& /*average*/, double /*weight*/) const {
  throw unimplemented_error("the device of these elements computes no averages");
}
void device_elements::exchange_with_average(device_elements& /*average*/) {
  throw unimplemented_error("the device of these elements computes no averages");
}
void device_elements::copy_strings_to(std::span<std::string> /*to*/) const { throw unimplemented_error("these elements are not strings"); }
void device_elements::copy_strings_from(std::span<const std::string> /*from*/) {
  throw unimplemented_error("these elements are not strings");
}

tensor_view tensor_adapter<tensor>::view(const tensor& value) {
  const auto all = elements(value);
  return {all.dtype, value.shape(), all.bytes};
}
elements_view tensor_adapter<tensor>::elements(const tensor& value) {
  if (size_of(value.dtype()) == 0) {
    throw invalid_argument_error("a tensor of " + std::string(to_string(value.dtype())) +
                                 " cannot be viewed: its elements have no fixed size");
  }
  return {value.dtype(), value.bytes()};
}

bool detail::for_each_block(const lazy_view& values, function_ref<bool(const elements_view&)> see) {
  alignas(64) std::array<std::byte, 16'384> memory;  // NOLINT(cppcoreguidelines-pro-type-member-init): written by `evaluate`
  const std::size_t element_size = size_of(values.dtype);
  const std::size_t most = memory.size() / element_size;
  for (std::size_t first = 0; first < values.size; first += most) {
    const auto block = std::span(memory).first(std::min(most, values.size - first) * element_size);
    values.evaluate(first, block);
    if (!see({values.dtype, block})) { return false; }
  }
  return true;
}

namespace {

/// The codes of a format that do not represent finite numbers.
enum class special_codes {
  ieee,            ///< The highest exponent means infinity if the fraction is zero, and NaN otherwise.
  all_ones_nan,    ///< All bits except the sign set mean NaN. The format has no infinity ("fn").
  minus_zero_nan,  ///< The code of -0 means NaN. The format has no infinity ("fnuz").
  none,
};

/// A floating-point format: a sign bit, then the exponent, then the fraction.
struct float_format {
  int exponent_bits;
  int fraction_bits;
  int bias;
  special_codes special;
};

/// Returns the value of `bits` in the format `form`. @pre All bits above the sign are zero.
float value_of(float_format form, std::uint32_t bits) noexcept {
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::uint32_t sign_bit = 1u << (form.exponent_bits + form.fraction_bits);
  const std::uint32_t size = bits & (sign_bit - 1);
  const float sign = (bits & sign_bit) != 0 ? -1.0f : 1.0f;
  const auto highest = (1 << form.exponent_bits) - 1;
  const auto exponent = static_cast<int>(size >> form.fraction_bits);
  const auto fraction = static_cast<int>(size & ((1u << form.fraction_bits) - 1));
  if (form.special == special_codes::ieee && exponent == highest) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : nan;
  }
  if (form.special == special_codes::all_ones_nan && size == sign_bit - 1) { return nan; }
  if (form.special == special_codes::minus_zero_nan && bits == sign_bit) { return nan; }
  const bool is_subnormal = exponent == 0;
  const auto digits = static_cast<float>(is_subnormal ? fraction : fraction + (1 << form.fraction_bits));
  return sign * std::ldexp(digits, (is_subnormal ? 1 : exponent) - form.bias - form.fraction_bits);
}

/// Returns the low `width` bits as an integer in two's complement.
float signed_value(std::uint8_t bits, int width) noexcept {
  const int whole = 1 << width;
  const int value = bits & (whole - 1);
  return static_cast<float>(value < whole / 2 ? value : value - whole);
}

}  // namespace

float detail::narrow_number(dtype type, std::uint8_t bits) noexcept {
  switch (type) {
    case dtype::float8_e5m2: return value_of({5, 2, 15, special_codes::ieee}, bits);
    case dtype::float8_e4m3fn: return value_of({4, 3, 7, special_codes::all_ones_nan}, bits);
    case dtype::float8_e4m3fnuz: return value_of({4, 3, 8, special_codes::minus_zero_nan}, bits);
    case dtype::float8_e4m3b11fnuz: return value_of({4, 3, 11, special_codes::minus_zero_nan}, bits);
    case dtype::float8_e5m2fnuz: return value_of({5, 2, 16, special_codes::minus_zero_nan}, bits);
    case dtype::float4_e2m1fn: return value_of({2, 1, 1, special_codes::none}, bits & 0x0fu);
    case dtype::int4: return signed_value(bits, 4);
    case dtype::int2: return signed_value(bits, 2);
    case dtype::uint4: return static_cast<float>(bits & 0x0f);
    case dtype::uint2: return static_cast<float>(bits & 0x03);
    default: assert(false); return 0;
  }
}

float detail::half_number(std::uint16_t bits) noexcept { return value_of({5, 10, 15, special_codes::ieee}, bits); }

float detail::bfloat16_number(std::uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace stepwell
