// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/board/detail/board_service.hpp>
#include <stepwell/board/http_server.hpp>
#include <stepwell/protocol/run_ending.hpp>
#include <stepwell/summary/writer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::board;
using nlohmann::json;

namespace {

constexpr std::string_view token = "0123456789abcdef";

/// A board for a directory of runs, or for a session that the test plays.
struct board_rig {
  sw::test::temporary_directory directory;
  std::shared_ptr<live_state> live;
  std::shared_ptr<sw::session_signals> signals = std::make_shared<sw::session_signals>();
  std::shared_ptr<board_service> service;

  explicit board_rig(bool has_session = false, bool needs_token_to_read = false) {
    if (has_session) { live = std::make_shared<live_state>(); }
    service = std::make_shared<board_service>(service_options{.title = "rig",
                                                              .directory = directory.path(),
                                                              .needs_token_to_read = needs_token_to_read,
                                                              .live = live,
                                                              .checkpoint_directory = has_session ? directory.path() : std::string(),
                                                              .live_directory = has_session ? directory.path() + "/a" : std::string(),
                                                              .signals = signals},
                                              access_rules({}, std::string(token)),
                                              run_directory(sw::io::posix_file_system(), directory.path(), 3));
  }

  [[nodiscard]] request asking(std::string target) const {
    return {.method = "GET", .target = std::move(target), .address = "127.0.0.1", .port = 6007, .hosts = {"localhost:6007"}};
  }
  [[nodiscard]] answer get(std::string target) const { return service->answer_to(asking(std::move(target))); }
  [[nodiscard]] json value(std::string target) const {
    const auto said = get(std::move(target));
    INFO(said.body);
    CHECK(said.status == 200);
    return json::parse(said.body);
  }
  [[nodiscard]] answer post(std::string action, std::string body = "{}", std::string type = "application/json",
                            bool has_token = true) const {
    auto asked = asking("/api/actions/" + std::move(action));
    asked.method = "POST";
    asked.body = std::move(body);
    asked.content_type = std::move(type);
    if (has_token) { asked.authorization = "Bearer " + std::string(token); }
    return service->answer_to(asked);
  }
  [[nodiscard]] std::unique_ptr<sw::summary::writer> write(const std::string& run, sw::summary::writer_options how = {}) const {
    return std::make_unique<sw::summary::writer>(directory.path() + "/" + run, std::move(how));
  }
};

std::vector<double> column(const std::string& bytes, std::size_t number) {
  std::uint32_t count = 0;
  std::memcpy(&count, bytes.data() + 4, sizeof count);
  std::vector<double> all(count);
  std::memcpy(all.data(), bytes.data() + 32 + number * count * sizeof(double), count * sizeof(double));
  return all;
}

}  // namespace

TEST_CASE("a board lists all runs below its directory, with their tags", "[board][service]") {
  const board_rig rig;
  rig.write("a")->add_scalar("loss", 0.5f, 1);
  {
    const auto out = rig.write("group/b");
    out->add_scalar("loss", std::numeric_limits<float>::quiet_NaN(), 2);
    out->add_histogram("weights", std::vector<float>{1, 2, 3}, 2);
    out->add_text("note", "<script>alert(1)</script>", 2);
    out->add_hparams({{"rate", 0.1}, {"name", "adam"}, {"nesterov", true}});
  }
  const auto runs = rig.value("/api/runs")["runs"];
  REQUIRE(runs.size() == 2);
  CHECK(runs[0]["run"] == "a");
  CHECK(runs[1]["run"] == "group/b");
  CHECK(runs[1]["is_live"] == false);
  const auto tags = rig.value("/api/tags?run=group/b&run=a")["runs"];
  REQUIRE(tags.size() == 2);
  REQUIRE(tags[0]["tags"].size() == 3);
  CHECK(tags[0]["tags"][0]["tag"] == "loss");
  CHECK(tags[0]["tags"][0]["last"] == "nan");
  CHECK(tags[0]["tags"][0]["non_finite"] == 1);
  CHECK(tags[0]["tags"][1]["kind"] == "text");
  CHECK(tags[0]["tags"][2]["kind"] == "histogram");
  CHECK(rig.value("/api/texts?run=group/b&tag=note")["texts"][0]["text"] == "<script>alert(1)</script>");
  CHECK(rig.value("/api/histograms?run=group/b&tag=weights")["histograms"][0]["count"] == 3);
  const auto hparams = rig.value("/api/hparams?run=group/b")["runs"][0]["hparams"];
  CHECK(hparams["rate"] == 0.1);
  CHECK(hparams["name"] == "adam");
  CHECK(hparams["nesterov"] == true);
  CHECK(rig.value("/api/board")["mode"] == "directory");
  CHECK(rig.get("/api/session").status == 404);
}

