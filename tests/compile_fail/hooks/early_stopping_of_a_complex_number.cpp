// expect: stepwell: this value must be a number, a tensor with one element, or a std::optional of one of these; if it is complex
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <complex>

struct wave {
  std::complex<double> amplitude = 1;
  double weight = 0;

  void step() {}
  stepwell::variable_list variables() { return stepwell::variables({{"weight", weight}}); }
};

int main() {
  wave model;
  stepwell::monitored_session session(model, stepwell::early_stopping_hook{{.patience = 1}, &wave::amplitude});
  session.run();
}
