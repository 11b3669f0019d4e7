// SPDX-License-Identifier: Apache-2.0
//
// Sessions whose server does not answer, over the stub, and the question which task does not answer.
#include "stub.hpp"
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/tensorflow/proto/config.pb.h>
#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>
#include <stepwell/tensorflow/detail/cluster_tasks.hpp>
#include <stepwell/tensorflow/detail/config.hpp>
#include <stepwell/tensorflow/graph.hpp>
#include <stepwell/tensorflow/graph_session.hpp>
#include <stepwell/tensorflow/server.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

using namespace std::chrono_literals;

/// A server that accepts connections and, while `answers` is true, sends something to each one.
class listener {
public:
  explicit listener(bool answers) : answers_(answers), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(any);
    auto* const raw = reinterpret_cast<sockaddr*>(&any);
    REQUIRE(::bind(socket_, raw, size) == 0);
    REQUIRE(::listen(socket_, 8) == 0);
    REQUIRE(::getsockname(socket_, raw, &size) == 0);
    port_ = std::to_string(ntohs(any.sin_port));
    accepting_ = std::jthread([this] {
      for (int one = ::accept(socket_, nullptr, nullptr); one >= 0; one = ::accept(socket_, nullptr, nullptr)) { serve(one); }
    });
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    ::shutdown(socket_, SHUT_RDWR);
    accepting_ = {};
    for (const int one : silent_) { ::close(one); }
    ::close(socket_);
  }

  void set_answers(bool answers) { answers_ = answers; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + port_; }
  [[nodiscard]] const std::string& port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "grpc://" + address(); }

private:
  void serve(int one) {
    if (!answers_) { return silent_.push_back(one); }
    static_cast<void>(::send(one, "settings", 8, MSG_NOSIGNAL));
    ::close(one);
  }

  std::atomic<bool> answers_;
  int socket_;
  std::string port_;
  std::vector<int> silent_;  // open connections that get no answer
  std::jthread accepting_;
};

tf::graph stub_graph() {
  const test::temporary_directory directory;
  return tf::graph::import_meta_graph(test::write_file(directory / "a.meta", test::stub_meta_graph().SerializeAsString()));
}
/// Returns the graph of the stub with its train operation on this device.
tf::graph placed_graph(const char* device) {
  ::stub_place_train_op(device);
  auto graph = stub_graph();
  ::stub_place_train_op("");
  return graph;
}
/// Opens a session over the graph of the stub, with this server.
tf::graph_session session_with(const std::string& master) {
  const auto graph = stub_graph();
  return tf::graph_session(graph, {.runtime = {.operation_timeout_in_ms = 50}, .target = {.master = master}});
}

}  // namespace

TEST_CASE("a task that accepts a connection but sends nothing does not answer", "[tensorflow][server]") {
  const listener stopped(false);
  const listener serving(true);
  const auto nobody = tf::free_local_address();
  tf::detail::add_cluster({{"worker", {serving.address()}}, {"ps", {nobody, stopped.address()}}});
  const std::set<std::string> asked = {"/job:worker/task:0", "/job:ps/task:0", "/job:ps/task:1"};
  const std::vector<std::string> silent = {"/job:ps/task:0 at " + nobody, "/job:ps/task:1 at " + stopped.address()};
  CHECK(tf::detail::silent_tasks(serving.url(), 200ms, &asked) == silent);
  CHECK(tf::detail::silent_tasks("grpc://no.port", 200ms, &asked).size() == 3);
  CHECK(tf::detail::silent_tasks(serving.url(), 200ms).size() >= 2);  // without names, all are asked
  const std::set<std::string> nobody_else;
  CHECK(tf::detail::silent_tasks(serving.url(), 200ms, &nobody_else).empty());
}

TEST_CASE("a task is asked at each address of its host, and not at all if it is given in a form only TensorFlow knows",
          "[tensorflow][server]") {
  const listener serving(true);
  const std::set<std::string> nobody;
  CHECK(tf::detail::silent_tasks("grpc://localhost:" + serving.port(), 200ms, &nobody).empty());  // ::1 may be the first address
  CHECK(tf::detail::silent_tasks("grpc://dns:///127.0.0.1:1", 200ms, &nobody).empty());
}

TEST_CASE("a session uses the servers of the tasks that its graph names, and of its master", "[tensorflow][server]") {
  const std::string master = "127.0.0.1:3";
  tf::detail::add_cluster({{"filtered", {"127.0.0.1:1", "127.0.0.1:2"}}, {"filtering", {master}}});
  using names = std::vector<std::string>;
  const auto filters = [](const tf::graph_session_options& options) {
    tf::wire::ConfigProto config;
    REQUIRE(config.ParseFromString(tf::detail::config_bytes(options, {"/job:filtered/task:1", "/job:ps"})));
    return names(config.device_filters().begin(), config.device_filters().end());
  };
  const sw::session_target target{.master = "grpc://" + master};
  CHECK(filters({.target = target}) == names{"/job:filtered/task:1", "/job:filtering/task:0", "/job:ps"});
  CHECK(filters({}).empty());  // without a master
  CHECK(filters({.target = {.master = "grpc://elsewhere:3"}}).empty());
  CHECK(filters({.runtime = {.device_filters = names{"/job:ps"}}, .target = target}) == names{"/job:ps"});
  CHECK(filters({.runtime = {.device_filters = names{}}, .target = target}).empty());
  tf::wire::ConfigProto raw;
  raw.add_device_filters("/job:own");
  CHECK(filters({.runtime = {.config_proto = raw.SerializeAsString()}, .target = target}) == names{"/job:own"});
}

