// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/status.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <string>
#include <string_view>
#include <utility>

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

errc call_status::code() const noexcept { return code_of(functions().get_code(status_)); }

void call_status::fail(std::string_view tried, std::string_view on, std::string_view more) const {
  std::string text(tried);
  if (!on.empty()) { text.append(" ").append(on); }
  text.append(": ").append(message());
  if (!more.empty()) { text.append("; ").append(more); }
  throw_status(status(code(), std::move(text)));
}

}  // namespace stepwell::tensorflow::detail
