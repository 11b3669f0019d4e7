// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_native.hpp"

#include <stepwell/kernel/detail/simd_kernels.hpp>

namespace stepwell::bench {

constinit const kernel::simd_kernels native_kernels = kernel::kernels_for<xsimd::default_arch>::table("native");

std::uint64_t read_all(std::span<const std::byte> bytes) noexcept {
  using words = xsimd::batch<std::uint64_t>;
  words all[8];
  for (auto& one : all) { one = words(std::uint64_t{0}); }
  const auto* const data = reinterpret_cast<const std::uint64_t*>(bytes.data());
  constexpr std::size_t group = 8 * words::size;
  for (std::size_t i = 0; i + group <= bytes.size() / sizeof(std::uint64_t); i += group) {
    for (std::size_t j = 0; j < 8; ++j) { all[j] = all[j] ^ words::load_unaligned(data + i + j * words::size); }
  }
  const auto last = ((all[0] ^ all[1]) ^ (all[2] ^ all[3])) ^ ((all[4] ^ all[5]) ^ (all[6] ^ all[7]));
  return last.get(0) ^ last.get(words::size - 1);
}

}  // namespace stepwell::bench
