// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/detail/simd.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/kernel/detail/simd_tables.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <xsimd/xsimd.hpp>

namespace stepwell::kernel {
namespace {

/// The sets of a machine, the best one first.
struct simd_sets {
  std::array<const simd_kernels*, 3> all{};
  std::size_t count = 0;

  void add(const simd_kernels& one) noexcept { all[count++] = &one; }
};

#if defined(STEPWELL_SIMD_DISPATCH)
/// Returns true if the machine has the instructions of `Arch`.
template<class Arch>
bool has() noexcept {
  return xsimd::dispatch<xsimd::arch_list<Arch, xsimd::sse2>>([](auto selected) { return std::is_same_v<decltype(selected), Arch>; })();
}
#endif

simd_sets find_sets() noexcept {
  simd_sets found;
#if defined(STEPWELL_SIMD_DISPATCH)
  __builtin_cpu_init();  // xsimd 8 does not test that the system saves the registers
  if (has<xsimd::avx512bw>() && __builtin_cpu_supports("avx512bw") != 0) { found.add(simd_avx512); }
  if (has<xsimd::fma3<xsimd::avx2>>() && __builtin_cpu_supports("avx2") != 0) { found.add(simd_avx2); }
#endif
  found.add(simd_baseline);
  return found;
}

}  // namespace

std::span<const simd_kernels* const> available_simd() noexcept {
  static const auto sets = find_sets();
  return std::span(sets.all).first(sets.count);
}

const simd_kernels& select_simd(const char* name) noexcept {
  const auto sets = available_simd();
  const auto found = name == nullptr
                         ? sets.begin()
                         : std::ranges::find(sets, std::string_view(name), [](const auto* one) { return std::string_view(one->name); });
  if (found == sets.end()) {
    std::string names;
    for (const auto* const one : sets) { names += (names.empty() ? "" : ", ") + std::string(one->name); }
    log_warning("STEPWELL_SIMD=" + std::string(name) + " has no effect; this machine and this build have only: " + names);
  }
  const auto& selected = found == sets.end() ? *sets.front() : **found;
  log_debug("the numeric kernels use " + std::string(selected.name));
  return selected;
}

const simd_kernels& simd() noexcept {
  static const auto& selected = select_simd(std::getenv("STEPWELL_SIMD"));
  return selected;
}

}  // namespace stepwell::kernel
