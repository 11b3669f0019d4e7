// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/run_context.hpp"

#include <utility>

namespace stepwell {

void session_requests::request_stop(stop_reason why) const { requests_->signals()->request_stop_by_hook(std::move(why)); }

void session_requests::request_stop(std::string why) const { request_stop({stop_cause::requested, std::move(why)}); }

void session_requests::log(log_level level, std::string_view message) const {
  const log_scope named(name());
  stepwell::log(level, message);
}

void session_requests::reject_state(std::string why) const { requests_->reject_state(std::move(why)); }

void session_requests::request_rollback(rollback_request asked) const { requests_->request_rollback(std::move(asked)); }

void session_requests::trace_into(std::shared_ptr<trace_recorder> recorder) const noexcept { requests_->trace_into(std::move(recorder)); }

void session_requests::add_work(std::shared_ptr<boundary_work> work) const { requests_->works().add(std::move(work)); }

}  // namespace stepwell
