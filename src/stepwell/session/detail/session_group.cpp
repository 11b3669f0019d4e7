// SPDX-License-Identifier: Apache-2.0
//
// The group of a session: its formation before each creation, the state that rank 0 sends, and its end.
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/creation/detail/shared_state.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/io/fenced_directory.hpp"
#include "stepwell/protocol/run_ending.hpp"
#include "stepwell/session/detail/session_engine.hpp"
#include "stepwell/summary/writer.hpp"

#include <fmt/format.h>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

namespace stepwell {

namespace {

/// Returns true if a process ends for a reason that the others do not find themselves, so that they must end, too.
bool is_request(stop_cause cause) noexcept {
  switch (cause) {
    case stop_cause::last_step:
    case stop_cause::end_of_data:
    case stop_cause::nan:
    case stop_cause::no_progress: return false;
    default: return true;
  }
}

}  // namespace

/// Forms the group with the other processes, unless another process has become the writer of the directory. A stop or an interruption of the creation ends the wait for them.
void session_engine::form_group() {
  if (!options().group) { return; }
  auto& signals = *requests_.signals();
  std::stop_source source;
  const auto stop = [&source] { source.request_stop(); };
  const std::stop_callback on_stop(signals.stop_token(), stop);
  const std::stop_callback on_interruption(signals.interruption_token(), stop);
  const auto request_stop = [signals = requests_.signals()](int rank, std::int64_t cause) {
    const auto why = static_cast<stop_cause>(cause);
    signals->request_stop({why, fmt::format("rank {} of the group has ended the training ({})", rank, to_string(why))});
  };
  options().group->form({.time = requests_.facts().time,
                         .stop = source.get_token(),
                         .until = detail::time_after(requests_.facts().time->now(), options().max_wait_secs),
                         .check = check_of_formation(),
                         .owner = this},
                        {.running_step = [this] { return running_step(); },
                         .stop = request_stop,
                         .finish_without =
                             [request_stop](int rank, std::int64_t cause) {
                               if (is_request(static_cast<stop_cause>(cause))) { request_stop(rank, cause); }
                             }});
}

/// Returns a function that ends the wait for the other processes early: that of rank 0 if another process has taken over its directory, that of
/// the other ranks if rank 0 has ended the training since they lost it.
std::function<void()> session_engine::check_of_formation() {
  const auto& files = options().saves.saver.file_system;
  if (!is_group_worker()) {
    const auto fence = std::dynamic_pointer_cast<io::fenced_directory>(files);
    return fence ? [fence] { value_or_throw(fence->check()); } : std::function<void()>();
  }
  if (directory_of_chief_.empty()) { return {}; }
  return [this, files = files ? files : io::posix_file_system(), next = clock::time_point()]() mutable {
    const auto now = requests_.facts().time->now();
    if (now < next) { return; }
    next = now + std::chrono::milliseconds(100);
    detail::log_failure("while looking for the end of the training", [&] {
      const auto ended = run_ended(*files, directory_of_chief_);
      const bool is_of_this_run = ended && ended->global_step > starts_at();  // rank 0 removes the file only if it saves
      if (!is_of_this_run || ended->how == session_ending::failed) { return; }
      requests_.signals()->request_stop({ended->why.cause, fmt::format("rank 0 of the group has ended the training at step {}: {}",
                                                                       ended->global_step, ended->why.text)});
    });
  };
}

bool session_engine::ends_in_formation(const std::exception_ptr& failure) noexcept {
  if (!options().group || !requests_.signals()->stop_requested() || detail::kind_of(failure) != errc::cancelled) { return false; }
  forget_failure();
  return true;
}

/// Returns the global step before the step that is running. A step that is done is counted before the hooks are called.
/// @errors `failed_precondition_error` in `before_run` of a hook: if another process has ended, its last sum belongs to the sum of the step.
std::optional<std::int64_t> session_engine::running_step() const {
  if (state_.phase() != detail::session_phase::stepping) { return std::nullopt; }
  if (is_before_step_) {
    throw failed_precondition_error(
        "a hook cannot use the group in before_run, because another process may have ended the training; use it in after_run");
  }
  const auto step = raw_step();
  return step == last_step_done_.load(std::memory_order_relaxed) ? std::optional(step) : std::nullopt;
}

void session_engine::send_state() {
  auto& group = *options().group;
  if (group.size() == 1) { return; }
  group.compare("variables", detail::structure_of(raw_variables()));
  share_directory();
  with_values([&] {
    const auto state = compose();
    detail::send_state(group, state.variables, state.global_step);
  });
  if (const auto events = requests_.facts().event_writer()) {
    events->add_session_log(format::session_status::unspecified, raw_step(), {}, group.description());
  }
}

void session_engine::receive_state(session_creation& creation) {
  auto& group = *options().group;
  group.compare("variables", detail::structure_of(raw_variables()));
  share_directory();
  creation.restore_received(raw_variables(), detail::receive_state(group));
  push();
  creation.set_starts_at(raw_step());
}

/// Tells the other processes the directory of rank 0, for `check_of_formation`.
void session_engine::share_directory() {
  const auto own = std::as_bytes(std::span(options().checkpoint_dir));
  std::vector<std::byte> shared(own.begin(), own.end());
  options().group->share(shared);
  directory_of_chief_.assign(reinterpret_cast<const char*>(shared.data()), shared.size());
}

/// Ends the training of all processes after this step.
void session_engine::leave_group() noexcept {
  if (!options().group) { return; }
  const auto cause = why().cause;
  detail::log_failure("while leaving the group",
                      [&] { options().group->leave(static_cast<std::int64_t>(cause == stop_cause::none ? stop_cause::closed : cause)); });
}

}  // namespace stepwell
