// expect: stepwell: end exists but cannot be called as end(session&)
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

struct hook final {
  void begin() {}
  void end() {}
};

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, hook{});
}
