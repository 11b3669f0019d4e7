// expect: stepwell: this session cannot read a value that this call fetches
// SPDX-License-Identifier: Apache-2.0
// names: fetch_pack<float other_result::*>
// at most: 4000 bytes
#include "support/toy_model.hpp"

#include <stepwell/training/monitored_training_session.hpp>

struct other_result {
  float loss;
};

int main() {
  stepwell::test::adding_model model;
  auto session = stepwell::monitored_training_session(model);
  session.run(stepwell::fetch(&other_result::loss), std::int64_t{1});
}
