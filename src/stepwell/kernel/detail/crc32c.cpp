// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/detail/crc32c.hpp"

#include "stepwell/kernel/detail/crc32c_detail.hpp"

#include <array>
#include <cassert>

namespace stepwell::kernel {
namespace detail {
namespace {

using byte_table = std::array<std::uint32_t, 256>;

// tables[k][b] is the contribution of byte b to the state if k more bytes follow.
constexpr std::array<byte_table, 8> make_tables() {
  std::array<byte_table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) { tables[0][byte] = multiply_mod_p(byte, x_to_the_8); }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr auto tables = make_tables();

// Reads a little-endian number on machines of any byte order. Compilers generate a single load if possible.
std::uint32_t load_32(const std::byte* bytes) noexcept {
  return std::to_integer<std::uint32_t>(bytes[0]) | std::to_integer<std::uint32_t>(bytes[1]) << 8 |
         std::to_integer<std::uint32_t>(bytes[2]) << 16 | std::to_integer<std::uint32_t>(bytes[3]) << 24;
}

}  // namespace

std::uint32_t update_portable(std::uint32_t state, const std::byte* bytes, std::size_t size) noexcept {
  for (; size >= 8; bytes += 8, size -= 8) {
    const auto low = state ^ load_32(bytes);
    const auto high = load_32(bytes + 4);
    state = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24] ^
            tables[3][high & 0xFF] ^ tables[2][high >> 8 & 0xFF] ^ tables[1][high >> 16 & 0xFF] ^ tables[0][high >> 24];
  }
  for (; size > 0; ++bytes, --size) { state = (state >> 8) ^ tables[0][(state ^ std::to_integer<std::uint32_t>(*bytes)) & 0xFF]; }
  return state;
}

}  // namespace detail

namespace {

struct runnable_paths {
  std::array<crc32c_path, 3> names{};
  std::array<detail::crc32c_update, 3> updates{};  // indexed by crc32c_path; null if this machine cannot run the path
  std::size_t count = 0;
  detail::crc32c_update best = nullptr;

  runnable_paths() noexcept {
    add(crc32c_path::portable, detail::update_portable);
    add(crc32c_path::sse42, detail::sse42_path());
    add(crc32c_path::armv8, detail::armv8_path());
  }

private:
  void add(crc32c_path path, detail::crc32c_update update) noexcept {
    if (update == nullptr) { return; }
    names[count++] = path;
    updates[static_cast<std::size_t>(path)] = best = update;
  }
};

const runnable_paths& runnable() noexcept {
  static const runnable_paths instance;
  return instance;
}

std::uint32_t whole(detail::crc32c_update update, std::span<const std::byte> bytes, std::uint32_t initial) noexcept {
  return ~update(~initial, bytes.data(), bytes.size());
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial) noexcept { return whole(runnable().best, bytes, initial); }

std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) noexcept {
  return detail::multiply_mod_p(first, detail::power_mod_p(detail::x_to_the_8, second_size)) ^ second;
}

std::uint32_t crc32c_zeros(std::uint64_t count, std::uint32_t initial) noexcept { return ~crc32c_combine(~initial, 0, count); }

std::string_view to_string(crc32c_path path) noexcept {
  switch (path) {
    case crc32c_path::portable: return "portable";
    case crc32c_path::sse42: return "sse42";
    case crc32c_path::armv8: return "armv8";
  }
  return "portable";
}

std::span<const crc32c_path> crc32c_paths() noexcept { return {runnable().names.data(), runnable().count}; }

std::uint32_t crc32c_by(crc32c_path path, std::span<const std::byte> bytes, std::uint32_t initial) noexcept {
  const auto update = runnable().updates[static_cast<std::size_t>(path)];
  assert(update != nullptr);
  return whole(update, bytes, initial);
}

}  // namespace stepwell::kernel
