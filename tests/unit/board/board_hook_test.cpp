// SPDX-License-Identifier: Apache-2.0
//
// The board of a session, over the loopback device.
#include "support/catch.hpp"
#include "support/http_client.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"
#include "support/thread_group.hpp"

#include <stepwell/board/board_hook.hpp>
#include <stepwell/board/http_server.hpp>
#include <stepwell/group/group.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace asio = boost::asio;
using asio::ip::tcp;
using nlohmann::json;
using sw::test::http_client;
using sw::test::session_rig;

namespace {

/// The port and the token of a URL such as "http://127.0.0.1:6007/#token=0123".
struct place {
  std::uint16_t port = 0;
  std::string token;

  explicit place(const std::string& url) {
    const auto colon = url.rfind(':');
    port = static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1)));
    token = url.substr(url.find("#token=") + 7);
  }
};

std::string get(std::uint16_t port, const std::string& target) { return http_client(port).ask("GET", target); }
std::string body_of(const std::string& said) { return said.substr(said.find("\r\n\r\n") + 4); }
json value(std::uint16_t port, const std::string& target) { return json::parse(body_of(get(port, target))); }
std::string post(const place& at, const std::string& action, const std::string& body = "{}") {
  return http_client(at.port).ask("POST", "/api/actions/" + action,
                                  "Authorization: Bearer " + at.token + "\r\nContent-Type: application/json\r\n", body);
}

/// Options of a board that looks at each step.
sw::board_options each_step() {
  return {.port = 0, .update_secs = 0, .on_ready = [](const std::string&) {}};
}

using result = sw::test::adding_model::result;

/// Adds the number of processes of its group in each step.
struct process_counter {
  struct result {
    double total;
  };
  std::shared_ptr<sw::group> group;
  double total = 0;

  result step() {
    double one = 1;
    group->sum(one);
    return {total += one};
  }
  [[nodiscard]] sw::variable_list variables() { return sw::variables({{"total", total}}); }
};

/// Returns a session with a checkpoint at its start, and with a board that looks at it every 10 s.
auto session_with_rare_looks(session_rig& rig) {
  auto options = rig.options();
  options.saves.save_steps = 1000;
  auto board = each_step();
  board.update_secs = 10;
  return sw::monitored_training_session(rig.model, options, sw::board_hook(board));
}

}  // namespace

TEST_CASE("a board shows its session while it trains, and its events", "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  sw::stop_at_step_hook stop{{.last_step = 1000}};
  auto session =
      sw::monitored_training_session(rig.model, rig.options(), stop, sw::board_hook(each_step(), sw::tag("loss", &result::loss)));
  const place at(session.hook<sw::board_hook<decltype(sw::tag("loss", &result::loss))>>().url());
  sw::test::run_until(session, 3);
  auto seen = value(at.port, "/api/session");
  CHECK(seen["phase"] == "running");
  CHECK(seen["step"] == 3);
  CHECK(seen["last_step"] == 1000);
  CHECK(seen["watched"][0] == json{{"name", "loss"}, {"value", 6}, {"step", 3}});
  REQUIRE(seen["step_time"].is_object());
  CHECK(seen["step_time"]["samples"] == 2);

  http_client listener(at.port);
  listener.send("GET /api/live HTTP/1.1\r\nHost: localhost:" + std::to_string(at.port) + "\r\n\r\n");
  CHECK(listener.until("\r\n\r\n").find("text/event-stream") != std::string::npos);
  CHECK(listener.until("\n\n").find("event: state\n") != std::string::npos);
  sw::test::run_until(session, 4);
  CHECK(listener.until("event: values\n").find("\"step\":4") != std::string::npos);
  sw::log_warning("a warning for the page");
  CHECK(listener.until("a warning for the page").find("event: log\n") != std::string::npos);
  session.close();
  static_cast<void>(listener.until("event: end\n"));
  CHECK(listener.until("\n\n").find("\"phase\":\"ended\"") != std::string::npos);
  CHECK(value(at.port, "/api/session")["phase"] == "ended");
}

