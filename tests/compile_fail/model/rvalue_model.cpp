// expect: stepwell: the session refers to the model; an rvalue model would be destroyed before it
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>

int main() { stepwell::monitored_session session(stepwell::test::counting_model{}); }
