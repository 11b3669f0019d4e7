// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_group.hpp"

#include <stepwell/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace stepwell::test {

namespace {

template<class T>
void add_to(std::span<std::byte> sum, std::span<const std::byte> other) {
  for (std::size_t at = 0; at < sum.size(); at += sizeof(T)) {
    T one;
    T two;
    std::memcpy(&one, &sum[at], sizeof(T));
    std::memcpy(&two, &other[at], sizeof(T));
    one = static_cast<T>(one + two);
    std::memcpy(&sum[at], &one, sizeof(T));
  }
}

void add_elements(dtype type, std::span<std::byte> sum, std::span<const std::byte> other) {
  switch (type) {
    case dtype::float32: return add_to<float>(sum, other);
    case dtype::float64: return add_to<double>(sum, other);
    case dtype::int64: return add_to<std::int64_t>(sum, other);
    default: throw unimplemented_error("the simulated engine adds float32, float64 and int64");
  }
}

}  // namespace

/// The connections of one collective.
class simulated_wire {
public:
  /// One sum or broadcast. `type` is invalid for a broadcast.
  struct operation {
    dtype type = dtype::invalid;
    std::vector<std::vector<std::byte>> given = {};  // by place
    std::vector<bool> has_given = {};
    std::vector<std::byte> result = {};
    std::size_t count = 0;
    bool is_complete = false;
  };

  explicit simulated_wire(std::vector<group_member> of) : members(std::move(of)), nodes(members.size()) {
    for (const auto& member : members) { ranks.push_back(member.rank); }
  }

  void break_off(const std::string& reason, bool is_loss_of_process) {
    if (std::exchange(is_broken, true)) { return; }
    why = reason;
    is_loss = is_loss_of_process;
  }
  [[nodiscard]] bool is_connected() const {
    return std::ranges::none_of(nodes, [](const auto* one) { return one == nullptr; });
  }

  std::vector<group_member> members;
  std::vector<int> ranks;
  std::vector<simulated_node*> nodes;  // by place; null until connected
  std::map<std::uint64_t, operation> operations;
  bool is_broken = false;
  bool is_loss = false;
  std::string why;
};

// ---- the store

class simulated_network::store_client final : public group_store {
public:
  store_client(simulated_network& network, simulated_node& self) : network_(network), self_(self) {}

  void set(const std::string& key, const std::string& value) override {
    write([key, value](simulated_node& server) { server.store[key] = value; });
  }
  [[nodiscard]] std::optional<std::string> get(const std::string& key) override {
    network_.deliver();
    auto* const server = server_now();
    if (!answers(*server)) { give_up(); }
    return value_in(*server, key);
  }
  std::optional<std::string> compare_set(const std::string& key, const std::optional<std::string>& expected,
                                         const std::string& desired) override {
    const auto* const server = write([key, expected, desired](simulated_node& at) {
      if (value_in(at, key) == expected) { at.store[key] = desired; }
    });
    return value_in(*server, key);
  }

private:
  static std::optional<std::string> value_in(const simulated_node& server, const std::string& key) {
    const auto found = server.store.find(key);
    return found == server.store.end() ? std::nullopt : std::optional(found->second);
  }
  /// Sends `change` to the server. Returns the server.
  const simulated_node* write(std::function<void(simulated_node&)> change) {
    network_.deliver();
    auto* const server = server_now();
    if (!answers(*server)) {
      // The message is on its way, and may arrive after the client has given up.
      if (network_.world_.happens(0.5)) {
        network_.world_.after(std::chrono::milliseconds(network_.world_.random(250)), [server, change = std::move(change)] {
          if (server->is_available()) { change(*server); }
        });
      }
      give_up();
    }
    change(*server);
    return server;
  }
  simulated_node* server_now() {
    if (server_ == nullptr) { server_ = self_.rank == 0 ? &self_ : network_.newest(0); }
    if (server_ == nullptr) { give_up(); }
    return server_;
  }
  /// Waits for the server, which may be frozen or cut off.
  bool answers(const simulated_node& server) {
    if (&server == &self_) { return true; }
    auto can_answer = [&] { return (server.is_available() || server.is_lost()) && !self_.is_cut; };
    if (!can_answer()) { network_.world_.wait(can_answer, network_.world_.now() + network_.options_.store_limit); }
    return server.is_available() && !self_.is_cut;
  }
  [[noreturn]] void give_up() {
    server_ = nullptr;
    throw unavailable_error("rank 0 cannot be reached");
  }

  simulated_network& network_;
  simulated_node& self_;
  simulated_node* server_ = nullptr;
};

// ---- the collective

class simulated_network::wired_collective final : public collective {
public:
  wired_collective(simulated_network& network, simulated_node& self, simulated_wire& wire, std::size_t place)
      : network_(network), self_(self), wire_(wire), place_(place) {
    self_.is_in_collective = true;
  }
  ~wired_collective() override {
    self_.is_in_collective = false;
    if (!self_.process->is_killed() && !self_.is_cut) { wire_.break_off(fmt::format("rank {} has left", self_.rank), false); }
  }

