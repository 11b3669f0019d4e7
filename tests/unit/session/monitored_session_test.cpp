// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/recording_hook.hpp"
#include "support/toy_model.hpp"

#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/training_session.hpp>

#include <cstdint>
#include <functional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::counting_model;
using sw::test::recording_hook;

namespace {

struct loss_hook {
  std::vector<float> seen = {};
  auto before_run(auto&) { return sw::fetch(&adding_model::result::loss, &adding_model::weights); }
  void after_run(auto&, const auto& values) {
    const auto& [loss, weights] = values;
    static_assert(std::is_same_v<decltype(values.template get<0>()), const float&>, "read by reference, not copied");
    seen.push_back(loss + weights[0]);
  }
};

struct every_other_hook {
  std::vector<float> seen = {};
  auto before_run(auto& context) {
    return context.global_step() % 2 == 0 ? std::optional(sw::fetch(&adding_model::result::loss)) : std::nullopt;
  }
  void after_run(auto&, const auto& values) {
    if (values) { seen.push_back(values.value()); }
  }
};

template<sw::hook_phase Phase>
struct phase_hook {
  static constexpr auto phase = Phase;
  std::vector<std::string>* story;
  std::string name;
  void after_run(auto&, const auto&) { story->push_back(name); }
  void end(auto&) { story->push_back("end " + name); }
};

struct throwing_hook {
  int at;
  void after_run(auto& context, const auto&) {
    if (context.global_step() == at) { throw sw::out_of_range_error("a nested loop ran out of data"); }
  }
};

const std::vector<std::int64_t> one_to_five = {1, 2, 3, 4, 5};

}  // namespace

static_assert(sw::training_session<sw::monitored_session<sw::model_session<adding_model>>>);
static_assert(!sw::training_session<adding_model>);
static_assert(!std::is_copy_constructible_v<sw::monitored_session<sw::model_session<adding_model>>>);
static_assert(std::is_move_constructible_v<sw::monitored_session<sw::model_session<adding_model>>>);

TEST_CASE("a session steps over a source until its end and counts the steps", "[session]") {
  adding_model model;
  sw::monitored_session session(model);
  std::vector<std::int64_t> steps;
  for (const auto& step : session.steps(one_to_five)) { steps.push_back(step.global_step); }
  CHECK(steps == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  CHECK(model.sum == 15);
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  CHECK(session.stop_reason().text == "the source has no more batches");
  CHECK_FALSE(session.should_stop());  // more data may come
  for (const auto& step : session.steps(one_to_five)) { steps.push_back(step.global_step); }
  CHECK(session.global_step() == 10);
  session.close();
  CHECK(session.should_stop());
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);  // close does not change the reason
}

TEST_CASE("a source given as an rvalue lives in its range of steps", "[session]") {
  struct three {
    std::int64_t next = 1;
    const std::int64_t* peek() { return next <= 3 ? &next : nullptr; }
    void advance() { ++next; }
  };
  adding_model model;
  sw::monitored_session session(model);
  for ([[maybe_unused]] const auto& step : session.steps(three{})) {}
  CHECK(model.sum == 6);
}

TEST_CASE("a model that needs no data steps until a stop is requested", "[session]") {
  counting_model model;
  sw::monitored_session session(model);
  for (const auto& step : session.steps()) {
    if (step.value == 3) { session.request_stop("three is enough"); }
  }
  CHECK(model.count == 3);
  CHECK(session.stop_reason().cause == sw::stop_cause::requested);
  CHECK(session.stop_reason().text == "three is enough");
}

TEST_CASE("steps pipe through std::views and run no further than they are looked at", "[session]") {
  adding_model model;
  sw::monitored_session session(model);
  std::vector<float> losses;
  for (const float loss :
       session.steps(one_to_five) | std::views::take(2) | std::views::transform([](const auto& step) { return step.value.loss; })) {
    losses.push_back(loss);
  }
  CHECK(losses == std::vector<float>{1, 3});
  CHECK(session.global_step() == 2);
}

