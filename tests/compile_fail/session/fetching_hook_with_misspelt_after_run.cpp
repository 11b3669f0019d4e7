// expect: stepwell: before_run of this hook fetches values, but the hook has no after_run(run_context&, const values&)
// SPDX-License-Identifier: Apache-2.0
// names: watching_hook
// at most: 4000 bytes
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

using stepwell::test::adding_model;

struct watching_hook {
  auto before_run(auto& /*context*/) { return stepwell::fetch(&adding_model::result::loss); }
  void after_runs(auto& /*context*/, const auto& /*values*/) {}
};

int main() {
  adding_model model;
  stepwell::monitored_session session(model, watching_hook{});
}
