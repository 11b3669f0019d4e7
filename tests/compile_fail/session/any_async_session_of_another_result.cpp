// expect: Result is not the type of the result of the session's steps
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/data/source.hpp>
#include <stepwell/session/any_async_session.hpp>
#include <stepwell/training/async_training_session.hpp>

#include <cstdint>
#include <string>
#include <vector>

int main() {
  stepwell::test::adding_model model;
  using source = stepwell::data::range_source<std::vector<std::int64_t>&>;
  stepwell::any_async_session<std::string, source> session(stepwell::monitored_training_session(stepwell::defer_start, model, {}));
  return session.is_closed() ? 1 : 0;
}
