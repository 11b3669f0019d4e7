// SPDX-License-Identifier: Apache-2.0
//
// The allocations of a step over a graph. This program replaces operator new. Allocations of the stub of TensorFlow are not counted.
#include "stub.hpp"
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/session/training_options.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

thread_local std::int64_t allocations = 0;

void* allocate(std::size_t size) {
  if (::stub_is_inside() == 0) { ++allocations; }
  if (void* const made = std::malloc(size)) { return made; }
  throw std::bad_alloc();
}

/// Returns the number of allocations of this thread in 100 calls of `step`, after some calls that make plans and memory.
template<class Step>
std::int64_t allocations_of(Step&& step) {
  for (int i = 0; i < 10; ++i) { step(); }
  const auto before = allocations;
  for (int i = 0; i < 100; ++i) { step(); }
  return allocations - before;
}

struct stub_graph {
  test::temporary_directory directory;
  std::string bytes = test::stub_meta_graph().SerializeAsString();
  tf::graph graph = tf::graph::import_meta_graph(test::write_file(directory / "model.meta", bytes));

  /// Returns the options of a session that saves, but not during a test.
  [[nodiscard]] sw::training_options options() const {
    return {.checkpoint_dir = directory / "run",
            .summaries = {.save_steps = 1'000'000},
            .step_counter = {.every_n_steps = 1'000'000},
            .clock = std::make_shared<sw::manual_clock>()};
  }
};

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("D-34: a step over a graph allocates no memory", "[tensorflow][session][allocation]") {
  const test::log_capture quiet;
  stub_graph made;
  auto session =
      sw::monitored_training_session(made.graph, made.options(), sw::nan_tensor_hook{"loss:0"},
                                     sw::logging_tensor_hook{{.at_end = true}, "loss"}, sw::stop_at_step_hook{{.last_step = 1'000'000}});
  const auto x = tf::tensor(std::vector<float>{2}).for_graph(1);
  const auto rate = tf::tensor(0.125F).for_graph(1);
  SECTION("if it is not fed") {
    CHECK(allocations_of([&] { session.run(); }) == 0);
  }
  SECTION("if it is fed with tensors that the graph may keep") {
    CHECK(allocations_of([&] { session.run(sw::feed("x:0", x), sw::feed("rate:0", rate)); }) == 0);
  }
  SECTION("if a tensor is fed and fetched") {
    CHECK(allocations_of([&] {
            const auto [loss, fed] = session.run(sw::fetch("loss:0", "x:0"), sw::target("train_op"), sw::feed("x:0", x));
          }) == 2 * 100);  // of the list of targets, and of a value that the caller keeps
  }
}

TEST_CASE("D-34: hooks that read a vector in each step allocate no memory", "[tensorflow][session][allocation]") {
  const test::log_capture quiet;
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph, made.options(), sw::nan_tensor_hook{"w/Read:0"},
                                                sw::logging_tensor_hook{{.at_end = true}, "w/Read:0"});
  CHECK(allocations_of([&] { session.run(); }) == 0);
}

TEST_CASE("a fetched tensor that is kept stays as it was in later steps", "[tensorflow][session][allocation]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph, {}, sw::nan_tensor_hook{"loss:0"});
  std::vector<tf::tensor> kept;
  std::vector<float> values;
  for (int i = 0; i < 5; ++i) {
    const auto [loss] = session.run(sw::fetch("loss:0"), sw::target("train_op"));
    kept.push_back(loss);
    values.push_back(loss.as<float>());
  }
  for (std::size_t i = 0; i < kept.size(); ++i) { CHECK(kept[i].as<float>() == values[i]); }
  CHECK(values[0] != values[4]);
}