TEST_CASE("HOOK-1 CLOSE-1 CLOSE-3 D-15 hooks are called in the order given: begin, create, before, after, end", "[session][hook_set]") {
  adding_model model;
  std::vector<std::string> story;
  {
    sw::monitored_session session(model, recording_hook{&story, "a "}, recording_hook{&story, "b "});
    session.run(std::int64_t{7});
    session.close();
    session.close();  // has no effect
  }
  CHECK(story == std::vector<std::string>{"a begin", "b begin", "a create 0", "b create 0", "a before 0", "b before 0", "a after 1",
                                          "b after 1", "a end 1", "b end 1"});
}

TEST_CASE("D-1 hooks are sorted by phase and keep their order within one", "[session][hook_set]") {
  adding_model model;
  std::vector<std::string> story;
  sw::monitored_session session(model, phase_hook<sw::hook_phase::persist>{&story, "persist"},
                                phase_hook<sw::hook_phase::user>{&story, "user 1"}, phase_hook<sw::hook_phase::guard>{&story, "guard"},
                                phase_hook<sw::hook_phase::observe>{&story, "observe"},
                                phase_hook<sw::hook_phase::average>{&story, "average"}, phase_hook<sw::hook_phase::user>{&story, "user 2"});
  session.run(std::int64_t{1});
  CHECK(story == std::vector<std::string>{"observe", "user 1", "user 2", "guard", "average", "persist"});
  story.clear();
  session.close();
  CHECK(story == std::vector<std::string>{"end observe", "end user 1", "end user 2", "end guard", "end average", "end persist"});
}

TEST_CASE("HOOK-3 each hook sees exactly the values it asked for, and none when it asked for none", "[session][fetch]") {
  adding_model model;
  sw::monitored_session session(model, loss_hook{}, every_other_hook{});
  for ([[maybe_unused]] const auto& step : session.steps(one_to_five)) {}
  CHECK(session.hook<loss_hook>().seen == std::vector<float>{3, 6, 10, 15, 21});
  session.close();
  CHECK(session.hook<every_other_hook>().seen == std::vector<float>{1, 6, 15});
}

TEST_CASE("a hook given by reference stays the caller's", "[session][hook_set]") {
  adding_model model;
  loss_hook mine;
  sw::monitored_session session(model, std::ref(mine));
  session.run(std::int64_t{1});
  CHECK(mine.seen.size() == 1);
  CHECK(&session.hook<loss_hook>() == &mine);
}

TEST_CASE("run returns what step returned, and the values fetched", "[session][fetch]") {
  adding_model model;
  sw::monitored_session session(model);
  CHECK(session.run(std::int64_t{4}).loss == 4);
  const auto [loss, weights, twice] = session.run(
      sw::fetch(&adding_model::result::loss, &adding_model::weights, [](const adding_model& m) { return 2 * m.sum; }), std::int64_t{2});
  CHECK(loss == 6);
  CHECK(weights == std::vector<float>{3, 4, 5});
  CHECK(twice == 12);
}

TEST_CASE("a later hook still sees the run at which an earlier hook asks to stop", "[session][hook_set]") {
  adding_model model;
  std::vector<std::string> story;
  sw::monitored_session session(model, sw::stop_at_step_hook{{.last_step = 2}}, recording_hook{&story});
  for ([[maybe_unused]] const auto& step : session.steps(one_to_five)) {}
  CHECK(story == std::vector<std::string>{"begin", "create 0", "before 0", "after 1", "before 1", "after 2"});
  CHECK(session.stop_reason().cause == sw::stop_cause::last_step);
  CHECK_THROWS_AS(session.run(std::int64_t{1}), sw::failed_precondition_error);
}

TEST_CASE("a step that throws adds nothing to the global step, and the source keeps the batch", "[session]") {
  adding_model model;
  bool broken = true;
  model.before = [&](std::int64_t batch) {
    if (batch == 2 && broken) { throw std::runtime_error("a bad day"); }
  };
  auto source = sw::data::source(one_to_five);
  sw::monitored_session session(model);
  const auto drain = [&] {
    for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  };
  CHECK_THROWS_WITH(drain(), "a bad day");
  CHECK(session.global_step() == 1);
  broken = false;
  drain();
  CHECK(model.sum == 15);
  CHECK(session.global_step() == 5);
}

