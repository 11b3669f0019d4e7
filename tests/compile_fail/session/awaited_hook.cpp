// expect: stepwell: a hook point returns an awaitable, but hooks are not awaited
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/async.hpp>

struct hook {
  boost::asio::awaitable<void> after_run(auto&, const auto&) { co_return; }
};

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, hook{});
}
