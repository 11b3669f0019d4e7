// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/trace_reading.hpp"

#include <stepwell/base/detail/thread.hpp>
#include <stepwell/base/trace.hpp>

#include <stdexcept>
#include <thread>
#include <type_traits>

namespace sw = stepwell;
namespace test = stepwell::test;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<sw::trace_span> && !std::is_move_constructible_v<sw::trace_span>);
static_assert(!std::is_copy_constructible_v<sw::trace_scope> && !std::is_move_constructible_v<sw::trace_scope>);

TEST_CASE("a span is what was done, by whom, from when to when, with its details", "[base][trace]") {
  const test::traced with;
  const auto start = with.time->now();
  sw::set_thread_name("the session");
  {
    const sw::trace_scope scope(with.recorder);
    with.time->advance(2ms);
    sw::trace_span span("run", "session");
    span.argument("step", std::int64_t{7});
    span.argument("model", "toy");
    with.time->advance(3ms);
  }
  const auto taken = with.recorder->take();
  CHECK(taken.origin == start);
  CHECK(taken.wall_origin.time_since_epoch() == 1'700'000'000s);
  CHECK(taken.lost == 0);
  REQUIRE(taken.spans.size() == 1);
  CHECK(taken.spans[0] ==
        sw::trace_event{
            "run", "session", sw::current_thread_id(), "the session", start + 2ms, start + 5ms, {{"step", "7"}, {"model", "toy"}}});
  sw::set_thread_name("");
}

TEST_CASE("nothing is recorded if no thread is traced", "[base][trace]") {
  const test::traced with;
  CHECK_FALSE(sw::is_tracing());
  CHECK(sw::current_trace() == nullptr);
  sw::trace_span span("run");
  span.argument("step", 1);
  CHECK_FALSE(span);
  CHECK_FALSE(sw::trace_span(std::shared_ptr<sw::trace_recorder>(), "run"));
  const sw::trace_scope nothing(nullptr);
  CHECK_FALSE(sw::is_tracing());
  CHECK(with.recorder->take().spans.empty());
}

TEST_CASE("a thread is traced by the recorder it was given, others are not", "[base][trace]") {
  const test::traced one;
  const test::traced other;
  const sw::trace_scope scope(one.recorder);
  std::thread([&] {
    CHECK(sw::is_tracing());
    CHECK(sw::current_trace() == nullptr);
    CHECK_FALSE(sw::trace_span("unseen"));
    const sw::trace_scope here(other.recorder);
    const sw::trace_span span("there");
  }).join();
  { const sw::trace_span span("here"); }
  CHECK(test::names_of(one.recorder->take()) == std::vector<std::string>{"here"});
  CHECK(test::names_of(other.recorder->take()) == std::vector<std::string>{"there"});
}

TEST_CASE("within a scope another recorder may be in force, and none changes nothing", "[base][trace]") {
  const test::traced outer;
  const test::traced inner;
  const sw::trace_scope first(outer.recorder);
  {
    const sw::trace_scope second(inner.recorder);
    const sw::trace_scope nothing(nullptr);
    CHECK(sw::current_trace() == inner.recorder);
  }
  CHECK(sw::current_trace() == outer.recorder);
}

TEST_CASE("a span belongs to the recorder it began with, and to the take after its end", "[base][trace]") {
  const test::traced with;
  {
    auto scope = std::make_unique<sw::trace_scope>(with.recorder);
    sw::trace_span late("late");
    { const sw::trace_span early("early"); }
    CHECK(test::names_of(with.recorder->take()) == std::vector<std::string>{"early"});
    scope.reset();
    with.time->advance(1s);
  }
  const auto next = with.recorder->take();
  REQUIRE(test::names_of(next) == std::vector<std::string>{"late"});
  CHECK(next.spans[0].end - next.spans[0].begin == 1s);
  CHECK(with.recorder->take().spans.empty());
}

TEST_CASE("work handed to another thread takes its recorder along", "[base][trace]") {
  const test::traced with;
  std::shared_ptr<sw::trace_recorder> handed_over;
  {
    const sw::trace_scope scope(with.recorder);
    handed_over = sw::current_trace();
  }
  std::thread([handed_over] {
    const sw::trace_scope scope(handed_over);
    const sw::trace_span span("write");
  }).join();
  const auto taken = with.recorder->take();
  REQUIRE(taken.spans.size() == 1);
  CHECK(taken.spans[0].thread_id != sw::current_thread_id());
}

TEST_CASE("a span ends with an exception that leaves it", "[base][trace]") {
  const test::traced with;
  try {
    const sw::trace_span span(with.recorder, "fails");
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) { CHECK(test::names_of(with.recorder->take()) == std::vector<std::string>{"fails"}); }
}

TEST_CASE("a recorder that is full counts what it loses, and has room again once it was emptied", "[base][trace]") {
  const auto time = std::make_shared<sw::manual_clock>();
  const auto small = std::make_shared<sw::trace_recorder>(time, 2);
  for (const auto* name : {"a", "b", "c", "d"}) { const sw::trace_span span(small, name); }
  const auto full = small->take();
  CHECK(test::names_of(full) == std::vector<std::string>{"a", "b"});
  CHECK(full.lost == 2);
  { const sw::trace_span span(small, "e"); }
  CHECK(small->take().lost == 0);
}

TEST_CASE("threads record at once and nothing is lost, also while the spans are taken", "[base][trace]") {
  constexpr int threads = 4;
  constexpr int spans = 500;
  const test::traced with;
  std::size_t taken = 0;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        for (int n = 0; n < spans; ++n) {
          const sw::trace_scope scope(with.recorder);
          const sw::trace_span span("work");
        }
      });
    }
    for (int i = 0; i < 100; ++i) { taken += with.recorder->take().spans.size(); }
  }
  taken += with.recorder->take().spans.size();
  CHECK(taken == std::size_t{threads} * spans);
  CHECK_FALSE(sw::is_tracing());
}

TEST_CASE("a position among the spans stays the same if spans before it are taken", "[base][trace]") {
  const test::traced with;
  const auto add = [&](const char* name) { const sw::trace_span span(with.recorder, name); };
  add("a");
  const auto place = with.recorder->position();
  add("b");
  add("c");
  CHECK(test::names_of(with.recorder->since(place)) == std::vector<std::string>{"b", "c"});
  CHECK(test::names_of(with.recorder->since(0)) == std::vector<std::string>{"a", "b", "c"});
  CHECK(with.recorder->since(with.recorder->position()).spans.empty());
  CHECK(with.recorder->since(place + 100).spans.empty());
  CHECK(with.recorder->take().spans.size() == 3);
  add("d");
  CHECK(test::names_of(with.recorder->since(place)) == std::vector<std::string>{"d"});
  CHECK(with.recorder->position() == 4);
}