TEST_CASE("CLOSE-9 on_error is called after a failed run, and a plain close still ends the hooks", "[session][close]") {
  adding_model model;
  std::vector<std::string> story;
  model.before = [](std::int64_t) { throw std::runtime_error("no"); };
  sw::monitored_session session(model, recording_hook{&story});
  CHECK_THROWS(session.run(std::int64_t{1}));
  session.close();
  CHECK(story == std::vector<std::string>{"begin", "create 0", "before 0", "error", "end 0"});
}

TEST_CASE("CLOSE-5 D-17 a session left by an exception ends no hook, but calls on_error of each", "[session][close]") {
  adding_model model;
  std::vector<std::string> story;
  try {
    sw::monitored_session session(model, recording_hook{&story});
    throw std::runtime_error("the loop body fails");
  } catch (const std::runtime_error&) {}
  CHECK(story == std::vector<std::string>{"begin", "create 0", "error unknown"});
}

TEST_CASE("D-17 CLOSE-10 a session dropped without close ends its hooks", "[session][close]") {
  adding_model model;
  std::vector<std::string> story;
  { sw::monitored_session session(model, recording_hook{&story}); }
  CHECK(story == std::vector<std::string>{"begin", "create 0", "end 0"});
}

TEST_CASE("a moved session continues, and so do its steps", "[session]") {
  adding_model model;
  std::vector<std::string> story;
  sw::monitored_session first(model, recording_hook{&story});
  auto steps = first.steps(one_to_five);
  auto next = steps.begin();
  CHECK((*next).global_step == 1);
  auto second = std::move(first);
  ++next;
  CHECK((*next).global_step == 2);
  second.close();
  CHECK(story.back() == "end 2");
}

TEST_CASE("D-18 CLOSE-4 out of range from the step ends the loop quietly; from a hook it is a failure", "[session][close]") {
  adding_model model;
  model.before = [](std::int64_t batch) {
    if (batch == 3) { throw sw::out_of_range_error("no more"); }
  };
  sw::monitored_session session(model);
  for ([[maybe_unused]] const auto& step : session.steps(one_to_five)) {}
  CHECK(session.global_step() == 2);
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);

  adding_model other;
  sw::monitored_session hooked(other, throwing_hook{2});
  CHECK_THROWS_AS(
      [&] {
        for ([[maybe_unused]] const auto& step : hooked.steps(one_to_five)) {}
      }(),
      sw::out_of_range_error);
}

TEST_CASE("CLOSE-4 a with-block ends quietly by stop_iteration or the end of the data", "[session][with]") {
  adding_model model;
  std::vector<std::string> story;
  sw::monitored_session session(model, recording_hook{&story});
  sw::with(session, [](auto& inner) {
    inner.run(std::int64_t{1});
    throw sw::stop_iteration("done");
  });
  CHECK(story.back() == "end 1");
  CHECK(session.should_stop());
}

TEST_CASE("CLOSE-5 D-18 a with-block left by another error ends no hook, and the error is thrown", "[session][with]") {
  adding_model model;
  std::vector<std::string> story;
  sw::monitored_session session(model, recording_hook{&story});
  CHECK_THROWS_WITH(sw::with(session, [](auto&) { throw std::runtime_error("mine"); }), "mine");
  CHECK(story.back() == "error");
  CHECK(session.should_stop());

  adding_model other;
  sw::monitored_session hooked(other, throwing_hook{1});
  CHECK_THROWS_AS(sw::with(hooked, [](auto& inner) { inner.run(std::int64_t{1}); }), sw::out_of_range_error);
}

TEST_CASE("an exception of on_error is logged, not thrown", "[session][hook_set]") {
  struct bad_observer {
    void on_error(sw::run_context<sw::model_session<adding_model>>&, const std::exception_ptr&) { throw std::runtime_error("worse"); }
  };
  adding_model model;
  model.before = [](std::int64_t) { throw std::runtime_error("first"); };
  sw::test::log_capture log;
  sw::monitored_session session(model, bad_observer{});
  CHECK_THROWS_WITH(session.run(std::int64_t{1}), "first");
  CHECK(log.contains(sw::log_level::error, "worse"));
}

