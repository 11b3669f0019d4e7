// expect: stepwell: the session refers to the model; an rvalue model would be destroyed before it
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/training/monitored_training_session.hpp>

int main() { auto session = stepwell::monitored_training_session(stepwell::test::counting_model{}); }
