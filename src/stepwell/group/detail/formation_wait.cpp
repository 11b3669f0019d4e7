// SPDX-License-Identifier: Apache-2.0
#include "stepwell/group/detail/formation_wait.hpp"

#include "stepwell/base/detail/wait_or_stop.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace stepwell::detail {

void formation_wait::pause(function_ref<std::string()> awaited) {
  if (how_.stop.stop_requested()) { throw cancelled_error("a stop was requested while the group waits for " + awaited()); }
  const auto now = how_.time.now();
  if (now >= how_.until) {
    throw deadline_exceeded_error(
        fmt::format("the group has waited too long for {}; start the missing processes, or raise max_wait_secs", awaited()));
  }
  if (now >= next_log_) {
    if (next_log_ != clock::time_point()) { log_info("the group waits for " + awaited()); }
    next_log_ = now + std::chrono::seconds(10);
  }
  wait_or_stop(how_.time, mutex_, stopped_, std::min(now + pause_, how_.until), how_.stop, [] { return false; });
  pause_ = std::min<clock::duration>(pause_ * 3 / 2, std::chrono::milliseconds(10));
}

}  // namespace stepwell::detail