TEST_CASE("a session waits for the servers that its graph names, and begins when they answer", "[tensorflow][server]") {
  const test::log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  const listener master(true);
  listener ps(false);
  const auto other = tf::free_local_address();
  tf::detail::add_cluster({{"late_ps", {ps.address()}}, {"late_worker", {other}}});
  auto graph = placed_graph("/job:late_ps/replica:0/task:0/device:CPU:0");
  std::int64_t done = 0;
  std::jthread training([&] {
    auto session = sw::monitored_training_session(graph, {.master = master.url(), .clock = clock},
                                                  tf::graph_options{.runtime = {.operation_timeout_in_ms = 50}});
    session.run();
    done = session.global_step();
    session.close();
  });
  REQUIRE(clock->wait_for_pending(1));
  CHECK(log.contains(sw::log_level::info, "waiting for the session to be ready: no answer from /job:late_ps/task:0 at " + ps.address()));
  ps.set_answers(true);
  clock->advance(1s);
  training.join();
  CHECK(done == 1);
  CHECK_FALSE(log.contains(sw::log_level::info, other));  // the graph does not name it
}

TEST_CASE("a session that waits for a server gives up after max_wait_secs, and names it", "[tensorflow][server]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  const listener master(true);
  const auto nobody = tf::free_local_address();
  const auto is_chief = GENERATE(true, false);
  const std::string job = is_chief ? "lost_ps" : "ps_lost_by_workers";
  tf::detail::add_cluster({{job, {"127.0.0.1:1", nobody}}});
  auto graph = placed_graph(("/job:" + job + "/task:1").c_str());
  std::string message;
  std::jthread training([&] {
    try {
      auto session =
          sw::monitored_training_session(graph, {.master = master.url(), .is_chief = is_chief, .max_wait_secs = 2.5, .clock = clock});
    } catch (const sw::deadline_exceeded_error& failure) { message = failure.what(); }
  });
  for (int i = 0; i < 2; ++i) {
    REQUIRE(clock->wait_for_pending(1));
    clock->advance(1s);
  }
  training.join();
  CHECK_THAT(message,
             ContainsSubstring("Session was not ready after waiting 2.5 secs. no answer from /job:" + job + "/task:1 at " + nobody));
}

TEST_CASE("a run that ends by its time-out names the server that does not answer", "[tensorflow][server]") {
  const listener stopped(false);
  auto raw = session_with(stopped.url());
  constexpr int deadline_exceeded = 4;
  ::stub_fail(1, deadline_exceeded, "Operation timed out.");
  CHECK_THROWS_AS(raw.init_variables(), sw::deadline_exceeded_error);
  ::stub_fail(1, deadline_exceeded, "Operation timed out.");
  CHECK_THROWS_WITH(raw.init_variables(),
                    ContainsSubstring("Operation timed out.; no answer from ") && ContainsSubstring(stopped.address()));
}

TEST_CASE("closing a session whose server does not answer ends within the time-out", "[tensorflow][server]") {
  const listener stopped(false);
  const auto before = ::stub_sessions();
  ::stub_block_closing(1);
  {
    auto raw = session_with(stopped.url());
    CHECK(::stub_sessions() == before + 1);
    CHECK_THROWS_AS(raw.close(), sw::deadline_exceeded_error);
    CHECK_THROWS_WITH(raw.close(), ContainsSubstring("within 50 ms: no answer from ") && ContainsSubstring(stopped.address()));
  }
  CHECK(::stub_sessions() == before + 1);  // abandoned, because closing has not ended
  ::stub_block_closing(0);
  CHECK(::stub_wait_for_sessions(before) == 1);
}

TEST_CASE("a training session whose server does not answer closes with a message in the log", "[tensorflow][server]") {
  const test::log_capture log;
  listener stopped(true);
  auto graph = stub_graph();
  const auto before = ::stub_sessions();
  {
    auto session =
        sw::monitored_training_session(graph, {.master = stopped.url()}, tf::graph_options{.runtime = {.operation_timeout_in_ms = 50}});
    session.run();
    stopped.set_answers(false);
    ::stub_block_closing(1);
    CHECK_NOTHROW(session.close());
  }
  CHECK(log.contains(sw::log_level::error, "no answer from"));
  ::stub_block_closing(0);
  CHECK(::stub_wait_for_sessions(before) == 1);
}

TEST_CASE("the preparation of a run by servers ends within twice the time-out, because TensorFlow's own time-out is only for the run",
          "[tensorflow][server]") {
  listener stopped(true);
  auto graph = stub_graph();
  const auto before = ::stub_sessions();
  const auto tensors = ::stub_tensors();
  {
    auto session =
        sw::monitored_training_session(graph, {.master = stopped.url()}, tf::graph_options{.runtime = {.operation_timeout_in_ms = 50}});
    stopped.set_answers(false);
    ::stub_block_runs(1);
    CHECK_THROWS_WITH(session.run(),
                      ContainsSubstring("could not run a step of the graph: TensorFlow has not ended within 100 ms: no answer from ") &&
                          ContainsSubstring(stopped.address()));
    auto raw = session_with(stopped.url());
    CHECK_THROWS_AS(raw.init_variables(), sw::deadline_exceeded_error);
    ::stub_block_runs(0);
  }
  CHECK(::stub_wait_for_sessions(before) == 1);
  CHECK(::stub_tensors() == tensors);  // the values of abandoned runs are deleted
}
