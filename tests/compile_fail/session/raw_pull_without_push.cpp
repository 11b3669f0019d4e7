// expect: stepwell: a raw session with pull needs push
// SPDX-License-Identifier: Apache-2.0
#include "support/plain_raw_session.hpp"

#include <stepwell/session/monitored_session.hpp>

struct raw : stepwell::test::plain_raw_session {
  void pull() {}
  void psuh() {}
};

int main() { stepwell::monitored_session session(raw{}); }
