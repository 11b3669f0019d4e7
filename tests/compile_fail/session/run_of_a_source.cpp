// expect: stepwell: run takes one batch, not a source of batches: write session.next(source) for one step
// SPDX-License-Identifier: Apache-2.0
// names: stepwell::test::adding_model
// at most: 4000 bytes
#include "support/toy_model.hpp"

#include <stepwell/data/source.hpp>
#include <stepwell/training/monitored_training_session.hpp>

int main() {
  stepwell::test::adding_model model;
  auto batches = stepwell::data::source(std::vector<std::int64_t>{1, 2});
  auto session = stepwell::monitored_training_session(model);
  session.run(batches);
}