TEST_CASE("a checkpoint, a stop and a trace can be requested on the board", "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.saves.save_steps = 1000;
  auto session = sw::monitored_training_session(rig.model, options, sw::board_hook(each_step()));
  const place at(session.hook<sw::board_hook<>>().url());
  sw::test::run_until(session, 3);
  sw::test::wait_for_saves(session);
  CHECK(http_client(at.port).ask("POST", "/api/actions/stop", "Content-Type: application/json\r\n", "{}").starts_with("HTTP/1.1 401 "));
  CHECK_FALSE(session.should_stop());

  CHECK(post(at, "checkpoint").starts_with("HTTP/1.1 202 "));
  sw::test::run_until(session, 4);
  sw::test::wait_for_saves(session);
  sw::test::run_until(session, 6);
  CHECK(value(at.port, "/api/actions/1")["state"] == "done");
  CHECK(value(at.port, "/api/session")["checkpoints"]["newest"]["step"] == 4);
  CHECK(rig.steps() == "0 4");

  CHECK(post(at, "trace", R"({"steps": 2})").starts_with("HTTP/1.1 202 "));
  sw::test::run_until(session, 10);
  const auto trace = value(at.port, "/api/actions/2");
  REQUIRE(trace["state"] == "done");
  const auto events = value(at.port, trace["download"])["traceEvents"];
  int runs = 0;
  for (const auto& event : events) { runs += event["name"] == "run" ? 1 : 0; }
  CHECK(runs == 2);

  CHECK(post(at, "stop").starts_with("HTTP/1.1 202 "));
  CHECK(session.should_stop());
  session.close();
  CHECK(value(at.port, "/api/actions/3")["state"] == "done");
  CHECK(session.stop_reason().text == "requested on the board");
}

TEST_CASE("a checkpoint that is saved between two looks of the board is durable", "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto session = session_with_rare_looks(rig);
  const place at(session.hook<sw::board_hook<>>().url());
  sw::test::run_until(session, 3);
  sw::test::wait_for_saves(session);
  CHECK(post(at, "checkpoint").starts_with("HTTP/1.1 202 "));
  sw::test::run_until(session, 5);
  sw::test::wait_for_saves(session);
  rig.clock->advance(std::chrono::seconds(10));
  sw::test::run_until(session, 6);
  CHECK(value(at.port, "/api/actions/1")["state"] == "done");
  CHECK(value(at.port, "/api/actions/1")["text"] == "the checkpoint is durable");
  rig.clock->advance(std::chrono::seconds(10));
  sw::test::run_until(session, 7);  // this look shows the step that the one before has measured
  const auto time = value(at.port, "/api/session")["step_time"];
  REQUIRE(time.is_object());
  for (const auto& hook : time["hooks"]) { CHECK(hook["name"].get<std::string>().find('<') == std::string::npos); }
  session.close();
}

TEST_CASE("a checkpoint that is requested long after the last look of the board is made, and not said to be saved already",
          "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto session = session_with_rare_looks(rig);
  const place at(session.hook<sw::board_hook<>>().url());
  sw::test::run_until(session, 3);
  sw::test::wait_for_saves(session);  // of the first checkpoint
  rig.clock->advance(std::chrono::seconds(10));
  sw::test::run_until(session, 9);
  rig.clock->advance(std::chrono::seconds(10));
  CHECK(post(at, "checkpoint").starts_with("HTTP/1.1 202 "));
  sw::test::run_until(session, 10);  // the board looks before the save of this step
  sw::test::wait_for_saves(session);
  rig.clock->advance(std::chrono::seconds(10));
  sw::test::run_until(session, 11);
  CHECK(value(at.port, "/api/actions/1")["text"] == "the checkpoint is durable");
  CHECK(rig.steps() == "0 10");
  session.close();
}

