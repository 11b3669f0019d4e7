// expect: stepwell: a hook with awaited calls needs an asynchronous session
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
