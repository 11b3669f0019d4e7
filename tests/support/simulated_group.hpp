// SPDX-License-Identifier: Apache-2.0
//
// Processes of a group, their network, a store and an engine, all simulated. Processes are lost, frozen and cut off at the scheduling points
// of a simulation.
#pragma once

#include "support/simulation.hpp"

#include <stepwell/group/detail/group_store.hpp>
#include <stepwell/group/engine.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::test {

/// One process of a group, and its connection to the network.
struct simulated_node {
  int rank = 0;
  std::string identity;
  simulated_process* process = nullptr;
  bool is_cut = false;                       ///< Messages to and from this process are not delivered now.
  std::map<std::string, std::string> store;  ///< The store in the process of rank 0.
  std::int64_t last_generation = 0;          ///< The newest generation that this process agreed on.
  std::uint64_t agreed_at = 0;               ///< The scheduling point of that agreement.
  std::string formation;                     ///< The name of the newest one with connections to all members; empty before it.
  bool is_in_collective = false;             ///< The collective of that formation exists.
  bool has_failed_to_announce = false;       ///< Its message that it ends the training did not arrive.

  [[nodiscard]] bool is_lost() const { return process->has_ended() || process->is_killed(); }
  /// Returns true if messages are answered now.
  [[nodiscard]] bool is_available() const { return !is_lost() && !process->is_frozen() && !is_cut; }
};

class simulated_wire;

/// The network of a group of `size` ranks.
class simulated_network {
public:
  struct options {
    int size = 1;
    clock::duration store_limit = std::chrono::milliseconds(50);  ///< Of one operation of the store.
    clock::duration sum_limit = std::chrono::milliseconds(100);   ///< Of one operation of a collective, and of connecting.
    double delayed = 0;                                           ///< The part of the messages that take up to `delay`.
    clock::duration delay = std::chrono::milliseconds(5);
  };

  /// `broken` is called with a description if the processes break a rule of the interfaces.
  simulated_network(simulation& world, const options& how, std::function<void(const std::string&)> broken);
  ~simulated_network();
  simulated_network(const simulated_network&) = delete;
  simulated_network& operator=(const simulated_network&) = delete;

  /// Starts a process of `rank`, which calls `main`. From now on, the address of rank 0 leads to the newest process of rank 0.
  simulated_node& start(int rank, std::function<void(simulated_node&)> main);
  /// Ends a process. The others notice it at once, or only by their limits if the process is `silent`, like a machine without power.
  void kill(simulated_node& victim, bool is_silent);

  [[nodiscard]] std::unique_ptr<group_store> connect_store(simulated_node& self);
  [[nodiscard]] std::unique_ptr<engine> make_engine(simulated_node& self);

  [[nodiscard]] int size() const noexcept { return options_.size; }
  [[nodiscard]] simulation& world() const noexcept { return world_; }
  [[nodiscard]] const std::vector<std::unique_ptr<simulated_node>>& nodes() const noexcept { return nodes_; }
  /// Returns the newest process of a rank, or null.
  [[nodiscard]] simulated_node* newest(int rank) const;
  /// Returns the processes that connected to each other in a formation.
  [[nodiscard]] std::vector<const simulated_node*> members_of(const std::string& formation) const;
  /// Returns the number of sums and broadcasts of the collective of a formation.
  [[nodiscard]] std::size_t operations_of(const std::string& formation) const;

private:
  class store_client;
  class wired_engine;
  class wired_collective;

  /// The way of one message.
  void deliver();

  simulation& world_;
  options options_;
  std::function<void(const std::string&)> broken_;
  std::vector<std::unique_ptr<simulated_node>> nodes_;
  std::map<std::string, std::unique_ptr<simulated_wire>> wires_;  // by the names of their formations
};

}  // namespace stepwell::test