  [[nodiscard]] const std::vector<int>& members() const noexcept override { return wire_.ranks; }

  void sum(dtype type, std::span<std::byte> elements) override {
    auto& done = operate(type, elements);
    std::ranges::copy(done.result, elements.begin());
  }
  void broadcast(std::span<std::byte> bytes) override {
    auto& done = operate(dtype::invalid, bytes);
    std::ranges::copy(done.result, bytes.begin());
  }
  void abandon(std::string_view why) noexcept override {
    if (!self_.process->is_killed() && !self_.is_cut) { wire_.break_off(fmt::format("rank {} has failed: {}", self_.rank, why), true); }
  }

private:
  simulated_wire::operation& operate(dtype type, std::span<const std::byte> elements) {
    auto& world = network_.world_;
    network_.deliver();
    const auto until = world.now() + network_.options_.sum_limit;
    auto& current = wire_.operations[next_++];
    if (self_.is_cut) {
      world.wait([&] { return !self_.is_cut; }, until);
    }
    if (wire_.is_broken || self_.is_cut) { fail("a connection is lost"); }
    give(current, type, elements);
    auto is_over = [&] { return (current.is_complete || wire_.is_broken) && !self_.is_cut; };
    if (!is_over()) { world.wait(is_over, until); }
    if (self_.is_cut || !current.is_complete) { fail(missing(current)); }
    // A process can be lost after its part is sent and before all others have the result.
    if (wire_.is_loss && world.happens(0.5)) { fail("a process was lost"); }
    return current;
  }

  void give(simulated_wire::operation& current, dtype type, std::span<const std::byte> elements) {
    const auto places = wire_.members.size();
    if (current.count == 0) {
      current.type = type;
      current.given.resize(places);
      current.has_given.resize(places);
      current.result.resize(elements.size());
    }
    if (current.type != type || current.result.size() != elements.size()) {
      network_.broken_(fmt::format("rank {} gives {} bytes of {} to operation {}, others give {} bytes of {}", self_.rank, elements.size(),
                                   to_string(type), next_ - 1, current.result.size(), to_string(current.type)));
      fail("the processes call different operations");
    }
    current.given[place_].assign(elements.begin(), elements.end());
    current.has_given[place_] = true;
    if (++current.count < places) { return; }
    current.result = current.given[0];
    for (std::size_t place = 1; place < places && type != dtype::invalid; ++place) {
      add_elements(type, current.result, current.given[place]);
    }
    current.is_complete = true;
  }

  [[nodiscard]] std::string missing(const simulated_wire::operation& current) const {
    std::string text = "no answer from";
    for (std::size_t place = 0; place < wire_.members.size(); ++place) {
      if (!current.has_given[place]) { text += fmt::format(" rank {}", wire_.ranks[place]); }
    }
    return text;
  }

  [[noreturn]] void fail(const std::string& reason) {
    if (!self_.is_cut) { wire_.break_off(reason, true); }
    throw unavailable_error(wire_.is_broken ? wire_.why : reason);
  }

  simulated_network& network_;
  simulated_node& self_;
  simulated_wire& wire_;
  std::size_t place_;
  std::uint64_t next_ = 0;
};

// ---- the engine

class simulated_network::wired_engine final : public engine {
public:
  wired_engine(simulated_network& network, simulated_node& self) : network_(network), self_(self) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "the simulated network"; }
  [[nodiscard]] int rank() const noexcept override { return self_.rank; }
  [[nodiscard]] int size() const noexcept override { return network_.size(); }
  [[nodiscard]] bool can_form_again() const noexcept override { return true; }

  [[nodiscard]] formed_collective form(const formation& how) override {
    const store_identity self{self_.rank, network_.size(), self_.identity};
    for (;;) {
      const auto store = network_.connect_store(self_);
      // A generation whose connections failed is over, too.
      auto next = how;
      next.last_generation = std::max(how.last_generation, self_.last_generation);
      const beginning since{network_.world_.now(), network_.world_.points()};
      const auto agreed = agree_on_formation(*store, self, next);
      check(agreed, next, since);
      self_.last_generation = agreed.generation;
      self_.agreed_at = network_.world_.points();
      auto& wire = *network_.wires_.try_emplace(agreed.name, std::make_unique<simulated_wire>(agreed.members)).first->second;
      if (auto connected = connect(wire, agreed)) {
        self_.formation = agreed.name;
        return {std::move(connected), agreed.generation, agreed.ended};
      }
    }
  }

  void announce_end(std::int64_t cause) override {
    try {
      stepwell::announce_end(*network_.connect_store(self_), self_.rank, cause);
    } catch (const unavailable_error&) {
      self_.has_failed_to_announce = true;
      throw;
    }
  }

