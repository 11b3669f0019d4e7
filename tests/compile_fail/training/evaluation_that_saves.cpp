// expect: stepwell: an evaluation saves nothing; leave out the hook that saves
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/training/evaluation.hpp>

int main() {
  stepwell::test::counting_model model;
  stepwell::checkpoint_saver_hook saver{{.checkpoint_dir = "run", .save_steps = 1}};
  stepwell::evaluate_once(model, "run/model.ckpt-1", stepwell::no_source{}, {}, std::move(saver));
}
