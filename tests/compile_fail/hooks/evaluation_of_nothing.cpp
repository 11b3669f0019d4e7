// expect: stepwell: the last arguments of evaluate_every are the metrics
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/hooks/evaluate_every.hpp>

int main() {
  stepwell::evaluate_every(100, [](const stepwell::test::adding_model& model) { return model.sum; });
}
