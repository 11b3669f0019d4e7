// expect: stepwell: close exists but cannot be used as void close()
// SPDX-License-Identifier: Apache-2.0
#include "support/plain_raw_session.hpp"

#include <stepwell/session/monitored_session.hpp>

struct raw : stepwell::test::plain_raw_session {
  void close(int /*code*/) {}
};

int main() { stepwell::monitored_session session(raw{}); }
