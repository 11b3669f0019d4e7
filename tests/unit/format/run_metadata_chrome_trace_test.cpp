// SPDX-License-Identifier: Apache-2.0
//
// Compares with a golden file and parses the output with an independent JSON library.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/paths.hpp"

#include <stepwell/format/detail/run_metadata.hpp>

#include <nlohmann/json.hpp>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace test = stepwell::test;
using nlohmann::json;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

const sw::clock::time_point origin{1h};

sw::trace_event span(std::string name, sw::clock::duration begin, sw::clock::duration length,
                     std::vector<sw::trace_argument> arguments = {}) {
  return {std::move(name), "test", 1, "main", origin + begin, origin + begin + length, std::move(arguments)};
}

sw::run_metadata observed(std::vector<sw::trace_event> spans) {
  return {std::move(spans), origin, sw::clock::wall_time(1'700'000'000s), 0};
}

// Returns one step of a session and its save in the order in which a recorder collects them: inner spans end first.
sw::run_metadata one_step() {
  std::vector<sw::trace_event> spans;
  spans.push_back({"hook stop_at_step_hook before_run", "session", 1, "training", origin, origin + 1500ns});
  spans.push_back({"run", "session", 1, "training", origin + 2us, origin + 950us, {{"step", "7"}}});
  spans.push_back({"snapshot", "checkpoint", 1, "training", origin + 1ms, origin + 1250us, {{"step", "7"}, {"bytes", "4096"}}});
  spans.push_back({"encode", "checkpoint", 2, "stepwell io 0", origin + 1301us, origin + 1400us, {{"tensor", "layer/weights"}}});
  spans.push_back({"write", "checkpoint", 2, "stepwell io 0", origin + 1400us, origin + 2400us, {{"tensor", "layer/weights"}}});
  spans.push_back({"save", "checkpoint", 2, "stepwell io 0", origin + 1300us, origin + 3s, {{"checkpoint", "run/model.ckpt-7"}}});
  return observed(std::move(spans));
}

json events_of(const json& trace, const std::string& phase) {
  json found = json::array();
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) { found.push_back(event); }
  }
  return found;
}

json read(const sw::run_metadata& all) { return json::parse(format::encode_chrome_trace(all)); }

}  // namespace

TEST_CASE("a step and its save become the golden timeline", "[format][chrome_trace][golden]") {
  CHECK(format::encode_chrome_trace(one_step()) == test::file_text(sw::test::golden("/format/timeline.json")));
}

TEST_CASE("each span is one complete event with times in microseconds since the origin", "[format][chrome_trace]") {
  const auto events = events_of(read(one_step()), "X");
  REQUIRE(events.size() == 6);
  CHECK(events[0] == json{{"ph", "X"},
                          {"pid", 1},
                          {"tid", 1},
                          {"ts", 0.0},
                          {"dur", 1.5},
                          {"name", "hook stop_at_step_hook before_run"},
                          {"cat", "session"}});
  CHECK(events[2] == json{{"ph", "X"},
                          {"pid", 1},
                          {"tid", 1},
                          {"ts", 1000.0},
                          {"dur", 250.0},
                          {"name", "snapshot"},
                          {"cat", "checkpoint"},
                          {"args", {{"step", "7"}, {"bytes", "4096"}}}});
}

TEST_CASE("the process and each thread have their names in the timeline", "[format][chrome_trace]") {
  const auto names = events_of(read(one_step()), "M");
  const auto named = [](const char* what, int thread, const char* name) {
    return json{{"ph", "M"}, {"pid", 1}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}};
  };
  CHECK(names == json{named("process_name", 0, "stepwell"), named("thread_name", 1, "training"), named("thread_name", 2, "stepwell io 0")});
}

TEST_CASE("outer spans stand before inner ones, though they ended later", "[format][chrome_trace]") {
  const auto events = events_of(read(one_step()), "X");
  CHECK(events[3].at("name") == "save");
  CHECK(events[4].at("name") == "encode");
  const auto same = events_of(read(observed({span("inner", 1us, 1us), span("outer", 1us, 1us), span("all", 1us, 2us)})), "X");
  CHECK(same[0].at("name") == "all");
  CHECK(same[1].at("name") == "outer");
  CHECK(same[2].at("name") == "inner");
}

TEST_CASE("any text survives in a timeline, and one that is not UTF-8 is mended", "[format][chrome_trace]") {
  const std::string odd = "a \"quoted\" \\ back\nslash\t\x01\x1f\0 \x7f gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"s;  // also contains a zero byte
  const auto events = events_of(read(observed({span(odd, 0us, 1us, {{odd, odd}}), span("bad\xff", 1us, 1us, {{"\xc3", "\x80"}})})), "X");
  CHECK(events[0].at("name") == odd);
  CHECK(events[0].at("args") == json{{odd, odd}});
  CHECK(events[1].at("name") == "bad\xef\xbf\xbd");
  CHECK(events[1].at("args") == json{{"\xef\xbf\xbd", "\xef\xbf\xbd"}});
}

TEST_CASE("a timeline has the last of two arguments with the same key", "[format][chrome_trace]") {
  const auto text = format::encode_chrome_trace(observed({span("run", 0us, 1us, {{"step", "1"}, {"step", "2"}})}));
  CHECK(text.find("\"1\"") == std::string::npos);
  CHECK(events_of(json::parse(text), "X")[0].at("args") == json{{"step", "2"}});
}

TEST_CASE("times are exact to the nanosecond, also before the origin and after days", "[format][chrome_trace]") {
  const auto text = format::encode_chrome_trace(observed({span("early", -1500ns, 0ns), span("late", 240h + 1ns, 999ns)}));
  CHECK(text.find(R"("ts":-1.500,"dur":0.000)") != std::string::npos);
  CHECK(text.find(R"("ts":864000000000.001,"dur":0.999)") != std::string::npos);
}

TEST_CASE("a timeline says when it began and what it lacks; without spans it is still one", "[format][chrome_trace]") {
  auto empty = observed({});
  empty.lost = 3;
  const auto trace = read(empty);
  CHECK(trace.at("otherData") == json{{"origin_micros", 1'700'000'000'000'000}, {"lost", 3}});
  CHECK(trace.at("displayTimeUnit") == "ms");
  CHECK(events_of(trace, "X").empty());
  CHECK(events_of(trace, "M").size() == 1);
}
