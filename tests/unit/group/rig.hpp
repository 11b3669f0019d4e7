// SPDX-License-Identifier: Apache-2.0
//
// Processes of one group in a simulation, for the tests of this folder.
#pragma once

#include "support/catch.hpp"
#include "support/simulated_group.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/group/group.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::test {

/// The ranks of a group. Each one runs a function. A failure of it is kept.
class group_rig {
public:
  explicit group_rig(int size) : network(world, {.size = size}, [](const std::string& rule) { FAIL_CHECK(rule); }) {}

  simulated_node& start(int rank, const std::function<void(simulated_node&)>& main) { return network.start(rank, main); }
  /// Starts all ranks.
  void start_all(const std::function<void(simulated_node&)>& main) {
    for (int rank = 0; rank < network.size(); ++rank) { start(rank, main); }
  }
  /// Runs until all processes have ended.
  void run() { CHECK(world.run({}) == simulation::outcome::all_ended); }
  /// Runs all, and checks that no process has failed.
  void run_well() {
    run();
    for (const auto& node : network.nodes()) {
      if (node->process->failure()) { FAIL_CHECK(text_of(*node)); }
    }
  }

  /// Returns the message of the exception that ended a process, or an empty text.
  static std::string text_of(const simulated_node& node) {
    if (!node.process->failure()) { return {}; }
    try {
      std::rethrow_exception(node.process->failure());
    } catch (const std::exception& failure) { return failure.what(); }
  }
  /// Returns true if an exception of this type ended the process.
  template<class Error>
  static bool failed_with(const simulated_node& node) {
    if (!node.process->failure()) { return false; }
    try {
      std::rethrow_exception(node.process->failure());
    } catch (const Error&) { return true; } catch (...) {
      return false;
    }
  }

  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(world.now() - begin).count(); }

  simulation world{1};
  simulated_network network;
  clock::time_point begin = world.now();
};

/// A process with a group and the counter of its steps.
class member {
public:
  member(group_rig& rig, simulated_node& self, group_options options = {})
      : rig_(rig), self_(self), group(rig.network.make_engine(self), options) {}

  void form(clock::duration limit = std::chrono::seconds(10)) {
    group.form({.time = rig_.world.time(), .stop = self_.process->stop_token(), .until = rig_.world.now() + limit},
               {[this] { return is_stepping ? std::optional(step) : std::nullopt; },
                [this](int rank, std::int64_t cause) { ending = {rank, cause}; }});
  }

private:
  group_rig& rig_;
  simulated_node& self_;

public:
  stepwell::group group;
  std::int64_t step = 0;
  bool is_stepping = true;
  std::pair<int, std::int64_t> ending = {-1, 0};  ///< The arguments of the session's `stop`.
};

}  // namespace stepwell::test
