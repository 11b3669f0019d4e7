// SPDX-License-Identifier: Apache-2.0
//
// Tests of run metadata in event files, and of the spans that the writing of event files adds to a timeline.
#include "events_of.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/trace_reading.hpp"

#include <stepwell/format/proto/event.pb.h>
#include <stepwell/format/proto/run_metadata.pb.h>
#include <stepwell/base/error.hpp>
#include <stepwell/summary/writer.hpp>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace summary = stepwell::summary;
namespace test = stepwell::test;

namespace {

struct desk {
  test::temporary_directory directory;
  std::shared_ptr<test::fault_file_system> files = std::make_shared<test::fault_file_system>();
  summary::writer_options options;

  desk() {
    options.file_system = files;
    options.threads = std::make_shared<sw::io::pool>(1);
    options.clock = std::make_shared<sw::manual_clock>();
  }
};

sw::run_metadata one_run() {
  const test::traced with;
  { const sw::trace_span span(with.recorder, "run", "session"); }
  return with.recorder->take();
}

// Returns the second event of a file, as protobuf reads it.
tensorflow::Event second_event(const std::string& path) {
  const auto bytes = format::encode_event(test::events_of(path).at(1));
  tensorflow::Event event;
  REQUIRE(event.ParseFromString(bytes));
  return event;
}

}  // namespace

TEST_CASE("EVT-9 run metadata stand in the event file under their tag and step, as protobuf's classes read them", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options);
  writer.add_run_metadata(one_run(), "step_20", 20);
  writer.close();
  const auto event = second_event(writer.path());
  CHECK(event.step() == 20);
  CHECK(event.wall_time() == 1'700'000'000);
  CHECK(event.tagged_run_metadata().tag() == "step_20");
  tensorflow::RunMetadata metadata;
  REQUIRE(metadata.ParseFromString(event.tagged_run_metadata().run_metadata()));
  REQUIRE(metadata.step_stats().dev_stats_size() == 1);
  CHECK(metadata.step_stats().dev_stats(0).node_stats(0).node_name() == "run");
}

TEST_CASE("EVT-9 a tag of run metadata is taken once a writer, a second time is a wrong argument", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options);
  writer.add_run_metadata(one_run(), "step_2", 2);
  CHECK_THROWS_AS(writer.add_run_metadata(one_run(), "step_2", 4), sw::invalid_argument_error);
  CHECK_THROWS_AS(writer.add_run_metadata("bytes", "step_2", 4), sw::invalid_argument_error);
  writer.add_run_metadata("bytes", "bad\xff", 4);
  CHECK_THROWS_AS(writer.add_run_metadata("bytes", "bad\xfe", 4), sw::invalid_argument_error);  // repaired, both tags are equal
  writer.add_run_metadata(one_run(), "step_4", 4);
  writer.close();
  CHECK(test::events_of(writer.path()).size() == 4);

  summary::writer other(with.directory.path(), with.options);
  CHECK_NOTHROW(other.add_run_metadata(one_run(), "step_2", 2));
}

TEST_CASE("EVT-9 run metadata for a closed writer are dropped with a warning, whatever their tag", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options);
  writer.add_run_metadata(one_run(), "step_2", 2);
  writer.close();
  const test::log_capture log;
  CHECK_NOTHROW(writer.add_run_metadata(one_run(), "step_2", 2));
  CHECK_NOTHROW(writer.add_run_metadata(one_run(), "step_4", 4));
  CHECK(log.count(sw::log_level::warning) == 2);
  CHECK(test::events_of(writer.path()).size() == 2);
}

TEST_CASE("EVT-9 a failed write comes out of the next add of run metadata, once", "[summary][writer]") {
  desk with;
  with.options.max_queue_bytes = 100;  // any record fills the queue
  summary::writer writer(with.directory.path(), with.options);
  with.files->inject({.kind = test::operation::write, .errno_value = ENOSPC, .from_then_on = true});
  const auto add_two = [&] {
    writer.add_run_metadata(one_run(), "a", 1);
    for (int i = 0;; ++i) { writer.add_run_metadata(one_run(), std::to_string(i), i); }
  };
  CHECK_THROWS_AS(add_two(), sw::resource_exhausted_error);
  const test::log_capture log;
  CHECK_NOTHROW(writer.add_run_metadata(one_run(), "a", 1));
  CHECK(log.contains(sw::log_level::warning, "after a failed write"));
}

TEST_CASE("the work of the writer's task is in the trace of the thread that added, or requested the flush", "[summary][writer]") {
  const desk with;
  const test::traced timeline;
  summary::writer writer(with.directory.path(), with.options);
  {
    const sw::trace_scope scope(timeline.recorder);
    writer.add_scalar("loss", 1, 1);
    writer.flush();
  }
  const auto observed = timeline.recorder->take();
  CHECK(test::names_of(observed) == std::vector<std::string>{"write", "sync"});
  CHECK(observed.spans[0].category == "summary");
  CHECK(observed.spans[0].thread_name == "stepwell io 0");
  CHECK(test::argument_of(observed.spans[0], "file") == writer.path());
  CHECK(test::argument_of(observed.spans[0], "bytes") == "42");

  writer.add_scalar("loss", 1, 2);
  writer.flush();
  CHECK(timeline.recorder->take().spans.empty());
}

TEST_CASE("the write of bytes is on the timeline of the thread that added them, also after it has ended", "[summary][writer]") {
  const desk with;
  const test::traced timeline;
  summary::writer writer(with.directory.path(), with.options);
  {
    const sw::trace_scope scope(timeline.recorder);
    writer.add_scalar("loss", 1, 1);
  }
  CHECK(timeline.recorder->take().spans.empty());
  writer.flush();
  CHECK(test::names_of(timeline.recorder->take()) == std::vector<std::string>{"write"});
}

TEST_CASE("sessions that share a writer find what they asked for on their own timelines", "[summary][writer]") {
  const desk with;
  const test::traced one;
  const test::traced other;
  summary::writer writer(with.directory.path(), with.options);
  for (const auto& recorder : {one.recorder, other.recorder}) {
    const sw::trace_scope scope(recorder);
    writer.add_scalar("loss", 1, 1);
    writer.flush();
  }
  CHECK(test::names_of(one.recorder->take()) == std::vector<std::string>{"write", "sync"});
  CHECK(test::names_of(other.recorder->take()) == std::vector<std::string>{"write", "sync"});
}
