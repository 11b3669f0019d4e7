// expect: stepwell: a rate is set in a number of the model: &model::rate, a callable that takes the model and returns a reference
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <functional>

struct line {
  double rate = 1;
  double loss = 0;

  void step() {}
  stepwell::variable_list variables() { return stepwell::variables({{"rate", rate}}); }
};

int main() {
  line model;
  stepwell::monitored_session session(model, stepwell::reduce_on_plateau_hook{{}, std::ref(model.rate), &line::loss});
  session.run();
}
