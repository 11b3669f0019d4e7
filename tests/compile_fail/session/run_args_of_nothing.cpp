// expect: stepwell: this run_args requests nothing
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/stepwell.hpp>

struct wants_nothing {
  auto before_run(auto&) { return stepwell::run_args{}; }
};

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, wants_nothing{});
  session.run();
}
