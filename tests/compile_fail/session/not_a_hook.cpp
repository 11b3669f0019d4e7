// expect: stepwell: this is not a hook
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

struct nothing {};

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model, nothing{});
}