TEST_CASE("a board shows the curves of its run and of the runs beside it, and marks a recovery", "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  const auto parent = rig.directory.path();
  sw::summary::writer(parent + "/before").add_scalar("loss", 1.0f, 1);
  auto options = rig.options();
  options.summary_dir = parent + "/now";
  options.retry.initial_backoff = 0;
  rig.model.before = [fails = true](std::int64_t batch) mutable {
    if (batch == 6 && std::exchange(fails, false)) { throw sw::aborted_error("a server restarts"); }
  };
  auto session = sw::monitored_training_session(rig.model, options, sw::board_hook(each_step()),
                                                sw::summary_saver_hook({.save_steps = 1}, sw::summary::scalar("loss", &result::loss)));
  const place at(session.hook<sw::board_hook<>>().url());
  sw::test::run_until(session, 5);
  sw::test::wait_for_saves(session);
  session.run(6);
  const auto runs = value(at.port, "/api/runs")["runs"];
  REQUIRE(runs.size() == 2);
  CHECK(runs[0]["run"] == "before");
  CHECK(runs[1]["is_live"] == true);
  CHECK(value(at.port, "/api/board")["live_run"] == "now");
  CHECK(value(at.port, "/api/session")["recoveries"] == 1);
  session.close();
  const auto marks = value(at.port, "/api/marks?run=now")["marks"];
  bool has_recovery = false;
  for (const auto& mark : marks) {
    has_recovery =
        has_recovery || (mark["kind"] == "recovery" && mark["text"].get<std::string>().starts_with("recovered: a server restarts"));
  }
  CHECK(has_recovery);
  CHECK(value(at.port, "/api/tags?run=now")["runs"][0]["tags"].size() >= 1);
}

namespace {

/// A source of three epochs with ten batches each.
struct epochs_source {
  std::int64_t next = 1;

  const std::int64_t* peek() { return next <= 30 ? &next : nullptr; }
  void advance() { ++next; }
  [[nodiscard]] std::uint64_t epoch() const { return static_cast<std::uint64_t>(next - 1) / 10; }
  [[nodiscard]] bool is_last_of_epoch() const { return next % 10 == 0; }
  [[nodiscard]] std::uint64_t epochs() const { return 3; }
};

}  // namespace

TEST_CASE("a board shows each condition that ends the loop, and how far away it is", "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto session = sw::monitored_training_session(
      rig.model, rig.options(), sw::stop_at_step(50), sw::stop_at_epoch(2), sw::time_limit_hook(100),
      sw::early_stopping_hook({.patience = 40}, sw::tag("loss", &result::loss)), sw::board_hook(each_step()));
  const place at(session.hook<sw::board_hook<>>().url());
  epochs_source source;
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 15) { break; }
    if (step.global_step == 10) { rig.clock->advance(std::chrono::seconds(10)); }
  }
  const auto seen = value(at.port, "/api/session");
  std::map<std::string, json> found;
  for (const auto& one : seen["stop_conditions"]) { found[one["name"]] = one; }
  REQUIRE(found.size() == 5);
  CHECK(found["last step"]["distance"] == 35);
  CHECK(found["time limit"]["distance"] == 90);
  CHECK(found["time limit"]["unit"] == "seconds");
  CHECK(found["time limit"]["fraction"] == 0.1);
  CHECK(found["last epoch"]["distance"] == 1);
  CHECK(found["end of data"]["distance"] == 2);      // the epoch in progress, and one more
  CHECK(found["early_stopping"]["distance"] == 27);  // before this step, 13 losses were not better than the first one
  CHECK(found["early_stopping"]["text"] == "ends when 40 values of loss in a row are not better");
  CHECK(seen["stop_conditions"][0]["name"] == "time limit");  // at 0.1 steps/s it is earlier than the last step
  CHECK(seen["remaining_seconds"] == 90);
  session.close();
}

