// SPDX-License-Identifier: Apache-2.0
//
// Tests of the table of members that the library looks for in a raw session.
#include "support/catch.hpp"
#include "support/full_raw_session.hpp"
#include "support/plain_raw_session.hpp"

#include <stepwell/creation/scaffold.hpp>
#include <stepwell/protocol/feed.hpp>
#include <stepwell/protocol/hook.hpp>
#include <stepwell/protocol/raw_session.hpp>
#include <stepwell/session/monitored_session.hpp>

#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::full_raw_session;
using sw::test::plain_raw_session;

namespace {

namespace detail = sw::detail;
static_assert(sw::raw_session<plain_raw_session> && sw::raw_session<full_raw_session>);

/// True if `Raw` has all optional members, or none of them.
template<class Raw>
constexpr bool has_all(bool all) {
  for (const bool has : {detail::has_reads_feeds<Raw>, detail::has_takes<Raw>, detail::has_awaits<Raw>, detail::has_fetch_key<Raw>,
                         detail::has_enter<Raw, const int>, detail::has_feed<Raw, const int>, detail::has_pull<Raw>, detail::has_push<Raw>,
                         detail::has_fence<Raw>, detail::has_subject<Raw>, detail::has_close<Raw>, detail::has_is_shared<Raw>,
                         detail::has_exclusive<Raw>, detail::has_read_global_step<Raw>, detail::has_prepare_as_chief<Raw>,
                         detail::has_is_chief_ready<Raw>, detail::has_wait_for_chief<Raw>, detail::has_join<Raw>}) {
    if (has != all) { return false; }
  }
  return true;
}
static_assert(has_all<full_raw_session>(true) && has_all<plain_raw_session>(false));

/// A subject with the members that the defaults of a scaffold call.
struct prepared_subject {
  void init_variables() {}
  void init_local_variables() {}
  [[nodiscard]] std::vector<std::string> uninitialized_variables() const { return {"weights"}; }
  [[nodiscard]] std::vector<std::string> uninitialized_local_variables() const { return {"counts"}; }
};

struct heating_hook {
  auto before_run(auto& /*context*/) const { return sw::run_args{.feed = sw::feed("heat", 20.0)}; }
};

}  // namespace

TEST_CASE("a session calls the optional members of its raw session, and holds what they return", "[hook][raw_session]") {
  std::vector<std::string> calls;
  sw::monitored_session session(full_raw_session(calls), heating_hook{});
  CHECK(session.subject() == "iron");
  calls.clear();
  session.run();
  CHECK(calls == std::vector<std::string>{"enter", "feed", "run", "end of feed", "end of enter"});
  calls.clear();
  static_cast<void>(session.snapshot());
  CHECK(calls == std::vector<std::string>{"exclusive", "pull", "end of pull", "end of exclusive"});
  calls.clear();
  session.close();
  CHECK(calls == std::vector<std::string>{"close"});
}

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
