// expect: stepwell: the function of this hook returns an awaitable, but hooks are not awaited
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/async.hpp>

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, stepwell::every_n_steps(2, []() -> boost::asio::awaitable<void> { co_return; }));
}
