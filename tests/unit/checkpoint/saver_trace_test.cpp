// SPDX-License-Identifier: Apache-2.0
//
// Tests of the spans that a save adds to a timeline, and of the timeline that receives them.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/saver_rig.hpp"
#include "support/trace_reading.hpp"

#include <stepwell/format/detail/run_metadata.hpp>
#include <stepwell/io/atomic_file.hpp>
#include <stepwell/io/file_system.hpp>
#include <stepwell/io/pool.hpp>

#include <nlohmann/json.hpp>

namespace sw = stepwell;
namespace test = stepwell::test;
using namespace std::chrono_literals;

namespace {

sw::snapshot traced_snapshot(const std::shared_ptr<sw::trace_recorder>& recorder, std::int64_t step) {
  const sw::trace_scope scope(recorder);
  return test::toy_snapshot(step);
}

std::set<std::string> with_copy(std::set<std::string> kinds) {
  kinds.insert("snapshot");
  return kinds;
}

const std::set<std::string> of_a_save{"encode", "write", "sync data", "write index", "write state file", "save"};

}  // namespace

TEST_CASE("the copy is a span of the thread that makes it, and the snapshot remembers the trace", "[checkpoint][trace]") {
  const test::traced with;
  const auto taken = traced_snapshot(with.recorder, 7);
  CHECK(taken.trace() == with.recorder);
  const auto observed = with.recorder->take();
  REQUIRE(test::names_of(observed) == std::vector<std::string>{"snapshot"});
  CHECK(observed.spans[0].category == "checkpoint");
  CHECK(test::argument_of(observed.spans[0], "step") == "7");
  CHECK(test::argument_of(observed.spans[0], "bytes") == std::to_string(taken.size_bytes()));
  CHECK(test::toy_snapshot(8).trace() == nullptr);
}

TEST_CASE("each part of a save in the background is recorded in the trace of its requester", "[checkpoint][trace]") {
  const test::workshop shop;
  const test::traced with;
  shop.files->before_each([&](const test::event&) { with.time->advance(1ms); });
  {
    auto saver = shop.make({.pool = std::make_shared<sw::io::pool>(1)});
    saver.save(traced_snapshot(with.recorder, 7));
    saver.drain();
  }
  const auto observed = with.recorder->take();
  auto kinds = of_a_save;
  kinds.insert("tidy");
  CHECK(test::kinds_of(observed) == with_copy(kinds));
  const auto save = test::spans_named(observed, "save").at(0);
  CHECK(save.thread_name == "stepwell io 0");
  CHECK(test::argument_of(save, "checkpoint") == shop.directory.path() + "/model.ckpt-7");
  CHECK(test::spans_named(observed, "save").size() == 1);
  for (const auto& span : observed.spans) {
    if (!of_a_save.contains(span.name)) { continue; }
    INFO(span.name);
    CHECK(span.thread_id == save.thread_id);
    CHECK((span.begin >= save.begin && span.end <= save.end));
  }
  const auto writes = test::spans_named(observed, "write");
  const auto encodes = test::spans_named(observed, "encode");
  CHECK(test::argument_of(encodes.at(1), "tensor") == "layer/weights");
  CHECK(test::argument_of(encodes.at(1), "bytes") == "400");
  REQUIRE(writes.size() == 1);  // small tensors are written together
  CHECK(writes[0].end - writes[0].begin == 1ms);
  CHECK(encodes.back().end <= writes[0].begin);
}

TEST_CASE("a save that has not ended when a timeline is written is in the next one", "[checkpoint][trace]") {
  test::workshop shop;
  test::gate gate;
  const test::traced with;
  auto saver = shop.make();
  gate.close();
  test::hold_data(shop, gate);
  saver.save(traced_snapshot(with.recorder, 7));
  gate.wait_for_somebody();
  const auto first = test::kinds_of(with.recorder->take());
  CHECK(first.contains("snapshot"));
  CHECK_FALSE(first.contains("save"));
  gate.open();
  saver.drain();
  const auto second = test::kinds_of(with.recorder->take());
  CHECK(second.contains("write"));
  CHECK(second.contains("save"));
  CHECK_FALSE(second.contains("snapshot"));
}

TEST_CASE("sessions that share the pool's threads each have their own saves on their timelines", "[checkpoint][trace]") {
  const auto pool = std::make_shared<sw::io::pool>(1);
  const test::workshop shops[3];
  const test::traced with[2];
  {
    auto one = shops[0].make({.pool = pool});
    auto other = shops[1].make({.pool = pool});
    auto untraced = shops[2].make({.pool = pool});
    one.save(traced_snapshot(with[0].recorder, 1));
    untraced.save(test::toy_snapshot(5));
    other.save(traced_snapshot(with[1].recorder, 2));
    other.save(traced_snapshot(with[1].recorder, 3));
    for (auto* saver : {&one, &untraced, &other}) { saver->drain(); }
  }
  const auto saves_of = [](const test::traced& which) {
    std::vector<std::string> saves;
    for (const auto& span : test::spans_named(which.recorder->take(), "save")) { saves.push_back(test::argument_of(span, "checkpoint")); }
    return saves;
  };
  CHECK(saves_of(with[0]) == std::vector{shops[0].directory.path() + "/model.ckpt-1"});
  CHECK(saves_of(with[1]) == std::vector{shops[1].directory.path() + "/model.ckpt-2", shops[1].directory.path() + "/model.ckpt-3"});
}

TEST_CASE("each attempt of a failing save is one span", "[checkpoint][trace]") {
  const test::workshop shop;
  const test::traced with;
  const test::log_capture log;
  {
    auto saver = shop.make({.on_error = sw::on_save_error::retry(1, 1s)});
    shop.files->inject({.kind = test::operation::write, .path_contains = ".data-"});
    saver.save(traced_snapshot(with.recorder, 1));
    REQUIRE(shop.clock->wait_for_pending(1));
    shop.clock->advance(1s);
    saver.drain();
  }
  CHECK(test::spans_named(with.recorder->take(), "save").size() == 2);
  CHECK(shop.steps() == "1");
}

TEST_CASE("a timeline of saving becomes a whole file that a reader of JSON takes", "[checkpoint][trace]") {
  const test::workshop shop;
  const test::traced with;
  {
    auto saver = shop.make();
    saver.save_and_wait(traced_snapshot(with.recorder, 7));
  }
  const auto path = sw::io::join_path(shop.directory.path(), "timeline-7.json");
  REQUIRE(sw::io::write_file_atomically(*shop.files, path, sw::format::encode_chrome_trace(with.recorder->take())).ok());
  std::set<std::string> names;
  const auto timeline = nlohmann::json::parse(test::file_text(path));
  for (const auto& event : timeline.at("traceEvents")) {
    if (event.at("ph") == "X") { names.insert(event.at("name")); }
  }
  auto expected = of_a_save;
  expected.insert("tidy");
  CHECK(names == with_copy(expected));
}
