// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/readiness.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/base/time_after.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/session/session_manager.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stepwell::detail {

std::optional<std::string> not_initialized(const std::vector<std::string>& names) {
  if (names.empty()) { return std::nullopt; }
  return fmt::format("Variables not initialized: {}", fmt::join(names, ", "));
}

std::string reason_of_refusal(const failed_precondition_error& failure) {
  if (failure.cause().message.find("uninitialized") != std::string::npos) { return failure.cause().message; }
  log_warning(std::string("asking whether the model is ready failed: ") + failure.what());
  throw failure;
}

void throw_not_ready(std::string_view for_what, const std::string& init, const std::string& reason) {
  throw failed_precondition_error(
      fmt::format("Init operations did not make model ready{}{}. {}. {}", for_what.empty() ? "" : " ", for_what, init, reason));
}

void throw_waited(double seconds, const std::string& reason) {
  throw deadline_exceeded_error(fmt::format("Session was not ready after waiting {:g} secs. {}", seconds, reason));
}

std::optional<checkpoint_reader> find_or_wait(session_creation& creation, const restore_from& from, seconds_value recovery_wait) {
  const auto look = [&] { return from.checkpoint_dir.empty() ? creation.find_checkpoint() : find_newest_whole(from.checkpoint_dir); };
  auto found = look();
  if (found || !from.wait_for_checkpoint) { return found; }
  auto& time = *creation.time();
  const auto until = time_after(time.now(), from.max_wait_secs);
  while (!found && time.now() < until) {
    const auto next = std::min(time_after(time.now(), recovery_wait), until);
    if (creation.signals().wait_for_stop(time, next)) {
      if (!creation.signals().stop_requested()) { throw cancelled_error("nobody waits for a checkpoint any more", from.checkpoint_dir); }
      throw cancelled_error("a stop was asked for while waiting for a checkpoint", from.checkpoint_dir);
    }
    found = look();
  }
  return found;
}

}  // namespace stepwell::detail
