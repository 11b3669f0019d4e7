// expect: stepwell: this hook has variables() but no name to save them under
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

struct counting_hook {
  int runs = 0;

  auto variables() { return stepwell::variables({{"runs", runs}}); }
  void after_run(auto& /*context*/, const auto& /*values*/) { ++runs; }
};

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, counting_hook{});
}
