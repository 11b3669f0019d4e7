// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/group.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/group/detail/launcher.hpp"
#include "stepwell/torch/detail/c10d_engine.hpp"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

namespace stepwell::libtorch {

namespace {

void ignore_broken_pipes() {
  struct sigaction present{};
  if (::sigaction(SIGPIPE, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) { return; }
  present.sa_handler = SIG_IGN;
  static_cast<void>(::sigaction(SIGPIPE, &present, nullptr));
}

void check_address(const launched_process& self) {
  if (!self.host.empty() && self.port != 0) { return; }
  throw invalid_argument_error(
      c10::str("make_group: ", self.launcher, " has started ", self.size, " processes, but the environment variable ",
               self.host.empty() ? "MASTER_ADDR" : "MASTER_PORT",
               " is not set; set MASTER_ADDR to the host of rank 0 and MASTER_PORT to a free port there, the same for all processes"));
}

}  // namespace

std::shared_ptr<group> make_group(const group_options& options) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365);  // Gloo adds the limit to the time
  const auto timeout = std::min(longest, std::chrono::ceil<std::chrono::milliseconds>(stepwell::detail::as_duration(options.timeout_secs)));
  if (!(options.timeout_secs.count() > 0)) {
    throw invalid_argument_error(c10::str("make_group: timeout_secs is ", options.timeout_secs.count(), "; it must be above zero"));
  }
  const stepwell::group_options common{.min_size = options.min_size, .patience_secs = options.patience_secs, .parts = options.parts};
  const auto self = find_launcher();
  if (!self || self->size == 1) { return std::make_shared<group>(make_single_process_engine(), common); }
  check_address(*self);
  ignore_broken_pipes();
  return std::make_shared<group>(detail::make_c10d_engine(*self, timeout), common);
}

}  // namespace stepwell::libtorch
