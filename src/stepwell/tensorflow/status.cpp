// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/status.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <string>
#include <string_view>

namespace stepwell::tensorflow::detail {
namespace {

constexpr c::code ok_code = 0;
constexpr c::code unauthenticated = 16;

/// Codes 1 to 15 have the same numbers in both.
errc code_of(c::code code) {
  if (code == unauthenticated) { return errc::permission_denied; }
  return code >= static_cast<int>(errc::cancelled) && code <= static_cast<int>(errc::data_loss) ? static_cast<errc>(code) : errc::unknown;
}

}  // namespace

call_status::call_status() : status_(functions().new_status()) {}
call_status::~call_status() { functions().delete_status(status_); }

bool call_status::ok() const noexcept { return functions().get_code(status_) == ok_code; }
std::string call_status::message() const { return functions().message(status_); }

void call_status::fail(std::string_view tried, std::string_view on) const {
  std::string text(tried);
  if (!on.empty()) { text.append(" ").append(on); }
  throw_status(status(code_of(functions().get_code(status_)), text + ": " + message()));
}

}  // namespace stepwell::tensorflow::detail