TEST_CASE("names that are reserved or used twice are refused at construction", "[session][model]") {
  struct clash {
    int a = 0;
    int b = 0;
    std::vector<std::string> names;
    void step() {}
    sw::variable_list variables() { return {sw::variable_ref(names[0], a), sw::variable_ref(names[1], b)}; }
  };
  for (const auto& names : std::vector<std::vector<std::string>>{{"a", "a"}, {"a", "global_step"}, {"a", "stepwell/version"}, {"a", ""}}) {
    clash model{.names = names};
    CHECK_THROWS_AS(sw::monitored_session(model), sw::invalid_argument_error);
  }
}

TEST_CASE("a stop token of the application stops the loop", "[session]") {
  counting_model model;
  std::stop_source source;
  sw::monitored_session session(sw::training_options{.stop_token = source.get_token()}, model);
  for (const auto& step : session.steps()) {
    if (step.value == 2) { source.request_stop(); }
  }
  CHECK(model.count == 2);
}

TEST_CASE("a stop that comes from elsewhere while a batch is made ends the loop, and is no error", "[session]") {
  struct slow_source {
    std::function<void()> meanwhile;
    std::int64_t batch = 1;
    const std::int64_t* peek() {
      if (batch == 3) { meanwhile(); }
      return &batch;
    }
    void advance() { ++batch; }
  };
  adding_model model;
  sw::monitored_session session(model);
  slow_source source{.meanwhile = [&] { session.request_stop("somebody else"); }};
  CHECK_NOTHROW([&] {
    for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  }());
  CHECK(session.global_step() == 3);
  CHECK(session.stop_reason().text == "somebody else");
}

TEST_CASE("RUN-1 only a hook's stop refuses a run: the caller may not have seen another's yet", "[session]") {
  adding_model model;
  sw::monitored_session session(model, sw::stop_at_step_hook{{.last_step = 2}});
  session.request_stop();
  CHECK(session.should_stop());
  CHECK_NOTHROW(session.run(std::int64_t{1}));
  CHECK_NOTHROW(session.run(std::int64_t{1}));
  CHECK_THROWS_AS(session.run(std::int64_t{1}), sw::failed_precondition_error);
}

TEST_CASE("the reason for the end is the error, unless the loop went on after it", "[session][close]") {
  adding_model model;
  bool broken = true;
  model.before = [&](std::int64_t) {
    if (broken) { throw std::runtime_error("a bad day"); }
  };
  sw::monitored_session session(model);
  CHECK_THROWS(session.run(std::int64_t{1}));
  CHECK(session.stop_reason().cause == sw::stop_cause::error);
  CHECK(session.stop_reason().text == "a bad day");
  broken = false;
  session.run(std::int64_t{1});
  CHECK(session.stop_reason().cause == sw::stop_cause::none);
  session.close();
  CHECK(session.stop_reason().cause == sw::stop_cause::closed);

  adding_model other;
  sw::monitored_session ended(other);
  other.before = [](std::int64_t) { throw sw::out_of_range_error("no more"); };
  sw::with(ended, [](auto& inner) { inner.run(std::int64_t{1}); });
  CHECK(ended.stop_reason().cause == sw::stop_cause::end_of_data);
}

TEST_CASE("on_error of the hooks is called for an error after the data has ended in the step", "[session][close]") {
  adding_model model;
  std::vector<std::string> story;
  model.before = [](std::int64_t) { throw sw::out_of_range_error("no more"); };
  try {
    sw::monitored_session session(model, recording_hook{&story});
    for ([[maybe_unused]] const auto& step : session.steps(one_to_five)) {}
    story.push_back("loop done");
    throw std::runtime_error("something else");
  } catch (const std::runtime_error&) {}
  CHECK(story.back() == "error unknown");
}
