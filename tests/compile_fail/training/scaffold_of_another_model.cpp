// expect: stepwell: the scaffold is for a model of another type
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/training/monitored_training_session.hpp>

#include "support/toy_model.hpp"

int main() {
  stepwell::test::adding_model model;
  auto session = stepwell::monitored_training_session(model, {}, stepwell::scaffold<stepwell::test::counting_model>());
}
