// expect: stepwell: the model has no step that takes these arguments
// SPDX-License-Identifier: Apache-2.0
// at most: 4000 bytes
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

int main() {
  stepwell::test::adding_model model;
  stepwell::monitored_session session(model);
  session.run();
}