TEST_CASE("a session without event files has the curves of its watched values", "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  sw::training_options options;
  options.step_counter.every_n_steps = sw::none;
  options.name = "digits";
  options.clock = rig.clock;
  auto session = sw::monitored_training_session(rig.model, options, sw::board_hook(each_step(), sw::tag("loss", &result::loss)));
  const place at(session.hook<sw::board_hook<decltype(sw::tag("loss", &result::loss))>>().url());
  sw::test::run_until(session, 20);
  CHECK(value(at.port, "/api/board")["live_run"] == "digits");
  CHECK(value(at.port, "/api/runs")["runs"][0]["run"] == "digits");
  CHECK(value(at.port, "/api/runs")["runs"][0]["is_live"] == true);
  const auto run = value(at.port, "/api/tags?run=digits")["runs"][0];
  REQUIRE(run["tags"].size() == 1);
  CHECK(run["tags"][0]["tag"] == "loss");
  CHECK(run["tags"][0]["points"] == 20);
  CHECK(run["last_step"] == 20);
  CHECK(body_of(get(at.port, "/api/curve?run=digits&tag=loss")).size() == 32 + 20 * 12 * 8);
  CHECK(value(at.port, "/api/marks?run=digits")["marks"].empty());
  CHECK(value(at.port, "/api/checkpoints?run=digits")["checkpoints"].empty());
  CHECK(get(at.port, "/api/histograms?run=digits&tag=loss").starts_with("HTTP/1.1 404 "));
  session.close();
}

TEST_CASE("a checkpoint that the session has restored is verified; others are not", "[board][hook]") {
  const sw::test::log_capture log;
  session_rig rig;
  {
    auto session = rig.start();
    sw::test::run_until(session, 4);
    session.close();
  }
  auto session = sw::monitored_training_session(rig.model, rig.options(), sw::board_hook(each_step()));
  const place at(session.hook<sw::board_hook<>>().url());
  const auto run = value(at.port, "/api/board")["live_run"].get<std::string>();
  CHECK(value(at.port, "/api/session")["checkpoints"]["newest"]["is_verified"] == true);
  sw::test::run_until(session, 6);
  sw::test::wait_for_saves(session);
  sw::test::run_until(session, 7);
  const auto all = value(at.port, "/api/checkpoints?run=" + run)["checkpoints"];
  REQUIRE(all.size() >= 2);
  for (const auto& one : all) { CHECK(one["is_verified"] == (one["step"] == 4 ? json(true) : json())); }
  session.close();
}

TEST_CASE("a board shows all ranks of its group, and which of them is lost", "[board][hook]") {
  const sw::test::log_capture log;
  std::vector<json> seen;
  const auto train = [&](const std::shared_ptr<sw::group>& group) {
    const int rank = group->rank();
    process_counter model{group};
    const sw::training_options options{.step_counter = {.every_n_steps = sw::none}, .retry = {.initial_backoff = 0}, .group = group};
    if (rank == 0) {
      auto session = sw::monitored_training_session(model, options, sw::stop_at_step(6), sw::board_hook(each_step()));
      const place at(session.hook<sw::board_hook<>>().url());
      session.run();
      seen.push_back(value(at.port, "/api/ranks")["ranks"]);
      while (!session.should_stop()) { session.run(); }
      seen.push_back(value(at.port, "/api/ranks")["ranks"]);
      seen.push_back(value(at.port, "/api/session")["group"]);
      session.close();
      return;
    }
    auto session = sw::monitored_training_session(model, options, sw::stop_at_step(6));
    for (const auto& step : session.steps()) {
      if (rank == 1 && step.global_step == 3) { throw std::runtime_error("this process ends"); }
    }
    session.close();
  };
  const auto failures = sw::test::thread_job(3).run(train, {.min_size = 2, .patience_secs = 0});
  CHECK(failures[0] == nullptr);
  CHECK(failures[1] != nullptr);
  CHECK(failures[2] == nullptr);
  REQUIRE(seen.size() == 3);
  for (const int rank : {0, 1, 2}) {
    const json all{{"rank", rank}, {"size", 3}, {"generation", 1}, {"is_this_process", rank == 0}, {"is_lost", false}};
    CHECK(seen[0].at(static_cast<std::size_t>(rank)) == all);
    const json left{{"rank", rank}, {"size", 3}, {"generation", 2}, {"is_this_process", rank == 0}, {"is_lost", rank == 1}};
    CHECK(seen[1].at(static_cast<std::size_t>(rank)) == left);
  }
  CHECK(seen[2] == json{{"generation", 2}, {"rank", 0}, {"size", 2}});
}

