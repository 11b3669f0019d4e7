// SPDX-License-Identifier: Apache-2.0
//
// Sessions whose server does not answer, over the stub, and the question which task does not answer.
#include "stub.hpp"
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/tensorflow/detail/cluster_tasks.hpp>
#include <stepwell/tensorflow/graph.hpp>
#include <stepwell/tensorflow/graph_session.hpp>
#include <stepwell/tensorflow/server.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

using namespace std::chrono_literals;

/// A socket that accepts connections and, if `answers` is true, sends something to each one.
class listener {
public:
  explicit listener(bool answers) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(any);
    auto* const raw = reinterpret_cast<sockaddr*>(&any);
    REQUIRE(::bind(socket_, raw, size) == 0);
    REQUIRE(::listen(socket_, 8) == 0);
    REQUIRE(::getsockname(socket_, raw, &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(any.sin_port));
    if (answers) {
      answering_ = std::jthread([this] {
        for (int one = ::accept(socket_, nullptr, nullptr); one >= 0; one = ::accept(socket_, nullptr, nullptr)) {
          static_cast<void>(::send(one, "settings", 8, MSG_NOSIGNAL));
          ::close(one);
        }
      });
    }
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    ::shutdown(socket_, SHUT_RDWR);
    answering_ = {};
    ::close(socket_);
  }

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] std::string url() const { return "grpc://" + address_; }

private:
  int socket_;
  std::string address_;
  std::jthread answering_;
};

/// Opens a session over the graph of the stub, with this server.
tf::graph_session session_with(const std::string& master) {
  const test::temporary_directory directory;
  const auto graph = tf::graph::import_meta_graph(test::write_file(directory / "a.meta", test::stub_meta_graph().SerializeAsString()));
  return tf::graph_session(graph, {.runtime = {.operation_timeout_in_ms = 50}, .target = {.master = master}});
}

}  // namespace

TEST_CASE("a task that accepts a connection but sends nothing does not answer", "[tensorflow][server]") {
  const listener stopped(false);
  const listener serving(true);
  const auto nobody = tf::free_local_address();
  tf::detail::add_cluster({{"worker", {serving.address()}}, {"ps", {nobody, stopped.address()}}});
  const std::vector<std::string> silent = {"/job:ps/task:0 at " + nobody, "/job:ps/task:1 at " + stopped.address()};
  CHECK(tf::detail::silent_tasks(serving.url(), 200ms) == silent);
  CHECK(tf::detail::silent_tasks("grpc://no.port", 200ms).size() == 3);
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
  const listener stopped(false);
  const test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(test::write_file(directory / "a.meta", test::stub_meta_graph().SerializeAsString()));
  const auto before = ::stub_sessions();
  {
    auto session = sw::monitored_training_session(graph, {.master = stopped.url(), .runtime = {.operation_timeout_in_ms = 50}});
    session.run();
    ::stub_block_closing(1);
    CHECK_NOTHROW(session.close());
  }
  CHECK(log.contains(sw::log_level::error, "no answer from"));
  ::stub_block_closing(0);
  CHECK(::stub_wait_for_sessions(before) == 1);
}

TEST_CASE("what servers prepare for a run ends within twice the time-out, because TensorFlow's own time-out is only for the run",
          "[tensorflow][server]") {
  const listener stopped(false);
  const test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(test::write_file(directory / "a.meta", test::stub_meta_graph().SerializeAsString()));
  const auto before = ::stub_sessions();
  const auto tensors = ::stub_tensors();
  {
    auto session = sw::monitored_training_session(graph, {.master = stopped.url(), .runtime = {.operation_timeout_in_ms = 50}});
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
