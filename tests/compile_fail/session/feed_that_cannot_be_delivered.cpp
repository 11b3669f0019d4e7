// expect: stepwell: this raw session cannot be fed
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/session/monitored_session.hpp>

#include <cstdint>

struct rate {
  friend bool operator==(rate, rate) = default;
};

/// A raw session without `feed`, whose `run` ignores the feeds.
struct deaf_session {
  using result_type = int;
  using outcome_type = stepwell::run_outcome<int>;

  outcome_type run(const auto&) { return {0, 0, 1}; }
  std::int64_t global_step() const { return 0; }
  stepwell::variable_list variables() { return {}; }
};

int main() {
  stepwell::monitored_session session(deaf_session{}, stepwell::feed_fn_hook{[] { return stepwell::feed(rate{}, 0.1F); }});
  session.run();
}
