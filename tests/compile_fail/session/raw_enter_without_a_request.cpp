// expect: stepwell: enter exists but cannot be used as auto enter(const auto& request)
// SPDX-License-Identifier: Apache-2.0
#include "support/plain_raw_session.hpp"

#include <stepwell/session/monitored_session.hpp>

struct raw : stepwell::test::plain_raw_session {
  int enter() { return 1; }
};

int main() {
  stepwell::monitored_session session(raw{});
  session.run();
}
