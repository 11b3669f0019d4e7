// expect: the result type of an async function must be default constructible
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/base/variable.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/async_session.hpp>

#include <boost/asio/use_future.hpp>

struct number {
  explicit number(int given) : value(given) {}
  int value;
};
struct model {
  number step() { return number(1); }
  stepwell::variable_list variables() { return {}; }
};

int main() {
  model subject;
  stepwell::async_monitored_session<stepwell::model_session<model>> session(stepwell::training_options{}, subject);
  session.async_run(boost::asio::use_future);
}
