// SPDX-License-Identifier: Apache-2.0
//
// Also runs with the portable fallback (portable/unit_base).
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/detail/platform.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace {

namespace platform = stepwell::detail::platform;

/// A descriptor that is closed at the end.
struct owned_descriptor {
  explicit owned_descriptor(int number_) : number(number_) {}
  owned_descriptor(const owned_descriptor&) = delete;
  owned_descriptor& operator=(const owned_descriptor&) = delete;
  ~owned_descriptor() { ::close(number); }
  int number;
};

int open_new(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }

}  // namespace

TEST_CASE("hints about a file change neither its content nor its size, whatever the system does with them", "[base][platform]") {
  const stepwell::test::temporary_directory directory;
  const owned_descriptor file(open_new(directory / "file"));
  REQUIRE(file.number >= 0);
  REQUIRE(::pwrite(file.number, "abc", 3, 100'000) == 3);
  platform::start_reading(file.number, 0, 100'003);
  platform::start_writeback(file.number, 0, 100'003);
  CHECK(platform::sync_to_disk(file.number) == 0);
  const auto data = platform::skip_hole(file.number, 0);
  CHECK(data <= 100'000);
  CHECK(platform::skip_hole(file.number, 100'001) == 100'001);
  const bool is_cached = platform::is_mostly_cached(file.number, 100'000, 3);
  if (platform::is_portable()) {
    CHECK(is_cached);
    CHECK(platform::open_uncached(file.number, O_RDONLY) == -1);
  }
  struct ::stat about{};
  REQUIRE(::fstat(file.number, &about) == 0);
  CHECK(about.st_size == 100'003);
  CHECK(platform::modification_time(about).tv_sec > 1'000'000'000);
}

TEST_CASE("a sync of a closed descriptor fails with the error of the system", "[base][platform]") {
  errno = 0;
  CHECK(platform::sync_to_disk(-1) == -1);
  CHECK(errno == EBADF);
}

TEST_CASE("memory with a hint for huge pages keeps its content", "[base][platform]") {
  constexpr std::size_t size = std::size_t{2} << 20;
  const std::unique_ptr<std::byte, void (*)(void*)> memory(static_cast<std::byte*>(std::aligned_alloc(size, size)), &std::free);
  REQUIRE(memory);
  *memory = std::byte{7};
  platform::prefer_huge_pages({memory.get(), size});
  CHECK(*memory == std::byte{7});
}

TEST_CASE("signals have their names, and signals without a name have a number", "[base][platform]") {
  for (const auto& [signal, name] : std::array<std::pair<int, const char*>, 6>{{{SIGTERM, "SIGTERM"},
                                                                                {SIGINT, "SIGINT"},
                                                                                {SIGUSR1, "SIGUSR1"},
                                                                                {SIGKILL, "SIGKILL"},
                                                                                {SIGXCPU, "SIGXCPU"},
                                                                                {SIGSYS, "SIGSYS"}}}) {
    CHECK(platform::signal_name(signal) == name);
  }
  CHECK(platform::signal_name(-5) == "signal -5");
  CHECK(platform::signal_name(4711) == "signal 4711");
}

TEST_CASE("ticks of the kernel do not go back, and are absent with the portable fallback", "[base][platform]") {
  const auto tick = platform::clock_tick();
  if (platform::is_portable()) { CHECK_FALSE(tick); }
  if (tick) { CHECK(*platform::clock_tick() >= *tick); }
}

TEST_CASE("a socket is not inherited by other programs, waits unless it must not, and a closed peer raises no signal", "[base][platform]") {
  const bool is_blocking = GENERATE(true, false);
  const owned_descriptor listening(platform::open_socket(AF_INET, SOCK_STREAM, 0));
  REQUIRE(listening.number >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const here = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  REQUIRE(::bind(listening.number, here, length) == 0);
  REQUIRE(::listen(listening.number, 1) == 0);
  REQUIRE(::getsockname(listening.number, here, &length) == 0);

  const owned_descriptor socket(platform::open_socket(AF_INET, SOCK_STREAM, 0, is_blocking));
  CHECK((::fcntl(socket.number, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(((::fcntl(socket.number, F_GETFL) & O_NONBLOCK) == 0) == is_blocking);
  REQUIRE((::connect(socket.number, here, length) == 0 || errno == EINPROGRESS));
  {
    const owned_descriptor peer(::accept(listening.number, nullptr, nullptr));
    REQUIRE(peer.number >= 0);
    const linger at_once{1, 0};  // the close sends a reset
    REQUIRE(::setsockopt(peer.number, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    CHECK(platform::send_without_signal(socket.number, std::as_bytes(std::span("a", 1))) == 1);
  }
  ssize_t sent = 0;
  for (int i = 0; i < 3 && sent >= 0; ++i) { sent = platform::send_without_signal(socket.number, std::as_bytes(std::span("a", 1))); }
  CHECK(sent == -1);  // SIGPIPE would have ended this program
  CHECK(platform::open_socket(-1, SOCK_STREAM, 0) == -1);
}
