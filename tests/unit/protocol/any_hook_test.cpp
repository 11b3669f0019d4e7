// SPDX-License-Identifier: Apache-2.0
//
// Tests that a hook inside `any_hook` behaves like the same hook without it: it receives the same calls, its requests
// take effect, and its state is saved.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"
#include "support/trace_reading.hpp"

#include <stepwell/base/detail/type_key.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/protocol/any_hook.hpp>
#include <stepwell/protocol/hook.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
using test::adding_model;
using raw = sw::model_session<adding_model>;
using erased = sw::any_hook<raw>;

namespace {

static_assert(sw::hook<erased, raw> && sw::hook<sw::any_hooks<raw>, raw>);
static_assert(std::is_nothrow_move_constructible_v<erased> && !std::is_copy_constructible_v<erased>);
static_assert(sw::phase_of<erased>() == sw::hook_phase::user && sw::phase_of<sw::any_hooks<raw>>() == sw::hook_phase::user);
static_assert(sw::phase_of<sw::any_hook<raw, sw::hook_phase::guard>>() == sw::hook_phase::guard);
static_assert(sw::phase_of<sw::any_hooks<raw, sw::hook_phase::observe>>() == sw::hook_phase::observe);
static_assert(!sw::hook<sw::any_hook<sw::model_session<test::counting_model>>, raw>);  // for a different raw session

/// A hook with every point. It fetches values in every second run.
struct full_hook {
  std::string& story;
  std::string name = "";
  std::string fails_at = {};

  void note(const std::string& what) {
    story += name + what + " ";
    if (what == fails_at) { throw std::runtime_error(name + what + " fails"); }
  }
  void begin() { note("begin"); }
  void after_create_session(auto& session, auto&) { note("create" + std::to_string(session.global_step())); }
  auto before_run(auto& context) {
    note("before");
    const bool wants = context.global_step() % 2 == 0;
    return wants ? std::optional(sw::fetch(&adding_model::result::loss,
                                           [this](const adding_model& model) { return name.size() + model.weights.size(); }))
                 : std::nullopt;
  }
  void after_run(auto&, const auto& values) {
    if (!values) { return note("after"); }
    const auto& [loss, size] = values;
    note("after" + std::to_string(static_cast<int>(loss)) + "," + std::to_string(size));
  }
  void on_error(auto&, const std::exception_ptr&) { note("error"); }
  void end(auto&) { note("end"); }
};

/// A hook that keeps a counter across restarts.
struct counting_hook {
  std::string name = "counting";
  int runs = 0;

  void after_run(auto&, const auto&) { ++runs; }
  sw::variable_list variables() { return sw::variables({{"runs", runs}}); }
  std::string state_name() const { return name; }
};

struct asking_hook {
  std::int64_t time_out;
  sw::run_options* seen = nullptr;

  auto before_run(auto&) {
    return sw::run_args{.fetch = sw::fetch(&adding_model::sum), .options = sw::run_options{.timeout_in_ms = time_out}};
  }
  void after_run(auto&, const auto& values) {
    if (seen != nullptr) { *seen = values.options(); }
  }
};

/// Runs a session with these hooks: three runs, one of which fails, and a close.
template<class... Hooks>
void live(Hooks... hooks) {
  adding_model model;
  sw::monitored_session session(model, std::move(hooks)...);
  session.run(1);
  session.run(2);
  model.before = [](std::int64_t) { throw std::runtime_error("bad batch"); };
  CHECK_THROWS_AS(session.run(3), std::runtime_error);
  model.before = nullptr;
  session.run(4);
  session.close();
}

std::vector<std::string> names_in(const sw::variable_list& all) {
  std::vector<std::string> names;
  for (const auto& variable : all) { names.emplace_back(variable.name()); }
  return names;
}

}  // namespace

TEST_CASE("an erased hook is called at every point as if it were not erased, with the values it fetched", "[session][any_hook]") {
  std::string plain;
  std::string same;
  std::string referred;
  live(full_hook{plain});
  live(erased(full_hook{same}));
  full_hook own{referred};
  live(erased(std::ref(own)));
  CHECK(plain == "begin create0 before after1,3 before after before error before after7,3 end ");
  CHECK(same == plain);
  CHECK(referred == plain);
}

TEST_CASE("an erased hook that was moved from is refused when a session is created", "[session][any_hook]") {
  std::string calls;
  erased hook(full_hook{calls});
  const auto moved = std::move(hook);
  const auto message = ContainsSubstring("any_hook: this object was moved from");
  CHECK_THROWS_WITH(live(std::ref(hook)), message);  // NOLINT(bugprone-use-after-move)
  CHECK_THROWS_WITH(live(std::move(hook)), message);
}

TEST_CASE("a list of erased hooks is as if each had been given to the session at its place", "[session][any_hook]") {
  std::string plain;
  std::string listed;
  std::vector<erased> list;
  for (const auto* name : {"b", "c"}) { list.emplace_back(full_hook{listed, name}); }
  live(full_hook{plain, "a"}, full_hook{plain, "b"}, full_hook{plain, "c"}, full_hook{plain, "d"});
  live(full_hook{listed, "a"}, sw::any_hooks<raw>(std::move(list)), full_hook{listed, "d"});
  CHECK(listed == plain);
}

