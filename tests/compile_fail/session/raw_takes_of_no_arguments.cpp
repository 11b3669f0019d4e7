// expect: stepwell: takes exists but cannot be used as template<class... Args> static constexpr bool takes
// SPDX-License-Identifier: Apache-2.0
#include "support/plain_raw_session.hpp"

#include <stepwell/session/monitored_session.hpp>

struct raw : stepwell::test::plain_raw_session {
  static constexpr bool takes = true;
};

int main() { stepwell::monitored_session session(raw{}); }
