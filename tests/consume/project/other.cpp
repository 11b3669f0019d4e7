// SPDX-License-Identifier: Apache-2.0
//
// A second translation unit with a session of the same types. It shows that the headers cause no duplicate definitions.
#include "shaken.hpp"

double loss_after(std::int64_t steps) {
  shaken model;
  double last = 0;
  auto session = sw::monitored_session(model, sw::stop_at_step_hook{{.last_step = steps}});
  for (const auto& step : session.steps(std::vector<double>(1000, 1.0))) { last = step.value.loss; }
  session.close();
  return last;
}
