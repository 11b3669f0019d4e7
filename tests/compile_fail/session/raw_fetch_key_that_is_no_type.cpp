// expect: stepwell: fetch_key exists but cannot be used as using fetch_key = TYPE
// SPDX-License-Identifier: Apache-2.0
#include "support/plain_raw_session.hpp"

#include <stepwell/session/monitored_session.hpp>

struct raw : stepwell::test::plain_raw_session {
  static constexpr int fetch_key = 1;
};

int main() { stepwell::monitored_session session(raw{}); }
