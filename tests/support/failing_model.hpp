// SPDX-License-Identifier: Apache-2.0
//
// A check and a model that throw a transient error once, and a creator that restores nothing.
#pragma once

#include <stepwell/base/error.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/model/model_session.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace stepwell::test {

/// A check that throws in the first call.
struct fails_once {
  bool failed = false;
  void check() {
    if (!std::exchange(failed, true)) { throw aborted_error("the first time"); }
  }
};

/// A model that owns its global step. With a creator that restores nothing, each recovery therefore continues one step
/// later than the previous one.
struct failing_model {
  using result = std::int64_t;

  std::array<float, 64> weights{};
  bool fails_next = false;
  std::int64_t steps = 0;

  std::int64_t& global_step() { return steps; }
  result step(const std::int64_t& batch) {
    if (std::exchange(fails_next, false)) { throw aborted_error("as it was told"); }
    ++steps;
    weights[static_cast<std::size_t>(batch) % weights.size()] += 1;
    return batch;
  }
  variable_list variables() { return stepwell::variables({{"weights", weights}}); }
};

/// A creator that returns a session over the unchanged model, every time.
struct keeping_creator {
  failing_model* model;
  model_session<failing_model> create_session() { return model_session<failing_model>(*model); }
};

/// An endless, seekable source of increasing numbers.
struct recovering_source {
  std::int64_t next = 0;

  const std::int64_t* peek() { return &next; }
  void advance() { ++next; }
  std::uint64_t position() const { return static_cast<std::uint64_t>(next); }
  void seek(std::uint64_t position) { next = static_cast<std::int64_t>(position); }
};

}  // namespace stepwell::test
