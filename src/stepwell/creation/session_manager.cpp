// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/session_manager.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

namespace stepwell::detail {

unreadiness check_uninitialized(function_ref<std::vector<std::string>()> ready_op) {
  try {
    const auto names = ready_op();
    return names.empty() ? unreadiness() : fmt::format("Variables not initialized: {}", fmt::join(names, ", "));
  } catch (const failed_precondition_error& failure) {
    if (failure.cause().message.find("uninitialized") != std::string::npos) { return failure.cause().message; }
    log_warning(std::string("could not check whether the model is ready: ") + failure.what());
    throw;
  }
}

void check_ready(std::string_view for_what, bool has_init_op, bool has_init_fn, const unreadiness& reason) {
  if (reason.empty()) { return; }
  throw failed_precondition_error(fmt::format("Init operations did not make model ready{}{}. init_op: {}, init_fn: {}. {}",
                                              for_what.empty() ? "" : " ", for_what, has_init_op ? "given" : "none",
                                              has_init_fn ? "given" : "none", reason));
}

void throw_nothing_to_begin_with() {
  throw failed_precondition_error(
      "Model is not initialized and no init_op or init_fn or local_init_op was given, no checkpoint "
      "was found, and its initial state was not kept; give one of them");
}

namespace {
std::optional<checkpoint_reader> find_or_wait(session_creation& creation, const restore_from& from, seconds_value recovery_wait) {
  const auto look = [&] { return from.checkpoint_dir.empty() ? creation.find_checkpoint() : open_newest(from.checkpoint_dir); };
  auto found = look();
  if (found || !from.wait_for_checkpoint) { return found; }
  auto& time = *creation.time();
  const auto until = time_after(time.now(), from.max_wait_secs);
  while (!found && time.now() < until) {
    const auto next = std::min(time_after(time.now(), recovery_wait), until);
    if (creation.signals().wait_for_stop(time, next)) {
      if (!creation.signals().stop_requested()) { throw cancelled_error("the wait for a checkpoint was cancelled", from.checkpoint_dir); }
      throw cancelled_error("a stop was requested while waiting for a checkpoint", from.checkpoint_dir);
    }
    found = look();
  }
  return found;
}

}  // namespace

bool restored(session_creation& creation, function_ref<variable_list()> variables, const restore_from& from, seconds_value recovery_wait) {
  if (!from.checkpoint_dir.empty() && !from.checkpoint_filename_with_path.empty()) {
    throw invalid_argument_error("checkpoint_dir and checkpoint_filename_with_path cannot both be given");
  }
  if (!from.checkpoint_filename_with_path.empty()) {
    creation.restore(variables(), checkpoint_reader(from.checkpoint_filename_with_path));
    return true;
  }
  if (creation.receives_state()) { return true; }
  const auto found = find_or_wait(creation, from, recovery_wait);
  if (!found) { return creation.restore_unsaved(variables()); }
  creation.restore(variables(), *found);
  return true;
}

namespace {

/// Logs the reason of a wait when it changes, and again after 30 s, because a wait may check its condition every second, for hours.
class wait_log {
public:
  void note(clock::time_point now, const unreadiness& reason) {
    if (reason == last_ && now < next_) { return; }
    log_info("waiting for the session to be ready: " + reason);
    last_ = reason;
    next_ = now + std::chrono::seconds(30);
  }

private:
  unreadiness last_;
  clock::time_point next_;
};

}  // namespace

void wait_until_ready(session_creation& creation, std::optional<seconds_value> max_wait, seconds_value pause,
                      function_ref<unreadiness()> check, function_ref<std::optional<bool>(clock::time_point)> wait_for_chief) {
  auto& time = *creation.time();
  auto& signals = creation.signals();
  const auto until = max_wait ? time_after(time.now(), *max_wait) : clock::time_point::max();
  wait_log log;
  for (;;) {
    const auto reason = check();
    if (reason.empty()) { return; }
    auto goes_on = wait_for_chief(until);
    if (const auto next = time_after(time.now(), pause); !goes_on && next <= until) {
      log.note(time.now(), reason);
      goes_on = !signals.wait_for_stop(time, next);
    }
    if (goes_on.value_or(false)) { continue; }
    if (signals.stop_requested()) { throw cancelled_error("a stop was requested while waiting for the session to be ready: " + reason); }
    if (signals.interrupted()) { throw cancelled_error("the wait for the session to be ready was cancelled: " + reason); }
    throw deadline_exceeded_error(
        fmt::format("Session was not ready after waiting {:g} secs. {}", max_wait ? max_wait->count() : 0, reason));
  }
}

}  // namespace stepwell::detail