TEST_CASE("a curve follows a file that grows, and drops the steps that a resumed run makes again", "[board][service]") {
  const board_rig rig;
  const auto out = rig.write("a");
  for (int step = 1; step <= 10; ++step) { out->add_scalar("loss", static_cast<float>(step), step); }
  out->flush();
  const auto steps = [&] { return column(rig.get("/api/curve?run=a&tag=loss").body, 0); };
  CHECK(steps().size() == 10);
  out->add_scalar("loss", 11.0f, 11);
  out->flush();
  CHECK(steps().size() == 11);
  out->add_session_log(sw::format::session_status::start, 6);
  out->add_scalar("loss", 60.0f, 6);
  out->flush();
  CHECK(steps() == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(column(rig.get("/api/curve?run=a&tag=loss").body, 7).back() == 60);
  CHECK(rig.value("/api/marks?run=a")["marks"][0]["kind"] == "resume");
  CHECK(column(rig.get("/api/curve?run=a&tag=loss&buckets=2").body, 0).size() == 2);
}

TEST_CASE("an image is sent only if a browser can show nothing else of it", "[board][service]") {
  const board_rig rig;
  {
    const auto out = rig.write("a", {.style = sw::format::summary_style::tensor});
    const std::vector<std::byte> pixels(4);
    out->add_image("good", {.pixels = pixels, .width = 2, .height = 2}, 1);
    out->add_summary({{{"bad", "", std::nullopt, sw::format::image_value{1, 1, 1, "<svg onload=alert(1)>"}}}}, 1);
  }
  const auto image = rig.value("/api/images?run=a&tag=good")["images"][0];
  CHECK(image["width"] == 2);
  CHECK(rig.get("/api/image?run=a&tag=good&step=1").content_type == "image/png");
  CHECK(rig.get("/api/image?run=a&tag=bad&step=1").status == 404);
  CHECK(rig.get("/api/image?run=a&tag=good&step=2").status == 404);
}

TEST_CASE("hostile tags are data, and very long ones are left out", "[board][service]") {
  const board_rig rig;
  const std::string script = "</script><img src=x onerror=alert(1)>";
  {
    const auto out = rig.write("a");
    out->add_scalar(script, 1.0f, 1);
    out->add_scalar("control\x1b[2J\x01", 1.0f, 1);
    out->add_scalar("not utf8 \xff\xfe", 1.0f, 1);
    out->add_scalar(std::string(1 << 20, 'x'), 1.0f, 1);
    for (int i = 0; i < 2500; ++i) { out->add_scalar("many/" + std::to_string(i), 1.0f, 1); }
  }
  const auto said = rig.get("/api/tags?run=a");
  CHECK(said.content_type == "application/json");
  const auto run = json::parse(said.body)["runs"][0];
  CHECK(run["is_cut"] == true);
  CHECK(run["tags"].size() == 2000);
  CHECK(rig.get("/api/curve?run=a&tag=%3C/script%3E%3Cimg%20src=x%20onerror=alert(1)%3E").status == 200);
  CHECK(said.body.find(std::string(5000, 'x')) == std::string::npos);
  CHECK(said.body.find('\x1b') == std::string::npos);
}

TEST_CASE("a damaged event file is shown up to the damage", "[board][service]") {
  const board_rig rig;
  std::string path;
  {
    const auto out = rig.write("a");
    for (int step = 1; step <= 100; ++step) { out->add_scalar("loss", 1.0f, step); }
    path = out->path();
  }
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2))
      .put('\x7f');
  const auto run = rig.value("/api/tags?run=a")["runs"][0];
  CHECK(run["error"].is_string());
  REQUIRE(run["tags"].size() == 1);
  CHECK(run["tags"][0]["points"].get<int>() > 10);
}

TEST_CASE("only runs of the list can be read", "[board][service]") {
  const board_rig rig;
  rig.write("a")->add_scalar("loss", 1.0f, 1);
  for (const auto* run : {"..", "../", "/etc", "a/../a", "./a", "", "a/", "%2e%2e", "a%00"}) {
    CAPTURE(run);
    CHECK(rig.get(std::string("/api/tags?run=") + run).status == 404);
    CHECK(rig.get(std::string("/api/checkpoints?run=") + run).status == 404);
  }
}

