// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/detail/evaluated_value.hpp"

#include "stepwell/base/error.hpp"

#include <fmt/format.h>

namespace stepwell {

void evaluated_value::check_is_measured(std::string_view hook) const {
  if (board_->has_session) { return; }
  throw failed_precondition_error(fmt::format(
      "{}: the metric \"{}\" would never get a value, because the session does not have the evaluate_every hook that measures it; give that "
      "hook to the session, too",
      hook, name()));
}

}  // namespace stepwell
