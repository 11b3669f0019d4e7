// SPDX-License-Identifier: Apache-2.0
#include "torch_and_catch.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stepwell/base/clock.hpp>
#include <stepwell/torch/detail/c10d_engine.hpp>
#include <stepwell/torch/detail/tcp_store.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

namespace sw = stepwell;
namespace torch_detail = stepwell::libtorch::detail;
using namespace std::chrono_literals;

namespace {

/// Returns a port of this machine that is free now.
int free_port() {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof any;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&any), length) == 0);
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&any), &length) == 0);
  ::close(socket);
  return ntohs(any.sin_port);
}

/// One of two processes, in a thread of this one.
struct member {
  member(int rank, int port)
      : engine(torch_detail::make_c10d_engine({.launcher = "torchrun", .rank = rank, .size = 2, .host = "127.0.0.1", .port = port}, 5s)) {}

  void form(std::int64_t last) {
    formed = engine->form({.time = *sw::system_clock(),
                           .stop = {},
                           .until = sw::system_clock()->now() + 20s,
                           .min_size = 2,
                           .patience = 1s,
                           .last_generation = last,
                           .is_recovery = last > 0,
                           .check = {}});
  }

  std::unique_ptr<sw::engine> engine;
  sw::formed_collective formed = {};
};

/// Forms the group in both members, after the generation `last`.
void form_both(member& chief, member& worker, std::int64_t last) {
  std::exception_ptr failure;
  std::thread beside([&] {
    try {
      worker.form(last);
    } catch (...) { failure = std::current_exception(); }
  });
  CHECK_NOTHROW(chief.form(last));
  beside.join();
  if (failure) { std::rethrow_exception(failure); }
}

}  // namespace

TEST_CASE("a former process of a rank that connects again does not keep the group from forming", "[torch][group]") {
  const int port = free_port();
  member chief(0, port);
  member worker(1, port);
  form_both(chief, worker, 0);
  for (std::int64_t last = 1; last < 5; ++last) {  // whether a process looks at the identities depends on which one is faster
    {
      torch_detail::tcp_store former("127.0.0.1", port, 2s, {"process/1", "a former process of rank 1"});
      CHECK(former.get("round").has_value());
    }
    form_both(chief, worker, last);
    CHECK(chief.formed.generation == last + 1);
    CHECK(worker.formed.generation == last + 1);
  }
}
