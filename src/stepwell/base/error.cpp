// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/error.hpp"

#include "stepwell/base/detail/printable.hpp"

#include <utility>

namespace stepwell {

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