TEST_CASE("parameters that are missing or wrong are errors", "[board][service]") {
  const board_rig rig;
  rig.write("a")->add_scalar("loss", 1.0f, 1);
  for (const auto* target :
       {"/api/tags", "/api/curve?run=a", "/api/curve?run=a&tag=loss&buckets=0", "/api/curve?run=a&tag=loss&buckets=9999",
        "/api/curve?run=a&tag=loss&buckets=x", "/api/curve?run=a&tag=loss&from=nan",
        "/api/curve?run=a&tag=loss&from=", "/api/curve?run=a&tag=loss&axis=z", "/api/%zz", "/api/log?after=-1"}) {
    CAPTURE(target);
    CHECK(rig.get(target).status == 400);
  }
  for (const auto* target :
       {"/x", "/api", "/api/curve?run=a&tag=other", "/api/curve?run=b&tag=loss", "/api/actions/1", "/api/trace/1", "/page/../x"}) {
    CAPTURE(target);
    CHECK(rig.get(target).status == 404);
  }
  auto put = rig.asking("/api/runs");
  put.method = "PUT";
  CHECK(rig.service->answer_to(put).status == 405);
}

TEST_CASE("an action needs the token, JSON and a session", "[board][service]") {
  const board_rig rig(true);
  CHECK(rig.post("stop", "{}", "application/json", false).status == 401);
  CHECK(rig.post("stop", "{}", "text/plain").status == 415);
  CHECK(rig.post("stop", "{}", "").status == 415);
  CHECK(rig.post("stop", "not JSON").status == 400);
  CHECK(rig.post("stop", "[]").status == 400);
  CHECK(rig.post("stop", "[]", "Application/JSON ; charset=utf-8").status == 400);
  CHECK(rig.post("stop", "{}", "application/jsonp").status == 415);
  CHECK(rig.post("trace", R"({"steps": 0})").status == 400);
  CHECK(rig.post("trace", R"({"steps": 1e9})").status == 400);
  CHECK(rig.post("explode").status == 404);
  CHECK_FALSE(rig.signals->stop_requested());
  CHECK(rig.get("/api/actions/stop").status == 400);
  CHECK(rig.post("stop").status == 202);
  CHECK(rig.signals->stop_requested());
  CHECK(rig.post("stop").status == 409);  // pending
  CHECK(rig.value("/api/actions/1")["state"] == "pending");
  CHECK(rig.post("checkpoint").status == 202);
  CHECK(rig.signals->take_checkpoint_request());
  rig.live->set_phase("ended");
  CHECK(rig.post("trace").status == 409);
  const board_rig other;
  CHECK(other.post("stop").status == 409);
}

TEST_CASE("beyond the machine itself, the token is needed to read", "[board][service]") {
  const board_rig rig(false, true);
  CHECK(rig.get("/").status == 200);
  CHECK(rig.get("/healthz").status == 200);
  for (const auto* target : {"/metrics", "/api/board", "/api/runs", "/api/live", "/api/log"}) {
    CAPTURE(target);
    CHECK(rig.get(target).status == 401);
    auto asked = rig.asking(target);
    asked.authorization = "Bearer " + std::string(token);
    CHECK(rig.service->answer_to(asked).status == 200);
  }
}

TEST_CASE("the page may use only its own scripts and styles, and cannot be embedded", "[board][service]") {
  const board_rig rig;
  const auto page = rig.get("/");
  REQUIRE(page.headers.size() == 1);
  const auto& policy = page.headers.front().second;
  CHECK(policy.starts_with("default-src 'none'; script-src "));
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
  CHECK(page.body.starts_with("<!doctype html>"));
  CHECK(rig.get("/api/openapi.yaml").body.find("openapi: 3.1.0") != std::string::npos);
}

