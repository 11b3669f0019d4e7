// expect: stepwell: fence exists but cannot be used as update_fence& fence()
// SPDX-License-Identifier: Apache-2.0
#include "support/plain_raw_session.hpp"

#include <stepwell/session/monitored_session.hpp>

struct raw final : stepwell::test::plain_raw_session {
  int fence() { return 1; }
};

int main() { stepwell::monitored_session session(raw{}); }