private:
  /// The beginning of an agreement.
  struct beginning {
    clock::time_point time;
    std::uint64_t point;
  };

  static bool is_member(const agreed_formation& agreed, const simulated_node& node) {
    return std::ranges::find(agreed.members, node.identity, &group_member::identity) != agreed.members.end();
  }

  void check(const agreed_formation& agreed, const formation& how, const beginning& since) const {
    const auto place = static_cast<std::size_t>(agreed.place);
    if (place >= agreed.members.size() || agreed.members[place].rank != self_.rank || agreed.members[place].identity != self_.identity) {
      network_.broken_(fmt::format("the process {} of rank {} is not a member of formation {}", self_.identity, self_.rank, agreed.name));
    }
    if (agreed.generation <= how.last_generation) {
      network_.broken_(fmt::format("generation {} of rank {} follows generation {}", agreed.generation, self_.rank, how.last_generation));
    }
    const auto count = static_cast<int>(agreed.members.size());
    if (self_.rank != 0) { return; }
    if (count < how.min_size && !agreed.ended) {
      network_.broken_(fmt::format("{} processes form a group of at least {}", count, how.min_size));
    }
    for (const auto& node : network_.nodes_) {
      const bool has_joined_later = node->agreed_at < since.point;  // a join of an earlier generation is not taken any more
      if (is_member(agreed, *node) && has_joined_later && agreed.generation <= node->last_generation) {
        network_.broken_(
            fmt::format("generation {} follows generation {} of rank {}", agreed.generation, node->last_generation, node->rank));
      }
    }
    if (count == network_.size() || agreed.ended) { return; }
    const auto waited = network_.world_.now() - since.time;
    if (waited < how.patience) { network_.broken_(fmt::format("the patience ends after {} ns", waited.count())); }
    const auto had_generation = [&](const auto& node) { return node->last_generation > 0; };
    if (std::ranges::none_of(network_.nodes_, had_generation)) { network_.broken_("the first formation is without a process"); }
  }

  /// Returns null if a process is not there: all processes then agree on another formation.
  std::unique_ptr<collective> connect(simulated_wire& wire, const agreed_formation& agreed) {
    auto& world = network_.world_;
    network_.deliver();
    const auto place = static_cast<std::size_t>(agreed.place);
    if (wire.nodes[place] != nullptr) {
      network_.broken_(fmt::format("two processes of rank {} are in generation {}: {} and {}", self_.rank, agreed.generation,
                                   wire.nodes[place]->identity, self_.identity));
    }
    wire.nodes[place] = &self_;
    auto is_over = [&] { return (wire.is_connected() || wire.is_broken) && !self_.is_cut; };
    if (!is_over()) { world.wait(is_over, world.now() + network_.options_.sum_limit); }
    if (wire.is_connected() && !wire.is_broken) { return std::make_unique<wired_collective>(network_, self_, wire, place); }
    wire.break_off("a process has not connected", true);
    return nullptr;
  }

  simulated_network& network_;
  simulated_node& self_;
};

// ---- the network

simulated_network::simulated_network(simulation& world, const options& how, std::function<void(const std::string&)> broken)
    : world_(world), options_(how), broken_(std::move(broken)) {}

simulated_network::~simulated_network() {
  for (const auto& node : nodes_) { world_.kill(*node->process); }
}

void simulated_network::deliver() {
  if (options_.delayed > 0 && world_.happens(options_.delayed)) {
    world_.sleep_for(clock::duration(static_cast<clock::duration::rep>(world_.random(static_cast<std::uint64_t>(options_.delay.count())))));
  } else {
    world_.point();
  }
}

simulated_node* simulated_network::newest(int rank) const {
  const auto found = std::ranges::find(nodes_.rbegin(), nodes_.rend(), rank, [](const auto& one) { return one->rank; });
  return found == nodes_.rend() ? nullptr : found->get();
}

std::vector<const simulated_node*> simulated_network::members_of(const std::string& formation) const {
  const auto& nodes = wires_.at(formation)->nodes;
  return {nodes.begin(), nodes.end()};
}

std::size_t simulated_network::operations_of(const std::string& formation) const { return wires_.at(formation)->operations.size(); }

simulated_node& simulated_network::start(int rank, std::function<void(simulated_node&)> main) {
  auto& made = *nodes_.emplace_back(std::make_unique<simulated_node>());
  made.rank = rank;
  made.identity = fmt::format("host{}:{}", rank, nodes_.size());
  made.process = &world_.start([&made, main = std::move(main)] { main(made); });
  return made;
}

void simulated_network::kill(simulated_node& victim, bool is_silent) {
  world_.kill(*victim.process);
  for (const auto& [name, wire] : wires_) {
    if (!is_silent && !victim.is_cut && std::ranges::find(wire->nodes, &victim) != wire->nodes.end()) {
      wire->break_off(fmt::format("rank {} is lost", victim.rank), true);
    }
  }
}

std::unique_ptr<group_store> simulated_network::connect_store(simulated_node& self) { return std::make_unique<store_client>(*this, self); }
std::unique_ptr<engine> simulated_network::make_engine(simulated_node& self) { return std::make_unique<wired_engine>(*this, self); }

}  // namespace stepwell::test
