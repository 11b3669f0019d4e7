// SPDX-License-Identifier: Apache-2.0
//
// One process of a group that c10d connects. group.py starts several of them, kills, stops and replaces some, and reads their lines.
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/torch/group.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sw = stepwell;

namespace {

double seconds_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

double variable(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atof(text);
}

void form(sw::group& group) {
  group.form(
      {.time = sw::system_clock(), .stop = {}, .until = sw::detail::time_after(sw::system_clock()->now(), variable("TEST_WAIT", 30))}, {});
  std::printf("formed %lld size %d rank %d at %.6f\n", static_cast<long long>(group.generation()), group.size(), group.rank(),
              seconds_now());
}

// ---- sums of all types

/// Integers below 2^10 that have no pattern.
std::uint32_t number(std::uint32_t rank, std::uint32_t i) { return ((rank + 1) * 2'654'435'761U + i * 40'503U) >> 22U; }

struct element_type {
  sw::dtype type;
  const char* name;
};

template<class T>
void sum_of(sw::group& group, const char* name, std::size_t count, double scale) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(number(static_cast<std::uint32_t>(group.rank()), static_cast<std::uint32_t>(i)) * scale);
  }
  group.sum(values);
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    double expected = 0;
    for (int rank = 0; rank < group.size(); ++rank) {
      expected += static_cast<double>(static_cast<T>(number(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(i)) * scale));
    }
    if constexpr (std::is_same_v<T, std::uint8_t>) { expected = static_cast<std::uint8_t>(static_cast<std::uint32_t>(expected)); }
    worst = std::max(worst, std::fabs(static_cast<double>(values[i]) - expected) / std::max(1.0, std::fabs(expected)));
  }
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const auto one : std::as_bytes(std::span(values))) { hash = (hash ^ static_cast<std::uint64_t>(one)) * 1'099'511'628'211U; }
  std::printf("sum %s %zu bits %016llx error %.2e\n", name, count, static_cast<unsigned long long>(hash), worst);
}

void sums(sw::group& group) {
  form(group);
  for (const std::size_t count : {1U, 3U, 1000U, 100'000U}) {
    sum_of<float>(group, "float32", count, 1.0 / 3);
    sum_of<double>(group, "float64", count, 1.0 / 3);
    sum_of<std::int64_t>(group, "int64", count, 1e10);
    sum_of<std::int32_t>(group, "int32", count, 1);
    sum_of<std::uint8_t>(group, "uint8", count, 0.1);
    for (const auto type : {sw::dtype::half, sw::dtype::bfloat16}) {  // 1.0 in each process; no arithmetic for these types in C++
      std::vector<std::uint16_t> ones(count, type == sw::dtype::half ? 0x3c00 : 0x3f80);
      try {
        group.sum_elements(type, std::as_writable_bytes(std::span(ones)));
        std::printf("sum %d of %zu is %04x to %04x\n", static_cast<int>(type), count, *std::ranges::min_element(ones),
                    *std::ranges::max_element(ones));
      } catch (const sw::unimplemented_error& missing) {
        std::printf("no sum: %s\n", missing.what());
        form(group);
      }
    }
  }
  std::vector<double> shared(1000, group.rank() + 0.5);
  group.broadcast(shared);
  std::printf("broadcast %g %g\n", shared.front(), shared.back());
}

// ---- a training with one sum a step

/// The state of a model and the number of its steps. Rank 0 keeps it in a file after each step.
struct state {
  std::int64_t step = 0;
  double value = 0;
};

void share_state(sw::group& group, const std::filesystem::path& file, state& mine) {
  if (group.rank() == 0) {
    std::ifstream in(file, std::ios::binary);
    state kept;
    if (in.read(reinterpret_cast<char*>(&kept), sizeof kept)) { mine = kept; }
  }
  group.broadcast(mine.step);
  group.broadcast(mine.value);
}

void keep_state(const std::filesystem::path& file, const state& mine) {
  const auto aside = file.string() + ".tmp";
  std::ofstream(aside, std::ios::binary).write(reinterpret_cast<const char*>(&mine), sizeof mine);
  std::filesystem::rename(aside, file);
}

constexpr int parts = 4;

/// Adds the gradients of four parts of the data. The parts are divided among the processes, so that each number of processes gives the same bits.
void train_step(sw::group& group, state& mine) {
  std::vector<double> lanes(parts);
  for (int part = group.rank(); part < parts; part += group.size()) {
    lanes[static_cast<std::size_t>(part)] = std::sin(mine.value + static_cast<double>(mine.step * parts + part));
  }
  group.sum(lanes);
  for (const double lane : lanes) { mine.value += 0.1 * lane; }
  ++mine.step;
}

void train(sw::group& group, std::int64_t last_step, const std::filesystem::path& file) {
  state mine;
  for (;;) {
    try {
      form(group);
      share_state(group, file, mine);
      while (mine.step < last_step) {
        train_step(group, mine);
        if (group.rank() == 0) { keep_state(file, mine); }
        std::printf("step %lld value %016llx at %.6f\n", static_cast<long long>(mine.step),
                    static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(mine.value)), seconds_now());
        if (const auto pause = variable("TEST_STEP_MS", 0); pause > 0) {
          std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pause));
        }
      }
      return;
    } catch (const sw::unavailable_error& lost) { std::printf("lost at %.6f: %s\n", seconds_now(), lost.what()); }
  }
}

// ---- many formations

std::size_t entries(const char* directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) { return std::atol(line.c_str() + 6); }
  }
  return 0;
}

void form_often(sw::group& group, int count) {
  for (int i = 1; i <= count; ++i) {
    group.form({.time = sw::system_clock(), .stop = {}, .until = sw::system_clock()->now() + std::chrono::seconds(30)}, {});
    double one = 1;
    group.sum(one);
    if (i % 100 == 0) {
      std::printf("formations %d descriptors %zu threads %zu memory %ld KiB at %.6f\n", i, entries("/proc/self/fd"),
                  entries("/proc/self/task"), resident_kib(), seconds_now());
    }
  }
}

int run(std::string_view what, const std::vector<std::string>& words) {
  const auto group = sw::libtorch::make_group({.timeout_secs = variable("TEST_TIMEOUT", 10),
                                               .min_size = static_cast<int>(variable("TEST_MIN_SIZE", 0)),
                                               .patience_secs = variable("TEST_PATIENCE", 30)});
  if (what == "sums") { sums(*group); }
  if (what == "train") { train(*group, std::atoll(words.at(0).c_str()), words.at(1)); }
  if (what == "form") { form_often(*group, std::atoi(words.at(0).c_str())); }
  std::printf("end\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("begun at %.6f\n", seconds_now());
  sw::set_log_sink([](sw::log_level, std::string_view text) { std::printf("log %.*s\n", static_cast<int>(text.size()), text.data()); });
  try {
    return run(argc > 1 ? argv[1] : "", {argv + std::min(argc, 2), argv + argc});
  } catch (const sw::error& failed) {
    std::printf("error %s\n", failed.what());
    return 3;
  }
}
