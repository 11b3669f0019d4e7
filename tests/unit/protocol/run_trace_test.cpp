// SPDX-License-Identifier: Apache-2.0
//
// Tests of the spans that a recorder collects from a run, its hooks and its boundary, and of the run's metadata.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"
#include "support/trace_reading.hpp"

#include <stepwell/base/detail/type_key.hpp>
#include <stepwell/base/trace.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/protocol/detail/boundary_work.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
using test::adding_model;
using test::counting_model;
using test::names_of;
using texts = std::vector<std::string>;

namespace {

/// A model whose step records a span.
struct parted_model {
  int count = 0;
  bool fails = false;
  void step() {
    const sw::trace_span part("part");
    if (fails) { throw std::runtime_error("the step fails"); }
    ++count;
  }
  sw::variable_list variables() { return sw::variables({{"count", count}}); }
};

/// A hook with points that requests nothing.
struct watcher {
  std::optional<texts>* seen = nullptr;
  void before_run(auto&) {}
  void after_run(auto&, const auto& values) {
    if (seen != nullptr) { *seen = names_of(values.metadata()); }
  }
  void end(auto&) {}
};
struct later_watcher : watcher {};

/// A hook that requests a trace, into its own recorder if it has one.
struct tracer {
  std::shared_ptr<sw::trace_recorder> recorder = nullptr;
  bool is_asking = true;
  bool traces_end = false;

  auto before_run(auto& context) {
    using wanted = sw::run_args<sw::fetch_pack<>, sw::feed_pack<>, sw::run_options>;
    if (!is_asking) { return std::optional<wanted>(); }
    if (recorder) { context.trace_into(recorder); }
    return std::optional<wanted>(wanted{.options = {.trace_level = sw::trace_level::software}});
  }
  void end(auto& session) {
    if (traces_end) { session.trace_into(recorder); }
  }
};

template<class Hook>
std::string point(const std::string& which) {
  return "hook " + std::string(sw::type_name<Hook>()) + " " + which;
}

/// Boundary work that records its calls as spans and in a text.
struct storied_work final : sw::boundary_work {
  std::string story;
  bool fails = false;

  bool try_save(const sw::boundary_state&) override {
    const sw::trace_span span("copy");
    story += "save ";
    return true;
  }
  void end_trace() override {
    const sw::trace_span span("unseen");
    story += sw::is_tracing() ? "traced " : "end_trace ";
    if (fails) { throw std::runtime_error("no disk"); }
  }
};
struct working_hook {
  std::shared_ptr<storied_work> work;
  void after_create_session(auto& session, auto&) { session.add_work(work); }
  void after_run(auto& context, const auto&) { context.request_save(*work); }
  void end(auto& session) { session.request_save(*work); }
};

const texts of_a_run{point<watcher>("before_run"), "part", "run", point<watcher>("after_run")};

using raw = sw::model_session<counting_model>;
static_assert(sw::hook_set<raw, tracer>::may_trace() && sw::hook_set<raw, watcher, std::reference_wrapper<tracer>>::may_trace());
static_assert(!sw::hook_set<raw, watcher, sw::stop_at_step_hook>::may_trace() && !sw::hook_set<raw>::may_trace());

}  // namespace

TEST_CASE("RUN-8 if the caller requests a trace, the metadata have the points of hooks and the run", "[session][trace]") {
  parted_model model;
  std::optional<texts> seen;
  sw::monitored_session session(model, watcher{&seen});
  sw::run_metadata mine;
  session.run(sw::run_options{.trace_level = sw::trace_level::full}, mine);
  CHECK(names_of(mine) == of_a_run);
  CHECK(seen == texts(of_a_run.begin(), of_a_run.begin() + 3));  // the spans until this point
  session.run(sw::run_options{.trace_level = sw::trace_level::full}, mine);
  CHECK(names_of(mine) == of_a_run);  // only the spans of that run
  CHECK_FALSE(sw::is_tracing());
}

TEST_CASE("RUN-8 without a trace level the metadata stay as they are", "[session][trace]") {
  parted_model model;
  sw::monitored_session session(model, watcher{});
  sw::run_metadata mine;
  mine.lost = 7;
  session.run(sw::run_options{.timeout_in_ms = 5}, mine);
  session.run(sw::run_options{.trace_level = sw::trace_level::none}, mine);
  session.run(mine);
  CHECK(mine.spans.empty());
  CHECK(mine.lost == 7);
}

