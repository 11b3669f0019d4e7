// expect: stepwell: wants exists but cannot be called as bool wants(run_context&) noexcept
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/async.hpp>

struct hook {
  bool wants(auto&) { return true; }
  boost::asio::awaitable<void> after_run(auto&, const auto&) { co_return; }
};

int main() {
  stepwell::test::counting_model model;
  stepwell::async_monitored_session session(stepwell::session_settings{}, model, hook{});
}
