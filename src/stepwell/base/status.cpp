// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/status.hpp"

#include <fmt/format.h>
#include <cerrno>

namespace stepwell {
namespace {

class category final : public std::error_category {
public:
  [[nodiscard]] const char* name() const noexcept override { return "stepwell"; }
  [[nodiscard]] std::string message(int code) const override { return std::string(stepwell::to_string(static_cast<errc>(code))); }
};

errc code_of_errno(int value) noexcept {
  switch (value) {
    case ENOENT:
    case ENOTDIR: return errc::not_found;
    case EEXIST: return errc::already_exists;
    case EACCES:
    case EPERM:
    case EROFS: return errc::permission_denied;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG: return errc::resource_exhausted;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR: return errc::invalid_argument;
    case EAGAIN:
    case EINTR:
    case EBUSY: return errc::unavailable;
    case EIO: return errc::data_loss;
    case ECANCELED: return errc::cancelled;
    case ETIMEDOUT: return errc::deadline_exceeded;
    default: return errc::unknown;
  }
}

}  // namespace

const std::error_category& stepwell_category() noexcept {
  static const category instance;
  return instance;
}

std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), stepwell_category()}; }

std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::cancelled: return "cancelled";
    case errc::unknown: return "unknown";
    case errc::invalid_argument: return "invalid_argument";
    case errc::deadline_exceeded: return "deadline_exceeded";
    case errc::not_found: return "not_found";
    case errc::already_exists: return "already_exists";
    case errc::permission_denied: return "permission_denied";
    case errc::resource_exhausted: return "resource_exhausted";
    case errc::failed_precondition: return "failed_precondition";
    case errc::aborted: return "aborted";
    case errc::out_of_range: return "out_of_range";
    case errc::unimplemented: return "unimplemented";
    case errc::internal: return "internal";
    case errc::unavailable: return "unavailable";
    case errc::data_loss: return "data_loss";
    case errc::nan_loss: return "nan_loss";
    case errc::stop_iteration: return "stop_iteration";
    case errc::truncated: return "truncated";
  }
  return "unknown";
}

std::string status::to_string() const {
  const std::string_view separator = place.empty() ? "" : ": ";
  return fmt::format("{}{}{} ({})", place, separator, message, stepwell::to_string(code));
}

status status_from_errno(int errno_value, std::string_view what, std::string place) {
  auto reason = std::generic_category().message(errno_value);
  return {code_of_errno(errno_value), fmt::format("{}: {}", what, reason), std::move(place)};
}

}  // namespace stepwell
