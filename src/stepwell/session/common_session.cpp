// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/common_session.hpp"

#include "stepwell/session/detail/blocking_driver.hpp"

namespace stepwell {

void common_session::request_stop(std::string why) { core().requests().signals()->request_stop({stop_cause::requested, std::move(why)}); }

blocking_session::blocking_session(std::unique_ptr<session_engine> core) : common_session(*core) {
  detail::drive(*core, core->protocol().start());
  static_cast<void>(core.release());  // `leave` deletes it
}

blocking_session& blocking_session::operator=(blocking_session&& other) noexcept {
  if (this == &other) { return *this; }
  leave();
  gate_ = std::exchange(other.gate_, &detail::moved_from_gate());
  throws_failure_of_threads_ = other.throws_failure_of_threads_;
  return *this;
}

stepwell::snapshot blocking_session::snapshot(snapshot_pool pool) {
  core().check_copy();
  return core().copy_state(pool.acquire());
}

std::int64_t blocking_session::checkpoint_now() {
  detail::drive(core(), core().protocol().save_now());
  return core().step_saved_on_request();
}

void blocking_session::close() {
  core().check_process();
  detail::drive(core(), core().protocol().close());
}

void blocking_session::abandon(std::exception_ptr failure) noexcept {
  if (!gate_->is_moved_from()) { core().abandon(std::move(failure)); }
}

void blocking_session::leave() noexcept {
  if (gate_->is_moved_from()) { return; }
  std::unique_ptr<session_engine> engine(&core());
  if (!engine->is_closed() && !engine->owner().is_this_process()) {
    static_cast<void>(engine.release());  // the threads, the locks and the files are those of the parent
  } else if (!engine->is_closed() && std::uncaught_exceptions() > exceptions_at_birth_) {
    engine->abandon(nullptr);
  } else if (!engine->is_closed()) {
    detail::close_or_log(*engine);
  }
}

}  // namespace stepwell