TEST_CASE("D-20 end and on_error of every hook of a list are called, also after one that throws", "[session][any_hook]") {
  test::log_capture log;
  std::string story;
  sw::any_hooks<raw> hooks;
  const std::string at = GENERATE("end", "error");
  hooks.add(erased(full_hook{story, "a", at}));
  hooks.add(erased(full_hook{story, "b", at}));
  adding_model model;
  sw::monitored_session session(model, std::move(hooks));
  if (at == "end") {
    CHECK_THROWS_WITH(session.close(), "aend fails");
    CHECK(log.contains(sw::log_level::error, "bend fails"));
  } else {
    session.abandon(std::make_exception_ptr(std::runtime_error("the body failed")));
    CHECK(log.contains(sw::log_level::error, "aerror fails"));
  }
  CHECK(story.find("b" + at) != std::string::npos);
}

TEST_CASE("hooks are loaded while the program runs, and what they ask is done", "[session][any_hook]") {
  test::log_capture log;
  sw::any_hooks<raw> hooks;
  for (const std::string wanted : {"stop", "nan"}) {
    if (wanted == "stop") { hooks.add(sw::stop_at_step_hook{{.last_step = 3}}); }
    if (wanted == "nan") { hooks.add(erased(sw::nan_tensor_hook{&adding_model::result::loss})); }
  }
  CHECK(hooks.hooks()[0].name() == sw::type_name<sw::stop_at_step_hook>());
  adding_model model;
  sw::monitored_session session(model, std::move(hooks));
  while (!session.should_stop()) { session.run(1); }
  CHECK(session.global_step() == 3);
  CHECK(session.stop_reason().cause == sw::stop_cause::last_step);

  model.sum = std::numeric_limits<float>::quiet_NaN();
  sw::monitored_session bad(model, erased(sw::nan_tensor_hook{&adding_model::result::loss}));
  CHECK_THROWS_AS(bad.run(1), sw::nan_loss_error);
}

TEST_CASE("state goes through under the hook's own name, and two of one name are refused", "[session][any_hook]") {
  sw::hook_set<raw, erased, erased, sw::any_hooks<raw>> hooks(erased(counting_hook{}), erased(sw::stop_at_step_hook{{.last_step = 3}}),
                                                              sw::any_hooks<raw>([] {
                                                                std::vector<erased> list;
                                                                list.emplace_back(counting_hook{"other"});
                                                                return list;
                                                              }()));
  CHECK(names_in(hooks.state()) == std::vector<std::string>{"stepwell/hook/counting/runs", "stepwell/hook/other/runs"});
  adding_model model;
  CHECK_THROWS_AS(sw::monitored_session(model, erased(counting_hook{}), counting_hook{}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::monitored_session(model, erased(counting_hook{}), sw::any_hook<raw, sw::hook_phase::guard>(counting_hook{})),
                  sw::invalid_argument_error);
}

TEST_CASE("RUN-7 options of erased hooks are merged with those of the others", "[session][any_hook]") {
  sw::run_options seen;
  adding_model model;
  sw::any_hooks<raw> hooks;
  hooks.add(erased(asking_hook{30}));
  hooks.add(erased(asking_hook{40, &seen}));
  sw::monitored_session session(model, std::move(hooks), erased(asking_hook{20}));
  session.run(sw::run_options{.inter_op_thread_pool = 2}, 1);
  CHECK(seen.timeout_in_ms == 40);
  CHECK(seen.inter_op_thread_pool == 2);
}

TEST_CASE("the hook inside can be had back, by its type", "[session][any_hook]") {
  adding_model model;
  sw::monitored_session session(model, erased(counting_hook{}));
  session.run(1);
  session.close();
  REQUIRE(session.hook<erased>().get_if<counting_hook>() != nullptr);
  CHECK(session.hook<erased>().get_if<counting_hook>()->runs == 1);
  CHECK(session.hook<erased>().get_if<full_hook>() == nullptr);
}

TEST_CASE("an erased hook that traces is heeded, and erased hooks are spans of their own", "[session][any_hook]") {
  struct tracing_hook {
    std::shared_ptr<sw::trace_recorder> recorder;
    auto before_run(sw::run_context<raw>& context) {
      context.trace_into(recorder);
      return sw::run_args{.options = sw::run_options{.trace_level = sw::trace_level::full}};
    }
  };
  std::string story;
  const test::traced with;
  std::vector<erased> list;
  list.emplace_back(tracing_hook{with.recorder});
  list.emplace_back(full_hook{story});
  adding_model model;
  sw::monitored_session session(model, sw::any_hooks<raw>(std::move(list)));
  session.run(1);
  const auto kinds = test::kinds_of(with.recorder->take());
  const auto name = std::string(sw::type_name<full_hook>());
  CHECK(kinds.contains("hook " + name + " before_run"));
  CHECK(kinds.contains("run"));
  CHECK(kinds.contains("hook " + name + " after_run"));
}
