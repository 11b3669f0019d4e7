// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/error.hpp"

#include "stepwell/base/detail/printable.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <iterator>

namespace stepwell {
namespace {

class category final : public std::error_category {
public:
  [[nodiscard]] const char* name() const noexcept override { return "stepwell"; }
  [[nodiscard]] std::string message(int code) const override { return std::string(stepwell::to_string(static_cast<errc>(code))); }
};

/// The code of an error number, and advice for the reader of the message, which may be empty.
struct errno_meaning {
  int value;
  errc code;
  std::string_view advice = {};
};

constexpr errno_meaning errno_meanings[] = {
    {ENOENT, errc::not_found, "check the spelling, and that neither the file nor its directory was removed"},
    {ENOTDIR, errc::not_found, "a part of the path is a file, not a directory; check the path"},
    {EEXIST, errc::already_exists, "choose another name, or remove the existing file or directory"},
    {EACCES, errc::permission_denied, "check the permissions and the owner of the file and of its parent directories"},
    {EPERM, errc::permission_denied, "check the permissions and the owner of the file and of its parent directories"},
    {EROFS, errc::permission_denied, "the file system is mounted read-only; choose another directory, or mount it writable"},
    {ENOSPC, errc::resource_exhausted, "free some space on the disk"},
    {EDQUOT, errc::resource_exhausted, "free some space within the disk quota, or raise the quota"},
    {ENOMEM, errc::resource_exhausted},
    {EMFILE, errc::resource_exhausted, "close files, or raise the limit of open files (ulimit -n)"},
    {ENFILE, errc::resource_exhausted, "close files, or raise the limit of open files (ulimit -n)"},
    {EFBIG, errc::resource_exhausted, "the file would exceed a size limit (ulimit -f, or the limit of the file system)"},
    {EINVAL, errc::invalid_argument},
    {ENAMETOOLONG, errc::invalid_argument, "choose a shorter name"},
    {ELOOP, errc::invalid_argument, "the symbolic links of this path form a loop; check them"},
    {EISDIR, errc::invalid_argument, "this is a directory; give the path of a file"},
    {ENOSYS, errc::unimplemented},
    {ENOLCK, errc::unimplemented, "the file system has no locks"},
    {EOPNOTSUPP, errc::unimplemented},
    {ENOTEMPTY, errc::unknown, "remove the contents of the directory first"},
    {EAGAIN, errc::unavailable},
    {EINTR, errc::unavailable},
    {EBUSY, errc::unavailable},
    {EIO, errc::data_loss, "the device reports an error; check the system log, and do not trust this file"},
    {ECANCELED, errc::cancelled},
    {ETIMEDOUT, errc::deadline_exceeded},
};

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

status status_from_errno(int errno_value, std::string_view tried, std::string place) {
  const auto* const found = std::ranges::find(errno_meanings, errno_value, &errno_meaning::value);
  const auto [value, code, advice] = found == std::end(errno_meanings) ? errno_meaning{errno_value, errc::unknown} : *found;
  const auto reason = std::generic_category().message(errno_value);
  return {code, fmt::format("{}: {}{}{}", tried, reason, advice.empty() ? "" : "; ", advice), std::move(place)};
}

error::error(status cause)
    : std::system_error(make_error_code(cause.code)), cause_(std::move(cause)), text_(detail::printable_lines(cause_.to_string())) {}

void throw_status(status cause) {
  switch (cause.code) {
    case errc::cancelled: throw cancelled_error(std::move(cause));
    case errc::unknown: break;
    case errc::invalid_argument: throw invalid_argument_error(std::move(cause));
    case errc::deadline_exceeded: throw deadline_exceeded_error(std::move(cause));
    case errc::not_found: throw not_found_error(std::move(cause));
    case errc::already_exists: throw already_exists_error(std::move(cause));
    case errc::permission_denied: throw permission_denied_error(std::move(cause));
    case errc::resource_exhausted: throw resource_exhausted_error(std::move(cause));
    case errc::failed_precondition: throw failed_precondition_error(std::move(cause));
    case errc::aborted: throw aborted_error(std::move(cause));
    case errc::out_of_range: throw out_of_range_error(std::move(cause));
    case errc::unimplemented: throw unimplemented_error(std::move(cause));
    case errc::internal: throw internal_error(std::move(cause));
    case errc::unavailable: throw unavailable_error(std::move(cause));
    case errc::data_loss:
    case errc::truncated: throw data_loss_error(std::move(cause));
    case errc::nan_loss: throw nan_loss_error(std::move(cause));
    case errc::stop_iteration: throw stop_iteration(std::move(cause));
  }
  throw unknown_error(std::move(cause));
}

}  // namespace stepwell
