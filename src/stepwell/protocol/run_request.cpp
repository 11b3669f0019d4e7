// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/run_request.hpp"

#include "stepwell/base/error.hpp"

namespace stepwell::detail {

void throw_fed_twice(bool by_user, const std::string& key) {
  throw failed_precondition_error((by_user ? "Same tensor is fed by a SessionRunHook and user." : "Same tensor is fed by two hooks.") +
                                  (" Conflict(s): [" + key + "]. Feed it once"));
}

}  // namespace stepwell::detail
