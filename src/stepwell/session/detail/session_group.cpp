// SPDX-License-Identifier: Apache-2.0
//
// The group of a session: its formation before each creation, the state that rank 0 sends, and its end.
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/creation/detail/shared_state.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/io/fenced_directory.hpp"
#include "stepwell/session/detail/session_engine.hpp"

#include <fmt/format.h>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace stepwell {

namespace {

/// Requests a stop of `source` when it is called.
struct stop_of {
  std::stop_source source;
  void operator()() const { std::stop_source(source).request_stop(); }
};

}  // namespace

/// Forms the group with the other processes, unless another process has become the writer of the directory. A stop or an interruption of the creation ends the wait for them.
void session_engine::form_group() {
  if (!options().group) { return; }
  auto& signals = *requests_.signals();
  const std::stop_source source;
  const std::stop_callback on_stop(signals.stop_token(), stop_of{source});
  const std::stop_callback on_interruption(signals.interruption_token(), stop_of{source});
  std::function<void()> check;
  if (const auto fence = std::dynamic_pointer_cast<io::fenced_directory>(options().saver.file_system)) {
    check = [fence] { value_or_throw(fence->check()); };
  }
  options().group->form(
      {.time = requests_.facts().time,
       .stop = source.get_token(),
       .limit = detail::as_duration(options().max_wait_secs),
       .check = std::move(check)},
      {.running_step = [this] { return running_step(); },
       .stop =
           [signals = requests_.signals()](int rank, std::int64_t cause) {
             const auto why = static_cast<stop_cause>(cause);
             signals->request_stop({why, fmt::format("rank {} of the group has ended the training ({})", rank, to_string(why))});
           }});
}

/// Returns the global step before the step that is running. A step that is done is counted before the hooks are called.
std::optional<std::int64_t> session_engine::running_step() const noexcept {
  if (state_.phase() != detail::session_phase::stepping) { return std::nullopt; }
  const auto step = raw_step();
  return step == last_step_done_.load(std::memory_order_relaxed) ? std::optional(step) : std::nullopt;
}

void session_engine::send_state() {
  auto& group = *options().group;
  if (group.size() == 1) { return; }
  group.compare("variables", detail::structure_of(raw_variables()));
  with_values([&] {
    const auto state = compose();
    detail::send_state(group, state.variables, state.global_step);
  });
}

void session_engine::receive_state(session_creation& creation) {
  auto& group = *options().group;
  group.compare("variables", detail::structure_of(raw_variables()));
  creation.restore_received(raw_variables(), detail::receive_state(group));
  push();
  creation.set_starts_at(raw_step());
}

/// Ends the training of all processes after this step.
void session_engine::leave_group() noexcept {
  if (!options().group) { return; }
  const auto cause = why().cause;
  detail::log_failure("while leaving the group",
                      [&] { options().group->leave(static_cast<std::int64_t>(cause == stop_cause::none ? stop_cause::closed : cause)); });
}

}  // namespace stepwell
