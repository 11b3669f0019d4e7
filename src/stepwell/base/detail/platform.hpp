// SPDX-License-Identifier: Apache-2.0
//
// Internal: system calls that differ between systems. All calls that POSIX does not have, or that only some systems have, are in platform.cpp.
// Each has a portable fallback, which also exists on Linux: the CMake option STEPWELL_PORTABLE_IO selects it. Then only calls of POSIX are
// made.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>

namespace stepwell::detail::platform {

/// Returns true if the portable fallback was selected when the library was compiled.
[[nodiscard]] bool is_portable() noexcept;

/// Returns a second descriptor of the file of `cached`, whose reads or writes bypass the cache of the system. Returns -1 if the system or
/// the file system lacks this. `access` is O_RDONLY or O_WRONLY.
[[nodiscard]] int open_uncached(int cached, int access) noexcept;

/// Returns true if most of the pages of a range of a file are in the cache of the system. Checks at most 16 of them. Returns true if the
/// system does not report it.
[[nodiscard]] bool is_mostly_cached(int descriptor, std::uint64_t offset, std::uint64_t size) noexcept;

/// Asks the system to read a range of a file into its cache.
void start_reading(int descriptor, std::uint64_t offset, std::uint64_t size) noexcept;

/// Asks the system to start writing a range of a file to the disk.
void start_writeback(int descriptor, std::uint64_t offset, std::uint64_t size) noexcept;

/// Returns the first offset from `offset` on that is not in a hole of the file, or `offset` if the system does not report holes.
[[nodiscard]] std::uint64_t skip_hole(int descriptor, std::uint64_t offset) noexcept;

/// Writes a file or a directory to the disk, and makes the disk write its own cache. Returns -1 and sets errno on failure.
[[nodiscard]] int sync_to_disk(int descriptor) noexcept;

/// Returns the time of the last change of the content of a file.
[[nodiscard]] timespec modification_time(const struct ::stat& about) noexcept;

/// Asks the system to use huge pages for this memory.
void prefer_huge_pages(std::span<std::byte> memory) noexcept;

/// Returns the current tick of the kernel (a few milliseconds), in nanoseconds since 1970. Returns nothing if the system has no fast
/// clock of ticks.
[[nodiscard]] std::optional<std::int64_t> clock_tick() noexcept;

/// Returns the name of a signal, such as "SIGTERM", or "signal 64" if it has none.
[[nodiscard]] std::string signal_name(int signal);

/// Makes a socket that child processes do not inherit. Without atomic flags, a process that another thread starts at the same moment may
/// inherit it. Returns -1 and sets errno on failure.
[[nodiscard]] int open_socket(int family, int type, int protocol, bool is_blocking = true) noexcept;

/// Sends like send(2), but raises no SIGPIPE if the peer has closed a socket of `open_socket`.
[[nodiscard]] ssize_t send_without_signal(int socket, std::span<const std::byte> bytes) noexcept;

}  // namespace stepwell::detail::platform
