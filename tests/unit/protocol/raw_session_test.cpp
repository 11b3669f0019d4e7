// SPDX-License-Identifier: Apache-2.0
//
// Tests of raw sessions without optional members, and of the members of a subject. For the table of all members, see
// session/raw_session_table_test.cpp.
#include "support/catch.hpp"
#include "support/plain_raw_session.hpp"

#include <stepwell/creation/scaffold.hpp>
#include <stepwell/protocol/raw_session.hpp>
#include <stepwell/session/monitored_session.hpp>

#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::plain_raw_session;

namespace {

static_assert(sw::raw_session<plain_raw_session>);

/// A subject with the members that the defaults of a scaffold call.
struct prepared_subject {
  void init_variables() {}
  void init_local_variables() {}
  [[nodiscard]] std::vector<std::string> uninitialized_variables() const { return {"weights"}; }
  [[nodiscard]] std::vector<std::string> uninitialized_local_variables() const { return {"counts"}; }
};

}  // namespace

TEST_CASE("without optional members, the subject is the raw session itself, which counts as ready", "[hook][raw_session]") {
  sw::monitored_session session(plain_raw_session{});
  CHECK(&session.subject() == &session.raw_session());
  session.run();
  CHECK(session.global_step() == 1);
}

TEST_CASE("the defaults of a scaffold call the members of the subject", "[hook][raw_session]") {
  const prepared_subject subject;
  sw::scaffold<prepared_subject> with;
  with.finalize();
  CHECK(with.init_op());
  CHECK(with.local_init_op());
  CHECK(with.ready_for_local_init_op()(subject) == std::vector<std::string>{"weights"});
  CHECK(with.ready_op()(subject) == std::vector<std::string>{"weights", "counts"});
}
