// expect: stepwell: two scaffolds are given; a session has one
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/training/monitored_training_session.hpp>

#include "support/toy_model.hpp"

int main() {
  stepwell::test::adding_model model;
  using scaffold = stepwell::scaffold<stepwell::test::adding_model>;
  auto session = stepwell::monitored_training_session(model, {}, scaffold(), scaffold());
}