TEST_CASE("a session is shown as its hook has reported it", "[board][service]") {
  const board_rig rig(true);
  session_view view;
  view.time = 1000;
  view.started = 900;
  view.phase = "running";
  view.step = 50;
  view.last_step = 100;
  view.steps_per_second = 10;
  view.watched = {{"loss", std::numeric_limits<double>::infinity(), 49}};
  view.step_time = step_time{.samples = 1, .model = 0.5, .data = 0.25, .hooks = {{"a", 0.25}}};
  view.metrics.recoveries = 2;
  view.watched.push_back({"control\x1b[2J\r\u009b\n", 1, 49});
  rig.live->set(view);
  const auto seen = rig.value("/api/session");
  CHECK(seen["phase"] == "running");
  CHECK(seen["remaining_seconds"] == 5);
  CHECK(seen["watched"][0]["value"] == "inf");
  CHECK(seen["step_time"]["step_seconds"] == 1);
  CHECK(seen["stop_conditions"][0]["distance"] == 50);
  CHECK(seen["checkpoints"]["lost_steps"] == 50);
  CHECK(seen["recoveries"] == 2);
  CHECK(rig.get("/metrics").body.find("stepwell_recoveries_total{session=\"rig\"} 2\n") != std::string::npos);
  CHECK(rig.get("/metrics").body.find("stepwell_watched{session=\"rig\",name=\"loss\"} +Inf\n") != std::string::npos);
  CHECK(rig.get("/metrics").body.find(R"(name="control\\x1b[2J\\x0d\\xc2\\x9b\n"} 1)") != std::string::npos);
  CHECK(rig.get("/api/session").body.find_first_of("\x1b\x9b\x7f") == std::string::npos);
  rig.live->set_phase("failed");
  CHECK(rig.get("/healthz").status == 503);
}

TEST_CASE("a late visitor sees the values that the event files get with their next flush", "[board][service]") {
  const board_rig rig(true);
  {
    const auto out = rig.write("a");
    for (int step = 1; step <= 10; ++step) { out->add_scalar("loss", static_cast<float>(step), step); }
  }
  session_view view;
  for (const std::int64_t step : {5, 10, 15, 20}) {
    view.time = 2e9 + static_cast<double>(step);
    view.watched = {{"loss", 0.5 * static_cast<double>(step), step}};
    rig.live->set(view);
  }
  const auto run = rig.value("/api/tags?run=a")["runs"][0];
  CHECK(run["last_step"] == 20);
  CHECK(run["last_time"] == 2e9 + 20);
  REQUIRE(run["tags"].size() == 1);
  CHECK(run["tags"][0]["points"] == 12);  // the steps 5 and 10 are in the file
  CHECK(run["tags"][0]["last_step"] == 20);
  CHECK(run["tags"][0]["last"] == 10);
  CHECK(column(rig.get("/api/curve?run=a&tag=loss").body, 0) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20});
  CHECK(column(rig.get("/api/curve?run=a&tag=loss&from=16").body, 0) == std::vector<double>{15, 20});
}

TEST_CASE("a client that knows a curve gets only the points that are new", "[board][service]") {
  const board_rig rig(true);
  const auto out = rig.write("a");
  const auto header = [](const std::string& body) {
    struct {
      double total, revision;
      std::uint32_t fixed_points, fixed_buckets;
    } read{};
    static_assert(sizeof read == 24);
    std::memcpy(&read, body.data() + 8, sizeof read);
    return read;
  };
  for (int step = 1; step <= 1000; ++step) { out->add_scalar("loss", static_cast<float>(step), step); }
  out->flush();
  const auto whole = header(rig.get("/api/curve?run=a&tag=loss&buckets=100").body);
  CHECK(whole.fixed_points == 1000);
  CHECK(whole.fixed_buckets == 100);
  CHECK(rig.value("/api/tags?run=a")["runs"][0]["tags"][0]["revision"] == whole.revision);
  for (int step = 1001; step <= 1003; ++step) { out->add_scalar("loss", static_cast<float>(step), step); }
  out->flush();
  session_view view;
  view.watched = {{"loss", 7, 1010}};
  rig.live->set(view);
  const auto since = [&](std::uint32_t points, double revision) {
    return rig.get("/api/curve?run=a&tag=loss&buckets=100&since=" + std::to_string(points) +
                   "&revision=" + std::to_string(static_cast<std::uint64_t>(revision)));
  };
  const auto news = since(whole.fixed_points, whole.revision).body;
  CHECK(column(news, 0) == std::vector<double>{1001, 1002, 1003, 1010});
  CHECK(header(news).total == 1004);
  CHECK(header(news).fixed_points == 1003);
  CHECK(header(news).fixed_buckets == 3);  // the value in memory is sent again
  CHECK(column(since(1003, whole.revision).body, 0) == std::vector<double>{1010});
  CHECK(column(since(1000, whole.revision + 1).body, 0).size() == 100);  // another revision: the whole curve
  CHECK(column(rig.get("/api/curve?run=a&tag=loss&buckets=1").body, 0).size() == 1);
  out->add_session_log(sw::format::session_status::start, 500);
  out->flush();
  const auto again = since(1003, whole.revision).body;
  CHECK(column(again, 0).front() == 1);
  CHECK(header(again).revision != whole.revision);
}

