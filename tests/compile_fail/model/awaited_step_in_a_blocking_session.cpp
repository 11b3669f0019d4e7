// expect: stepwell: the model's step is awaited; such a model needs an asynchronous session, see defer_start
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/async.hpp>

struct model {
  boost::asio::awaitable<int> step() { co_return 1; }
  stepwell::variable_list variables() { return stepwell::variables({}); }
};

int main() {
  model trained;
  stepwell::monitored_session session(trained);
  session.run();
}
