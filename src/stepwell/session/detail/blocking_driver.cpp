// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/blocking_driver.hpp"

#include "stepwell/base/log.hpp"

#include <string>

namespace stepwell::detail {

namespace {

void execute(session_engine& engine, const action& next) {
  switch (next.type) {
    case action::kind::work: return engine.call(next.what, next.attempt);
    case action::kind::wait:
      static_cast<void>(engine.requests().signals()->wait_for_stop(*engine.requests().facts().time, next.until));
      return;
    case action::kind::yield:
    case action::kind::observe: return;  // a blocking session has nothing to do here
  }
}

}  // namespace

void drive(session_engine& engine, script steps) {
  std::exception_ptr failure;
  while (steps.resume(std::exchange(failure, nullptr))) {
    try {
      execute(engine, steps.pending());
    } catch (...) { failure = std::current_exception(); }
  }
}

void close_or_log(session_engine& engine) noexcept {
  const log_scope named(engine.options().name);
  try {
    drive(engine, engine.protocol().close());
  } catch (const std::exception& failure) {
    log_error(std::string("a session was destroyed without close(), and closing it failed: ") + failure.what());
  } catch (...) { log_error("a session was destroyed without close(), and closing it failed"); }
}

}  // namespace stepwell::detail