TEST_CASE("runs that have ended are marked, and how they ended", "[board][service]") {
  const board_rig rig;
  auto& files = *sw::io::posix_file_system();
  for (const auto* run : {"a", "a/eval", "b", "c", "d"}) { rig.write(run)->add_scalar("loss", 1.0f, 1); }
  const auto end = [&](const std::string& run, sw::session_ending how, sw::stop_cause cause) {
    sw::detail::write_ending_file(files, rig.directory.path() + "/" + run, {how, {cause, "why " + run}, 7});
  };
  const auto ending_of = [&](const std::string& run) {
    const auto runs = rig.value("/api/runs")["runs"];
    for (const auto& one : runs) {
      if (one["run"] == run) { return one["ending"]; }
    }
    return json("unknown run");
  };
  CHECK(ending_of("a") == nullptr);
  end("a", sw::session_ending::finished, sw::stop_cause::last_step);
  end("b", sw::session_ending::failed, sw::stop_cause::nan);
  end("d", sw::session_ending::finished, sw::stop_cause::last_step);
  std::ofstream(rig.directory.path() + "/d/stepwell.ending") << "damaged";
  CHECK(ending_of("a") == json{{"how", "finished"}, {"cause", "last_step"}, {"text", "why a"}, {"step", 7}});
  CHECK(ending_of("a/eval")["how"] == "finished");  // its files end with those of the run
  CHECK(ending_of("b")["how"] == "failed");
  CHECK(ending_of("c") == nullptr);
  CHECK(ending_of("d") == nullptr);
  sw::detail::remove_ending_file(files, rig.directory.path() + "/a");  // it runs again
  CHECK(ending_of("a") == nullptr);
  CHECK(ending_of("a/eval") == nullptr);
}

TEST_CASE("of many histograms, those that stay are at about equal distances", "[board][service]") {
  const board_rig rig;
  {
    const auto out = rig.write("a");
    for (int step = 1; step <= 1500; ++step) { out->add_histogram("weights", std::vector<float>{1, 2, 3}, step); }
  }
  const auto all = rig.value("/api/histograms?run=a&tag=weights&count=200")["histograms"];
  REQUIRE(all.size() == 200);
  CHECK(all.back()["step"] == 1500);
  int widest = 0;
  for (std::size_t i = 1; i < all.size(); ++i) { widest = std::max(widest, all[i]["step"].get<int>() - all[i - 1]["step"].get<int>()); }
  CHECK(widest <= 16);
}

TEST_CASE("a stream of events continues after the last event of its client, and says what was skipped", "[board][service]") {
  const board_rig rig(true);
  const auto listen = [&](std::string last) {
    auto asked = rig.asking("/api/live");
    asked.last_event_id = std::move(last);
    return rig.service->answer_to(asked).events;
  };
  const auto first = listen("");
  auto text = first->next().value();
  CHECK(text.find("event: state\n") != std::string::npos);
  CHECK(first->next().value().empty());
  static_cast<void>(listen(""));
  CHECK(first->next().value().empty());  // the first state of another client is not sent to this one
  rig.live->add_log(1, sw::log_level::warning, "line 1\nline 2");
  text = first->next().value();
  CHECK(text.find("event: log\ndata: {") != std::string::npos);
  CHECK(text.find("line 1\\nline 2") != std::string::npos);  // one line of data
  const auto id = text.substr(4, text.find('\n') - 4);
  const auto second = listen(id);
  CHECK(second->next().value().find("event: log") == std::string::npos);
  session_view view;
  view.watched = {{"loss", 0.5, 1}};
  rig.live->set(view);
  CHECK(second->next().value().find(R"("values":{"loss":0.5})") != std::string::npos);
  rig.live->set(view);
  CHECK(second->next().value().find("event: values") == std::string::npos);  // unchanged
  for (int i = 0; i < 5000; ++i) { rig.live->add_event("log", "{}"); }
  text = first->next().value();
  CHECK(text.starts_with("event: skipped\n"));
  CHECK(text.size() < 100'000);
  CHECK(listen("999999999")->next().value().starts_with("event: skipped\n"));
  CHECK(rig.service
            ->answer_to([&] {
              auto asked = rig.asking("/api/live");
              asked.last_event_id = "x";
              return asked;
            }())
            .status == 400);
}