TEST_CASE("a port that is in use is replaced by a free one, and an address that is wrong is an error", "[board][hook]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  const sw::directory_board first({.port = 0, .runs_directory = directory.path(), .on_ready = [](const std::string&) {}});
  const place at(first.url());
  const sw::directory_board second({.port = at.port, .runs_directory = directory.path(), .on_ready = [](const std::string&) {}});
  CHECK(place(second.url()).port != at.port);
  CHECK(log.contains(sw::log_level::warning, "is in use"));
  CHECK(get(at.port, "/").find("Content-Security-Policy: default-src 'none'; script-src ") != std::string::npos);
  CHECK_THROWS_AS(sw::directory_board({.address = "localhost", .runs_directory = directory.path()}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::directory_board({.address = "192.0.2.1", .runs_directory = directory.path()}), sw::unavailable_error);
  std::ofstream(directory.path() + "/file") << "";
  CHECK_THROWS_AS(sw::directory_board({.runs_directory = directory.path() + "/file"}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::board_hook<>({.update_secs = -1}), sw::invalid_argument_error);
}

TEST_CASE("a board may be started before the directory of its runs exists", "[board][hook]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  const auto later = directory.path() + "/runs";
  const sw::directory_board waiting({.port = 0, .runs_directory = later, .on_ready = [](const std::string&) {}});
  const place at(waiting.url());
  CHECK(log.contains(sw::log_level::warning, "there is no directory " + later + " yet"));
  CHECK(get(at.port, "/api/board").find(R"("is_missing":true)") != std::string::npos);
  CHECK(get(at.port, "/api/runs").find(R"("runs":[])") != std::string::npos);
  sw::summary::writer(later + "/a").add_scalar("loss", 1.0f, 1);
  CHECK(get(at.port, "/api/board").find(R"("is_missing":false)") != std::string::npos);
  CHECK(get(at.port, "/api/runs").find(R"("run":"a")") != std::string::npos);
}

TEST_CASE("slow and idle connections do not keep others from the server", "[board][hook]") {
  asio::io_context loop;
  sw::board::http_server server(loop, {.max_connections = 10, .patience = std::chrono::milliseconds(200)},
                                [](const sw::board::request&) { return sw::board::answer{200, "good", "text/plain"}; });
  server.start();
  std::thread thread([&] { loop.run(); });
  std::vector<std::unique_ptr<http_client>> idle;
  for (int i = 0; i < 50; ++i) {
    idle.push_back(std::make_unique<http_client>(server.port()));
    try {
      if (i % 2 == 0) { idle.back()->send("GET / HTTP/1.1\r\nX: "); }  // a request that never ends
    } catch (const boost::system::system_error&) {}                    // closed already
  }
  CHECK(get(server.port(), "/").ends_with("good"));
  for (const auto& one : idle) { CHECK(one->rest().find("200 OK") == std::string::npos); }  // each is closed, the last after its time
  asio::post(loop, [&] { server.stop(); });
  thread.join();
}

TEST_CASE("a connection above the limit is served when one of the busy connections has ended", "[board][hook]") {
  /// Sends one event, then nothing until `has_ended` is set.
  struct silence final : sw::board::event_source {
    std::optional<std::string> next() override { return has_ended ? std::nullopt : std::optional(std::exchange(event, "")); }
    std::string event = "data: begun\n\n";
    bool has_ended = false;
  };
  std::vector<std::shared_ptr<silence>> streams;
  asio::io_context loop;
  sw::board::http_server server(loop, {.max_connections = 2, .stream_period = std::chrono::milliseconds(1)},
                                [&](const sw::board::request&) {
                                  sw::board::answer said;
                                  said.events = streams.emplace_back(std::make_shared<silence>());
                                  return said;
                                });
  server.start();
  const auto run_until = [&](auto done) {
    while (!done()) { loop.run_one(); }
  };
  asio::io_context context;
  std::vector<tcp::socket> all;
  const auto ask = [&] {
    all.emplace_back(context).connect({asio::ip::address_v4::loopback(), server.port()});
    asio::write(all.back(), asio::buffer(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  };
  for (const std::size_t count : {1U, 2U}) {
    ask();
    run_until([&] { return streams.size() == count && all.back().available() > 0; });
  }
  ask();
  for (int i = 0; i < 1000; ++i) { loop.run_one(); }  // hundreds of looks of the two streams for events
  CHECK(streams.size() == 2);
  streams[0]->has_ended = true;
  run_until([&] { return streams.size() == 3 && all.back().available() > 0; });
  server.stop();
  loop.run();
}

TEST_CASE("5,000 idle connections do not keep a page from the board, and the training continues", "[board][hook]") {
  constexpr std::size_t connections = 5000;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const auto before = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < connections + 1000) {
    WARN("skipped: this process may open " << files.rlim_cur << " files only; 5,000 idle connections are not tested");
    return;
  }
  const sw::test::log_capture log;
  session_rig rig;
  auto session = sw::monitored_training_session(rig.model, rig.options(), sw::board_hook(each_step()));
  const place at(session.hook<sw::board_hook<>>().url());
  {
    asio::io_context context;
    std::vector<tcp::socket> idle;
    for (std::size_t i = 0; i < connections; ++i) {
      idle.emplace_back(context).connect({asio::ip::address_v4::loopback(), at.port});
      boost::system::error_code closed;  // the oldest connections are closed for new ones
      if (i % 2 == 0) { asio::write(idle.back(), asio::buffer(std::string("GET / HTTP/1.1\r\nX: ")), closed); }
      if (i % 500 == 0) { session.run(session.global_step() + 1); }
    }
    CHECK(value(at.port, "/api/session")["step"].get<std::int64_t>() >= 9);
    CHECK(get(at.port, "/").starts_with("HTTP/1.1 200 OK\r\n"));
  }
  sw::test::run_until(session, 20);
  CHECK(value(at.port, "/api/session")["step"] == 20);
  session.close();
  files.rlim_cur = before;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

namespace {

/// Events without end.
class flood final : public sw::board::event_source {
public:
  explicit flood(std::atomic<bool>& is_over) : is_over_(is_over) {}
  ~flood() override { is_over_ = true; }
  std::optional<std::string> next() override { return "data: " + std::string(std::size_t{4} << 20, 'x') + "\n\n"; }

private:
  std::atomic<bool>& is_over_;
};

}  // namespace

TEST_CASE("a client that does not read its stream is disconnected, and others are served meanwhile", "[board][hook]") {
  std::atomic<bool> is_over = false;
  asio::io_context loop;
  sw::board::http_server server(loop, {.patience = std::chrono::milliseconds(300), .stream_period = std::chrono::milliseconds(10)},
                                [&](const sw::board::request& asked) {
                                  sw::board::answer said{200, "good", "text/plain"};
                                  if (asked.target == "/live") { said.events = std::make_shared<flood>(is_over); }
                                  return said;
                                });
  server.start();
  std::thread thread([&] { loop.run(); });
  http_client deaf(server.port());
  deaf.send("GET /live HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(deaf.until("\r\n\r\n").find("text/event-stream") != std::string::npos);
  CHECK_FALSE(is_over);
  int served = 0;
  while (!is_over) { served += get(server.port(), "/").ends_with("good") ? 1 : 0; }  // ends after the time of the server
  CHECK(served > 0);
  asio::post(loop, [&] { server.stop(); });
  thread.join();
}
