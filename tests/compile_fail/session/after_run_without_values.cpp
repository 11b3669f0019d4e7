// expect: stepwell: after_run exists but cannot be called as after_run(run_context&, const values&)
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

struct hook {
  void after_run(auto& context) { context.request_stop(); }
};

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, hook{});
}
