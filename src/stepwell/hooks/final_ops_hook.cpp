// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/final_ops_hook.hpp"

#include "stepwell/base/log.hpp"

namespace stepwell::detail {

void warn_final_ops_read_input() {
  log_warning(
      "an out_of_range_error or stop_iteration is thrown by the code in final_ops_hook. This typically means that the "
      "final ops have a dependency back to some input source, which should not happen: they should read what the steps "
      "have left in the model, rather than another batch");
}

}  // namespace stepwell::detail
