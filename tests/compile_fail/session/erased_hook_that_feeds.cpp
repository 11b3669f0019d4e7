// expect: stepwell: any_hook cannot hold a hook that feeds
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>
#include <stepwell/protocol/any_hook.hpp>

using raw = stepwell::model_session<stepwell::test::counting_model>;

struct hook {
  auto before_run(auto&) { return stepwell::run_args{.feed = stepwell::feed(&stepwell::test::counting_model::count, 1)}; }
};

int main() { stepwell::any_hook<raw> erased{hook{}}; }
