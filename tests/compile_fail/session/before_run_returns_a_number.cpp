// expect: stepwell: before_run must return void, fetch(...), run_args{fetch(...)}, or a std::optional of those
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

struct hook {
  int before_run(auto&) { return 1; }
};

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, hook{});
}
