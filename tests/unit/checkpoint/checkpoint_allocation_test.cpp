// SPDX-License-Identifier: Apache-2.0
//
// Tests in their own program, because they count the memory that the whole process allocates.
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/io/pool.hpp>

#include <malloc.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {
std::atomic<long> allocations = 0;
std::atomic<long> alive_bytes = 0;
std::atomic<long> most_bytes = 0;

void free_counted(void* memory) noexcept {
  if (memory != nullptr) { alive_bytes -= static_cast<long>(::malloc_usable_size(memory)); }
  std::free(memory);
}
}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false warning of g++ 12: these two do match

void* operator new(std::size_t size) {
  ++allocations;
  void* const memory = std::malloc(size);
  if (memory == nullptr) { throw std::bad_alloc(); }
  const auto alive = alive_bytes += static_cast<long>(::malloc_usable_size(memory));
  for (auto most = most_bytes.load(); alive > most && !most_bytes.compare_exchange_weak(most, alive);) {}
  return memory;
}
void operator delete(void* memory) noexcept { free_counted(memory); }
void operator delete(void* memory, std::size_t) noexcept { free_counted(memory); }

namespace sw = stepwell;

namespace {

/// Returns the most bytes that were allocated at once during an action, besides those that were allocated before.
template<class Action>
long peak_of(Action action) {
  const long before = alive_bytes;
  most_bytes = before;
  action();
  return most_bytes - before;
}

constexpr long count = 100'000;
constexpr long of_buffers = 4L << 20;  // buffers whose size does not depend on the number of variables

struct many_variables {
  std::vector<std::array<float, 4>> values = std::vector<std::array<float, 4>>(count);

  [[nodiscard]] sw::variable_list list() {
    sw::variable_list made;
    made.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      made.emplace_back("part_" + std::to_string(i % 1000) + "/weights_" + std::to_string(i), values[i]);
    }
    return made;
  }
};

}  // namespace

TEST_CASE("a capture allocates nothing if the variables are those of the previous one, also with helpers", "[checkpoint][cost]") {
  std::vector<std::vector<float>> layers(3, std::vector<float>(3'000'000));
  sw::variable_list list;
  for (std::size_t i = 0; i < layers.size(); ++i) { list.emplace_back("layer_" + std::to_string(i), layers[i]); }
  sw::io::pool helpers(2);
  sw::snapshot_pool pool(sw::snapshot_size(list), 1);
  static_cast<void>(sw::snapshot::capture(pool.acquire(), list, 1, &helpers));
  const long before = allocations;
  for (int i = 0; i < 5; ++i) { static_cast<void>(sw::snapshot::capture(pool.acquire(), list, 2, &helpers)); }
  CHECK(allocations - before == 0);
}

TEST_CASE("a checkpoint of many small variables takes at most 400 bytes for each of them", "[checkpoint][cost]") {
  const sw::test::temporary_directory directory;
  many_variables model;
  const auto list = model.list();
  std::string prefix;
  const long saving = peak_of([&] {
    auto pool = sw::snapshot_pool::on_demand(1, sw::system_clock());
    sw::saver saver(directory.path(), {.sync = false});
    auto taken = sw::snapshot::capture(pool.acquire(), list, 1);
    CHECK(taken.held_bytes() <= 17 * count + (2 << 20));
    prefix = saver.save_and_wait(std::move(taken)).prefix;
  });
  CHECK((saving - of_buffers) / count + 16 <= 400);
  const long restoring = peak_of([&] {
    const sw::checkpoint_reader reader(prefix);
    sw::restore(list, reader, {.verify_first = false});
  });
  CHECK((restoring - of_buffers) / count <= 400);
  WARN("bytes for each variable: save " << (saving - of_buffers) / count + 16 << ", restore " << (restoring - of_buffers) / count);
}
