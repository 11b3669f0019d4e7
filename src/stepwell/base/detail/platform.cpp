// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/platform.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <utility>

// Each macro says that the calls of the system are used. Without them, only calls of POSIX are left.
#ifndef STEPWELL_PORTABLE_IO
#ifdef __linux__
#define STEPWELL_HAS_LINUX
#endif
#ifdef POSIX_FADV_WILLNEED
#define STEPWELL_HAS_FADVISE
#endif
#ifdef MADV_HUGEPAGE
#define STEPWELL_HAS_HUGE_PAGES
#endif
#ifdef CLOCK_REALTIME_COARSE
#define STEPWELL_HAS_TICKS
#endif
#if defined(SOCK_CLOEXEC) && defined(SOCK_NONBLOCK)
#define STEPWELL_HAS_SOCKET_FLAGS
#endif
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#define STEPWELL_HAS_SIGNAL_NAMES
#endif
#endif

namespace stepwell::detail {

bool platform::is_portable() noexcept {
#ifdef STEPWELL_PORTABLE_IO
  return true;
#else
  return false;
#endif
}

int platform::open_uncached([[maybe_unused]] int cached, [[maybe_unused]] int access) noexcept {
#if defined(STEPWELL_HAS_LINUX) && defined(O_DIRECT)
  std::array<char, 32> path{"/proc/self/fd/"};
  const auto written = std::strlen(path.data());
  std::to_chars(path.data() + written, path.data() + path.size() - 1, cached);
  return ::open(path.data(), access | O_DIRECT | O_CLOEXEC);
#else
  errno = ENOTSUP;
  return -1;
#endif
}

bool platform::is_mostly_cached([[maybe_unused]] int descriptor, [[maybe_unused]] std::uint64_t offset,
                                [[maybe_unused]] std::uint64_t size) noexcept {
#ifdef STEPWELL_HAS_LINUX
  static const auto unit = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = offset / unit * unit;
  const auto length = static_cast<std::size_t>(offset + size - begin);
  if (size == 0) { return true; }
  void* const mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(begin));  // never accessed
  if (mapped == MAP_FAILED) { return true; }
  const std::uint64_t pages = (length + unit - 1) / unit;
  const auto samples = std::min<std::uint64_t>(pages, 16);
  std::uint64_t missing = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    unsigned char state = 1;
    auto* const page = static_cast<char*>(mapped) + i * pages / samples * unit;
    if (::mincore(page, static_cast<std::size_t>(unit), &state) == 0 && (state & 1) == 0) { ++missing; }
  }
  ::munmap(mapped, length);
  return missing <= samples / 2;
#else
  return true;
#endif
}

void platform::start_reading([[maybe_unused]] int descriptor, [[maybe_unused]] std::uint64_t offset,
                             [[maybe_unused]] std::uint64_t size) noexcept {
#ifdef STEPWELL_HAS_FADVISE
  static_cast<void>(::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_WILLNEED));
#endif
}

void platform::start_writeback([[maybe_unused]] int descriptor, [[maybe_unused]] std::uint64_t offset,
                               [[maybe_unused]] std::uint64_t size) noexcept {
#if defined(STEPWELL_HAS_LINUX) && defined(SYNC_FILE_RANGE_WRITE)
  static_cast<void>(::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE));
#endif
}

std::uint64_t platform::skip_hole([[maybe_unused]] int descriptor, std::uint64_t offset) noexcept {
#ifdef SEEK_DATA  // POSIX.1-2024; Linux, macOS and FreeBSD have it. Without it, a file with a huge hole takes as long as one without.
  const auto found = ::lseek(descriptor, static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) { return static_cast<std::uint64_t>(found); }
  struct ::stat about{};
  const bool is_hole_to_the_end = errno == ENXIO && ::fstat(descriptor, &about) == 0;
  if (is_hole_to_the_end) { return std::max(offset, static_cast<std::uint64_t>(about.st_size)); }
#endif
  return offset;
}

int platform::sync_to_disk(int descriptor) noexcept {
#ifdef F_FULLFSYNC  // macOS: fsync does not make the disk write its cache. Some file systems lack F_FULLFSYNC, as those of a network.
  if (::fcntl(descriptor, F_FULLFSYNC) == 0) { return 0; }
  if (errno == EINTR) { return -1; }
#endif
  return ::fsync(descriptor);
}

timespec platform::modification_time(const struct ::stat& about) noexcept {
#ifdef __APPLE__
  return about.st_mtimespec;
#else
  return about.st_mtim;
#endif
}

void platform::prefer_huge_pages([[maybe_unused]] std::span<std::byte> memory) noexcept {
#ifdef STEPWELL_HAS_HUGE_PAGES
  static_cast<void>(::madvise(memory.data(), memory.size(), MADV_HUGEPAGE));  // a hint; failure is harmless
#endif
}

std::optional<std::int64_t> platform::clock_tick() noexcept {
#ifdef STEPWELL_HAS_TICKS
  timespec tick{};
  if (::clock_gettime(CLOCK_REALTIME_COARSE, &tick) == 0) { return std::int64_t{tick.tv_sec} * 1'000'000'000 + tick.tv_nsec; }
#endif
  return std::nullopt;
}

std::string platform::signal_name(int signal) {
#ifdef STEPWELL_HAS_SIGNAL_NAMES
  if (const char* name = ::sigabbrev_np(signal)) { return std::string("SIG") + name; }
#else
  for (const auto& [number, name] : std::initializer_list<std::pair<int, const char*>>{
           {SIGABRT, "SIGABRT"}, {SIGALRM, "SIGALRM"}, {SIGBUS, "SIGBUS"},   {SIGCHLD, "SIGCHLD"}, {SIGCONT, "SIGCONT"},
           {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},   {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL"},
           {SIGPIPE, "SIGPIPE"}, {SIGQUIT, "SIGQUIT"}, {SIGSEGV, "SIGSEGV"}, {SIGSTOP, "SIGSTOP"}, {SIGSYS, "SIGSYS"},
           {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"}, {SIGTSTP, "SIGTSTP"}, {SIGTTIN, "SIGTTIN"}, {SIGTTOU, "SIGTTOU"},
           {SIGURG, "SIGURG"},   {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}}) {
    if (number == signal) { return name; }
  }
#endif
  return "signal " + std::to_string(signal);
}

int platform::open_socket(int family, int type, int protocol, bool is_blocking) noexcept {
#ifdef STEPWELL_HAS_SOCKET_FLAGS
  return ::socket(family, type | SOCK_CLOEXEC | (is_blocking ? 0 : SOCK_NONBLOCK), protocol);
#else
  const int made = ::socket(family, type, protocol);
  if (made < 0) { return made; }
  bool is_set = ::fcntl(made, F_SETFD, FD_CLOEXEC) == 0;
  if (!is_blocking) { is_set = is_set && ::fcntl(made, F_SETFL, O_NONBLOCK) == 0; }
#ifdef SO_NOSIGPIPE
  const int on = 1;
  is_set = is_set && ::setsockopt(made, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) == 0;
#endif
  if (is_set) { return made; }
  const int failure = errno;
  ::close(made);
  errno = failure;
  return -1;
#endif
}

ssize_t platform::send_without_signal(int socket, std::span<const std::byte> bytes) noexcept {
#ifdef MSG_NOSIGNAL
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
#else
  return ::send(socket, bytes.data(), bytes.size(), 0);  // open_socket has set SO_NOSIGPIPE
#endif
}

}  // namespace stepwell::detail
