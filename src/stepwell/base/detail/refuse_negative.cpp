// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/refuse_negative.hpp"

#include "stepwell/base/error.hpp"

#include <fmt/format.h>

namespace stepwell::detail {
namespace {

template<class Number>
[[noreturn]] void refuse(std::string_view option, Number value) {
  throw invalid_argument_error(fmt::format("{} is {}; it cannot be negative, give 0 or more", option, value));
}

}  // namespace

void throw_negative(std::string_view option, std::int64_t value) { refuse(option, value); }
void throw_negative(std::string_view option, double value) { refuse(option, value); }

}  // namespace stepwell::detail
