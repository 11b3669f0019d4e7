// expect: stepwell: is_shared exists but cannot be used as bool is_shared() const
// SPDX-License-Identifier: Apache-2.0
#include "support/plain_raw_session.hpp"

#include <stepwell/session/monitored_session.hpp>

struct raw : stepwell::test::plain_raw_session {
  bool is_shared() { return true; }
  int exclusive() { return 1; }
};

int main() { stepwell::monitored_session session(raw{}); }
