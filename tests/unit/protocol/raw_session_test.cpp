// SPDX-License-Identifier: Apache-2.0
//
// Tests of the table of members that the library looks for in a raw session.
#include "support/catch.hpp"
#include "support/plain_raw_session.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/detail/function_ref.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/creation/scaffold.hpp>
#include <stepwell/protocol/feed.hpp>
#include <stepwell/protocol/hook.hpp>
#include <stepwell/protocol/raw_session.hpp>
#include <stepwell/protocol/session_signals.hpp>
#include <stepwell/session/monitored_session.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::plain_raw_session;

namespace {

/// A raw session with every optional member. Records which of them are called.
struct full_raw_session : plain_raw_session {
  static constexpr bool reads_feeds = false;
  template<class... Args>
  static constexpr bool takes = sizeof...(Args) == 0;
  template<class... Args>
  static constexpr bool awaits = false;
  using fetch_key = int;

  explicit full_raw_session(std::vector<std::string>& to) : calls(&to) {}

  auto enter(const auto& /*request*/) { return during("enter"); }
  auto feed(const auto& /*request*/) { return during("feed"); }
  auto pull() { return during("pull"); }
  void push() { calls->emplace_back("push"); }
  auto exclusive() { return during("exclusive"); }
  sw::update_fence& fence() { return *fence_of_all; }
  std::string& subject() { return *trained; }
  void close() { calls->emplace_back("close"); }
  [[nodiscard]] bool is_shared() const { return false; }
  [[nodiscard]] std::int64_t read_global_step() const { return steps; }
  std::int64_t prepare_as_chief(sw::function_ref<bool()> make_ready) {
    const auto preparing = during("prepare_as_chief");
    make_ready();
    return steps;
  }
  [[nodiscard]] bool is_chief_ready() const { return true; }
  bool wait_for_chief(sw::session_signals& /*signals*/, sw::clock& /*time*/, sw::clock::time_point /*until*/) { return true; }
  void join() {}
  auto fed(const auto& /*request*/) { return std::tuple<>(); }
  int step(std::tuple<>& /*fed*/) { return 0; }
  outcome_type count(std::int64_t before, int&& result) { return {result, before, before + 1}; }

  std::vector<std::string>* calls;
  std::unique_ptr<sw::update_fence> fence_of_all = std::make_unique<sw::update_fence>();
  std::unique_ptr<std::string> trained = std::make_unique<std::string>("iron");

private:
  /// Records `name`, and the end of the lifetime of the result.
  [[nodiscard]] std::shared_ptr<void> during(const std::string& name) const {
    calls->push_back(name);
    return std::shared_ptr<void>(nullptr, [to = calls, name](std::nullptr_t) { to->push_back("end of " + name); });
  }
};

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
  CHECK(calls == std::vector<std::string>{"enter", "feed", "end of feed", "end of enter"});
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