TEST_CASE("RUN-8 a run that no hook sees is traced for its caller all the same", "[session][trace]") {
  parted_model model;
  sw::monitored_session session(model, watcher{}, tracer{});
  sw::run_metadata mine;
  session.run_with<sw::only<>>(sw::run_options{.trace_level = sw::trace_level::full}, mine);
  CHECK(names_of(mine) == texts{"part", "run"});
  session.run_with<sw::only<>>(mine);
  CHECK(names_of(mine) == texts{"part", "run"});
}

TEST_CASE("RUN-8 if a hook only requests a trace, the metadata have it from the run on", "[session][trace]") {
  parted_model model;
  std::optional<texts> seen;
  sw::monitored_session session(model, tracer{}, watcher{&seen});
  for (int i = 0; i < 2; ++i) {
    session.run();
    CHECK(seen == texts{"part", "run"});
  }
  session.hook<tracer>().is_asking = false;
  session.run();
  CHECK(seen->empty());
}

TEST_CASE("a hook that brings a recorder sees what comes after it asked, and the boundary", "[session][trace]") {
  parted_model model;
  const test::traced with;
  const auto work = std::make_shared<storied_work>();
  sw::monitored_session session(model, watcher{}, tracer{with.recorder}, later_watcher{}, working_hook{work});
  session.run();
  CHECK(names_of(with.recorder->take()) == texts{point<later_watcher>("before_run"), "part", "run", point<watcher>("after_run"),
                                                 point<later_watcher>("after_run"), point<working_hook>("after_run"), "copy", "boundary"});
  CHECK(work->story == "save end_trace ");  // called last, after the trace has ended
  session.hook<tracer>().is_asking = false;
  session.run();
  CHECK(work->story == "save end_trace save ");
  CHECK(with.recorder->take().spans.empty());
}

TEST_CASE("RUN-8 if the caller requests a trace and a hook has a recorder, both have the whole run", "[session][trace]") {
  parted_model model;
  const test::traced with;
  sw::monitored_session session(model, watcher{}, tracer{with.recorder});
  { const sw::trace_span earlier(with.recorder, "earlier"); }
  sw::run_metadata mine;
  session.run(sw::run_options{.trace_level = sw::trace_level::full}, mine);
  CHECK(test::kinds_of(mine) ==
        std::set<std::string>{point<watcher>("before_run"), point<tracer>("before_run"), "part", "run", point<watcher>("after_run")});
  const auto theirs = names_of(with.recorder->take());
  CHECK(theirs.front() == "earlier");
  CHECK(texts(theirs.begin() + 1, theirs.end()) == names_of(mine));
}

TEST_CASE("a traced run that fails ends its trace and notifies the works", "[session][trace]") {
  parted_model model;
  const test::traced with;
  const auto work = std::make_shared<storied_work>();
  sw::monitored_session session(model, tracer{with.recorder}, working_hook{work});
  model.fails = true;
  CHECK_THROWS_AS(session.run(), std::runtime_error);
  CHECK(work->story == "end_trace ");
  CHECK(names_of(with.recorder->take()) == texts{"part", "run"});
  sw::run_metadata mine;
  CHECK_THROWS_AS(session.run(sw::run_options{.trace_level = sw::trace_level::full}, mine), std::runtime_error);
  CHECK(mine.spans.empty());
  CHECK_FALSE(sw::is_tracing());
}

TEST_CASE("an exception at the end of a trace is a warning", "[session][trace]") {
  test::log_capture log;
  counting_model model;
  const test::traced with;
  const auto work = std::make_shared<storied_work>();
  work->fails = true;
  sw::monitored_session session(model, tracer{with.recorder}, working_hook{work});
  CHECK_NOTHROW(session.run());
  CHECK(log.contains(sw::log_level::warning, "no disk"));
}

TEST_CASE("a hook may have the end of a session traced", "[session][trace]") {
  counting_model model;
  const test::traced with;
  const auto work = std::make_shared<storied_work>();
  sw::monitored_session session(model, tracer{with.recorder, false, true}, watcher{}, working_hook{work});
  session.run();
  CHECK(with.recorder->take().spans.empty());
  session.close();
  CHECK(names_of(with.recorder->take()) == texts{point<watcher>("end"), point<working_hook>("end"), "copy", "boundary"});
  CHECK(work->story == "save save end_trace ");
}

TEST_CASE("a loop of steps is traced step by step, and never between two", "[session][trace]") {
  counting_model model;
  const test::traced with;
  sw::monitored_session session(model, tracer{with.recorder}, sw::stop_at_step_hook{{.last_step = 3}});
  for ([[maybe_unused]] const auto& step : session.steps()) { CHECK_FALSE(sw::is_tracing()); }
  CHECK(test::spans_named(with.recorder->take(), "run").size() == 3);
}
