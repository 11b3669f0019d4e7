// SPDX-License-Identifier: Apache-2.0
#include "support/group_schedule.hpp"

#include "support/simulated_group.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/group/group.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace stepwell::test {

namespace {

using std::chrono::milliseconds;

// ---- the model: each step changes a number in a way that depends on all parts of the batch

constexpr std::size_t part_count = 4;
using part_values = std::array<std::int64_t, part_count>;
constexpr std::int64_t not_a_number = -1;

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 31U) * 0xbf58'476d'1ce4'e5b9;
  value = (value ^ value >> 27U) * 0x94d0'49bb'1331'11eb;
  return value ^ value >> 31U;
}

/// The gradient of one part: exact in all types. That of the first part is sometimes NaN.
std::int64_t value_of_part(std::uint64_t state, std::int64_t step, std::size_t part, bool has_nan) {
  const auto value = mixed(state + static_cast<std::uint64_t>(step) * 31 + part);
  return has_nan && part == 0 && value % 8 == 0 ? not_a_number : static_cast<std::int64_t>(value % 1'000'000);
}

std::uint64_t next_state(std::uint64_t state, const part_values& sums) {
  for (const auto sum : sums) { state = mixed(state ^ static_cast<std::uint64_t>(sum)) + 1; }
  return state;
}

// ---- the checkpoint directory: the highest writer may change it

class fenced_directory {
public:
  struct checkpoint {
    std::int64_t step = 0;
    std::uint64_t state = 1;
  };

  [[nodiscard]] int highest_writer() const noexcept { return highest_; }
  /// Returns false if another process has made this directory.
  bool take_over(int writer) {
    if (writer <= highest_) { return false; }
    highest_ = writer;
    has_ended_ = false;
    return true;
  }
  /// A rename, which fails for a late writer.
  bool publish(int writer, const checkpoint& saved) {
    if (writer != highest_) { return false; }
    has_late_writer_ = has_late_writer_ || writer < last_writer_;
    last_writer_ = writer;
    published_.push_back(saved);
    return true;
  }
  /// Writes the ending file.
  void end(int writer) { has_ended_ = has_ended_ || writer == highest_; }
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] const std::vector<checkpoint>& published() const noexcept { return published_; }
  /// Returns true if a process has changed the directory after its successor.
  [[nodiscard]] bool has_late_writer() const noexcept { return has_late_writer_; }
  [[nodiscard]] checkpoint newest() const { return published_.empty() ? checkpoint() : published_.back(); }

private:
  int highest_ = 0;
  int last_writer_ = 0;
  bool has_late_writer_ = false;
  bool has_ended_ = false;
  std::vector<checkpoint> published_;
};

// ---- a schedule

/// The settings of all processes.
struct training_plan {
  int size = 1;
  group_options options;
  clock::duration max_wait{};
  std::int64_t last_step = 0;
  std::int64_t save_steps = 1;
  dtype payload = dtype::float32;  // of the first sum of each step
  bool has_empty_sum = false;      // the first sum of each step has no elements
  bool has_second_sum = false;
  bool has_sum_of_hook = false;           // between two steps
  std::map<int, std::int64_t> data_ends;  // by rank
  bool has_loss_at_end = false;           // a process is killed soon after another one has begun to leave

  [[nodiscard]] bool has_nan() const { return payload != dtype::int64; }
};

constexpr std::int64_t cause_last_step = 1;
constexpr std::int64_t cause_stop = 2;
constexpr std::int64_t cause_end_of_data = 3;

class schedule {
public:
  schedule(std::uint64_t seed, bool with_story);
  schedule_result run();

  void note(const simulated_node& node, const std::string& event) {
    if (!with_story_) { return; }
    result_.story.push_back(fmt::format("{:8.3f} {:6} {} {}", std::chrono::duration<double>(world_.now().time_since_epoch()).count() - 3600,
                                        world_.points(), node.identity, event));
  }
  void broken(const std::string& promise) { result_.broken.push_back(promise); }

private:
  friend class training_process;
  struct ending {
    const simulated_node* node;
    std::string formation;
    std::int64_t step;
  };

  void make_plan();
  void add_fault();
  void add_disturbance(int rank);
  void add_stop(int rank);
  void lose_other_than(const simulated_node& leaver);
  void start(int rank);
  template<class Action>
  void at_random_point(int rank, Action action);
  void count_formation(const std::string& name);
  [[nodiscard]] bool has_other(const simulated_node& node) const;
  [[nodiscard]] bool has_ended_worker(const simulated_node& chief) const;
  [[nodiscard]] bool may_wait_too_long(const simulated_node& node) const;
  void check_endings();
  void check_all_end_together(const ending& one);

  simulation world_;
  bool with_story_;
  schedule_result result_;
  training_plan plan_;
  std::vector<std::uint64_t> states_;  // of the undisturbed training, by step
  fenced_directory directory_;
  std::optional<simulated_network> network_;
  std::map<const simulated_node*, clock::time_point> disturbed_;  // the end of the last disturbance
  std::map<std::string, clock::time_point> formed_;               // the time of each formation
  std::multimap<std::uint64_t, std::function<void()>> after_formation_;
  std::vector<ending> endings_;
  bool is_stopped_ = false;  // a process has ended the training before the last step
};

/// The work of one process: a session in short.
class training_process {
public:
  training_process(schedule& all, simulated_node& node) : all_(all), node_(node), plan_(all.plan_), world_(all.world_) {}

  void run() {
    try {
      train();
    } catch (const stepwell::error& failure) {
      all_.note(node_, fmt::format("ends with {}", failure.what()));
      ++all_.result_.failed;
      all_.disturbed_[&node_] = std::max(all_.disturbed_[&node_], world_.now());
      check_error(failure);
    }
  }

private:
  void train() {
    group members(all_.network_->make_engine(node_), plan_.options);
    for (;;) {
      try {
        form(members);
        run_steps(members);
        if (members.is_chief()) {
          save();
          all_.directory_.end(writer_);
        }
        members.close();
        all_.endings_.push_back({&node_, node_.formation, step_});
        all_.note(node_, fmt::format("finishes at step {}", step_));
        return;
      } catch (const unavailable_error& lost) {
        all_.note(node_, fmt::format("recovers at step {}: {}", step_, lost.what()));
        world_.point();
      } catch (const out_of_range_error& ended) { return all_.note(node_, ended.what()); }
    }
  }

  void form(group& members) {
    if (members.is_chief()) { take_over(); }
    const auto before = members.generation();
    members.form({.time = world_.time(),
                  .stop = node_.process->stop_token(),
                  .until = world_.now() + plan_.max_wait,
                  .check = [this] { check_formation(); }},
                 {[this] { return is_stepping_ ? std::optional(step_) : std::nullopt; },
                  [this](int rank, std::int64_t cause) { check_cause(rank, cause); },
                  [this](int rank, std::int64_t cause) {
                    all_.note(node_, fmt::format("finishes without rank {}, which has ended ({})", rank, cause));
                    must_stop_ = must_stop_ || cause == cause_stop;
                  }});
    has_formed_ = true;
    all_.note(node_, fmt::format("forms generation {} with {} processes ({})", members.generation(), members.size(), node_.formation));
    if (members.generation() <= before) { all_.broken("the generation does not increase"); }
    all_.count_formation(node_.formation);
    members.compare("plan", fmt::format("{} {}", plan_.last_step, plan_.save_steps));
    const auto restored = all_.directory_.newest();
    std::vector<std::byte> bytes(members.is_chief() ? sizeof(restored) : 0);
    if (members.is_chief()) { std::memcpy(bytes.data(), &restored, sizeof(restored)); }
    members.share(bytes);
    fenced_directory::checkpoint shared;
    if (bytes.size() != sizeof(shared)) { return all_.broken("the state is not shared"); }
    std::memcpy(&shared, bytes.data(), sizeof(shared));
    step_ = saved_ = shared.step;
    state_ = shared.state;
    check_state();
  }

  /// The chief makes the directory of its writer number, once.
  void take_over() {
    while (writer_ == 0) {
      const auto next = all_.directory_.highest_writer() + 1;
      world_.point();
      if (all_.directory_.take_over(next)) { writer_ = next; }
    }
    check_writer();
  }

  void check_formation() const {
    if (node_.rank == 0) { return check_writer(); }
    if (has_formed_ && all_.directory_.has_ended()) { throw out_of_range_error("finds that rank 0 has ended the training"); }
  }

  void check_writer() const {
    if (all_.directory_.highest_writer() != writer_) { throw failed_precondition_error("another process has taken over the directory"); }
  }

  void save() {
    if (saved_ == step_) { return; }
    world_.point();  // writes the files
    if (world_.happens(0.2)) { world_.sleep_for(milliseconds(world_.random(20))); }
    if (!all_.directory_.publish(writer_, {step_, state_})) {
      throw failed_precondition_error("another process has taken over the directory");
    }
    saved_ = step_;
    const auto count = std::ranges::count(all_.directory_.published(), step_, &fenced_directory::checkpoint::step);
    if (count != 1) { all_.broken(fmt::format("step {} is saved {} times", step_, count)); }
  }

  /// Ends when this process or another one has ended the training.
  void run_steps(group& members) {
    for (;;) {
      if (const auto cause = ending()) {
        all_.note(node_, fmt::format("leaves at step {} ({})", step_, cause));
        return leave(members, cause);
      }
      try {
        run_step(members);
      } catch (const out_of_range_error&) {
        if (!std::exchange(is_told_, false)) { all_.broken("a step is discarded without a cause"); }
        return;
      }
      if (members.is_chief() && step_ % plan_.save_steps == 0) { save(); }
    }
  }

  /// A process that ends the training ends also if another one is lost meanwhile.
  void leave(group& members, std::int64_t cause) {
    all_.lose_other_than(node_);
    try {
      members.leave(cause);
    } catch (const unavailable_error& lost) { all_.note(node_, fmt::format("has left alone: {}", lost.what())); }
  }

  [[nodiscard]] std::int64_t ending() const {
    if (step_ == plan_.last_step) { return cause_last_step; }
    if (must_stop_ || node_.process->stop_token().stop_requested()) { return cause_stop; }
    const auto end = plan_.data_ends.find(node_.rank);
    return end != plan_.data_ends.end() && step_ >= end->second ? cause_end_of_data : 0;
  }

  void run_step(group& members) {
    is_stepping_ = true;
    const auto sums = plan_.payload == dtype::float32   ? sum_parts<float>(members)
                      : plan_.payload == dtype::float64 ? sum_parts<double>(members)
                                                        : sum_parts<std::int64_t>(members);
    if (plan_.has_second_sum) { count_members(members); }
    state_ = next_state(state_, sums);
    ++step_;
    check_state();
    is_stepping_ = false;
    if (plan_.has_sum_of_hook) { count_members(members); }
  }

  void count_members(group& members) {
    auto count = std::int64_t{1};
    members.sum(count);
    if (count != members.size()) { all_.broken(fmt::format("{} processes add up to {}", members.size(), count)); }
  }

  template<class T>
  part_values sum_parts(group& members) {
    if (plan_.has_empty_sum) {
      std::vector<T> empty;
      members.sum(empty);
    }
    std::array<T, part_count> values{};
    for (auto part = static_cast<std::size_t>(members.rank()); part < part_count; part += static_cast<std::size_t>(members.size())) {
      const auto value = value_of_part(state_, step_, part, plan_.has_nan());
      values[part] = value == not_a_number ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(value);
    }
    members.sum(values);
    part_values sums{};
    std::ranges::transform(values, sums.begin(), [](T one) { return one != one ? not_a_number : static_cast<std::int64_t>(one); });
    return sums;
  }

  void check_state() const {
    if (state_ != all_.states_.at(static_cast<std::size_t>(step_))) {
      all_.broken(fmt::format("{} has another state than an undisturbed training at step {}", node_.identity, step_));
      throw internal_error("wrong state");
    }
  }

  void check_cause(int rank, std::int64_t cause) {
    is_told_ = true;
    const bool is_right = cause == cause_last_step || (cause == cause_stop && all_.is_stopped_) ||
                          (cause == cause_end_of_data && plan_.data_ends.contains(rank));
    if (!is_right || rank == node_.rank) { all_.broken(fmt::format("rank {} ends with cause {}", rank, cause)); }
    if (cause != cause_last_step) { all_.is_stopped_ = true; }
  }

  void check_error(const stepwell::error& failure) const {
    const auto code = failure.code();
    const bool is_right = code == errc::deadline_exceeded
                              ? all_.may_wait_too_long(node_) && !(node_.rank != 0 && has_formed_ && all_.directory_.has_ended())
                          : code == errc::failed_precondition ? all_.has_other(node_)
                          : code == errc::cancelled           ? node_.process->stop_token().stop_requested()
                                                              : false;
    if (!is_right) { all_.broken(fmt::format("{} ends with: {}", node_.identity, failure.what())); }
  }

  schedule& all_;
  simulated_node& node_;
  const training_plan& plan_;
  simulation& world_;
  std::int64_t step_ = 0;
  std::uint64_t state_ = 1;
  std::int64_t saved_ = 0;  // the step of the newest checkpoint of this process
  int writer_ = 0;
  bool is_stepping_ = false;
  bool is_told_ = false;
  bool has_formed_ = false;
  bool must_stop_ = false;  // another process has ended the training because of a stop
};

schedule::schedule(std::uint64_t seed, bool with_story) : world_(seed), with_story_(with_story) { make_plan(); }

void schedule::make_plan() {
  plan_.size = static_cast<int>(world_.happens(0.05) ? 1 : 2 + world_.random(3));
  plan_.options.min_size = static_cast<int>(world_.random(static_cast<std::uint64_t>(plan_.size) + 1));
  plan_.options.patience_secs = static_cast<double>(world_.random(250)) / 1000;
  plan_.last_step = static_cast<std::int64_t>(3 + world_.random(16));
  plan_.save_steps = static_cast<std::int64_t>(1 + world_.random(4));
  plan_.payload = std::array{dtype::float32, dtype::float64, dtype::int64}[world_.random(3)];
  plan_.has_empty_sum = world_.happens(0.1);
  plan_.has_second_sum = world_.happens(0.3);
  plan_.has_sum_of_hook = world_.happens(0.3);
  plan_.has_loss_at_end = world_.happens(0.1);
  states_.push_back(1);
  for (std::int64_t step = 0; step < plan_.last_step; ++step) {
    part_values sums{};
    for (std::size_t part = 0; part < part_count; ++part) { sums[part] = value_of_part(states_.back(), step, part, plan_.has_nan()); }
    states_.push_back(next_state(states_.back(), sums));
  }
  network_.emplace(world_, simulated_network::options{.size = plan_.size, .delayed = world_.happens(0.5) ? 0.2 : 0.0},
                   [this](const std::string& rule) { broken(rule); });
  const auto faults = world_.happens(0.03) ? 5 + world_.random(8) : world_.random(5);
  plan_.max_wait = milliseconds(1'200 + 750 * faults);  // longer than all faults together
  for (std::uint64_t fault = 0; fault < faults; ++fault) { add_fault(); }
  for (int rank = 0; rank < plan_.size; ++rank) {
    world_.after(milliseconds(world_.happens(0.5) ? 0 : world_.random(120)), [this, rank] { start(rank); });
  }
}

void schedule::start(int rank) {
  auto& node = network_->start(rank, [this](simulated_node& self) { training_process(*this, self).run(); });
  note(node, "starts");
}

/// Calls `action` with the newest process of `rank` at a random scheduling point: soon after the start, or after one of the formations.
template<class Action>
void schedule::at_random_point(int rank, Action action) {
  const auto act = [this, rank, action] {
    auto* const node = network_->newest(rank);
    if (node != nullptr && !node->is_lost()) { action(*node); }
  };
  const auto offset = 1 + world_.random(world_.happens(0.5) ? 20 : 120);
  if (world_.happens(0.3)) { return world_.at_point(offset, act); }
  after_formation_.emplace(1 + (world_.happens(0.6) ? 0 : world_.random(3)),
                           [this, offset, act] { world_.at_point(world_.points() + offset, act); });
}

void schedule::count_formation(const std::string& name) {
  if (!formed_.try_emplace(name, world_.now()).second) { return; }
  ++result_.generations;
  const auto [first, last] = after_formation_.equal_range(formed_.size());
  for (auto one = first; one != last; ++one) { one->second(); }
}

void schedule::add_fault() {
  const auto rank = static_cast<int>(world_.random(static_cast<std::uint64_t>(plan_.size)));
  switch (world_.random(10)) {
    case 0: return add_stop(rank);
    case 1: return static_cast<void>(plan_.data_ends.emplace(rank, 1 + world_.random(static_cast<std::uint64_t>(plan_.last_step))));
    case 2: return at_random_point(rank, [this](simulated_node& node) { start(node.rank); });  // a second process of this rank
    default: return add_disturbance(rank);
  }
}

void schedule::add_stop(int rank) {
  at_random_point(rank, [this](simulated_node& node) {
    is_stopped_ = true;
    note(node, "gets a stop request");
    simulation::request_stop(*node.process);
  });
}

/// Kills another process at one of the next scheduling points, once in this schedule: the last sum then succeeds in some processes only.
void schedule::lose_other_than(const simulated_node& leaver) {
  if (plan_.size == 1 || !std::exchange(plan_.has_loss_at_end, false)) { return; }
  const auto other = 1 + world_.random(static_cast<std::uint64_t>(plan_.size) - 1);
  const auto rank = (leaver.rank + static_cast<int>(other)) % plan_.size;
  world_.at_point(world_.points() + 1 + world_.random(12), [this, rank] {
    auto* const node = network_->newest(rank);
    if (node == nullptr || node->is_lost()) { return; }
    disturbed_[node] = clock::time_point::max();
    note(*node, "is killed");
    network_->kill(*node, world_.happens(0.5));
  });
}

/// A process is killed, frozen or cut off, and replaced at once, late, or never.
void schedule::add_disturbance(int rank) {
  const auto kind = world_.random(4);
  const auto length = milliseconds(world_.happens(0.3) ? world_.random(10) : world_.random(250));
  const bool is_replaced = world_.happens(kind < 2 ? 0.85 : 0.4);
  const auto replaced_after = milliseconds(world_.happens(0.4) ? 0 : world_.random(300));
  at_random_point(rank, [=, this](simulated_node& node) {
    disturbed_[&node] = kind < 2 ? clock::time_point::max() : world_.now() + length;
    if (kind < 2) {
      note(node, kind == 0 ? "is killed" : "is killed silently");
      network_->kill(node, kind == 1);
    } else if (kind == 2) {
      note(node, fmt::format("is frozen for {} ms", length.count()));
      simulation::freeze(*node.process);
      world_.after(length, [this, &node] {
        note(node, "continues");
        simulation::resume(*node.process);
      });
    } else {
      note(node, fmt::format("is cut off for {} ms", length.count()));
      node.is_cut = true;
      world_.after(length, [this, &node] {
        note(node, "is connected again");
        node.is_cut = false;
      });
    }
    if (is_replaced) {
      world_.after(replaced_after, [this, rank] { start(rank); });
    }
  });
}

/// Returns true if another process of the same rank has started.
bool schedule::has_other(const simulated_node& node) const {
  return std::ranges::any_of(network_->nodes(), [&](const auto& one) { return one.get() != &node && one->rank == node.rank; });
}

/// Returns true if a worker of the formation of `chief` has ended the training, so that the chief must not wait for it. A second process of its
/// rank would take part instead.
bool schedule::has_ended_worker(const simulated_node& chief) const {
  return chief.rank == 0 && std::ranges::any_of(endings_, [&](const auto& one) {
           const bool is_only_one = std::ranges::count(network_->nodes(), one.node->rank, [](const auto& node) { return node->rank; }) == 1;
           return one.formation == chief.formation && !one.node->has_failed_to_announce && is_only_one;
         });
}

/// Returns true if this process cannot form the group now, although no message is delayed for long.
bool schedule::may_wait_too_long(const simulated_node& node) const {
  const auto& nodes = network_->nodes();
  const auto is_here = [&](const auto& one) { return one.get() == &node || one->is_available(); };
  const auto* const chief = network_->newest(0);  // the others find the newest one only
  const bool has_chief = chief == &node || chief->is_available();
  if (std::ranges::any_of(nodes, [&](const auto& one) { return one.get() != &node && one->rank == node.rank && !one->is_lost(); })) {
    return true;  // the other process of this rank is the member
  }
  if (has_ended_worker(node)) { return false; }
  std::map<int, bool> ranks;  // those that can take part; true if all processes of the rank were in a generation before
  for (const auto& one : nodes) {
    if (!is_here(one) || (one->rank == 0 && !has_chief)) { continue; }
    ranks.try_emplace(one->rank, true).first->second &= one->last_generation > 0;
  }
  for (const auto& one : nodes) {  // also those that have waited too long themselves: their join remains
    const auto rank = ranks.find(one->rank);
    if (rank != ranks.end() && one->process->has_ended() && !one->process->is_killed()) { rank->second &= one->last_generation > 0; }
  }
  const auto count = static_cast<int>(ranks.size());
  if (node.rank != 0) { return count < plan_.size || chief->is_in_collective; }
  const bool is_after_loss = std::ranges::any_of(ranks, [](const auto& rank) { return rank.second; });
  return !has_chief || count < (plan_.options.min_size == 0 || !is_after_loss ? plan_.size : plan_.options.min_size);
}

void schedule::check_endings() {
  for (const auto& one : endings_) {
    if (one.step != plan_.last_step && !is_stopped_ && plan_.data_ends.empty()) {
      broken(fmt::format("the training ends at step {}", one.step));
    }
    check_all_end_together(one);
  }
}

/// All processes that finish in one formation finish at the same step. All of its processes finish unless one was disturbed or has failed.
void schedule::check_all_end_together(const ending& one) {
  const auto members = network_->members_of(one.formation);
  const bool is_disturbed = std::ranges::any_of(members, [&](const auto* member) {
    const auto found = disturbed_.find(member);
    return found != disturbed_.end() && found->second >= formed_.at(one.formation);
  });
  for (const auto* member : members) {
    const auto found = std::ranges::find(endings_, member, &ending::node);
    if (found == endings_.end() || found->formation != one.formation) {
      if (!is_disturbed) { broken(fmt::format("{} does not finish with {}", member->identity, one.node->identity)); }
    } else if (found->step != one.step) {
      broken(fmt::format("{} finishes at step {}, {} at step {}", one.node->identity, one.step, found->node->identity, found->step));
    }
  }
  const bool is_saved = std::ranges::count(directory_.published(), one.step, &fenced_directory::checkpoint::step) == 1 || one.step == 0;
  if (one.node->rank == 0 && !is_saved) { broken(fmt::format("the last step, {}, is not saved", one.step)); }
}

schedule_result schedule::run() {
  const auto outcome = world_.run({.points = 200'000, .time = std::chrono::minutes(1)});
  if (outcome != simulation::outcome::all_ended) {
    for (const auto& node : network_->nodes()) {
      if (!node->is_lost()) { broken(fmt::format("{} does not end", node->identity)); }
    }
  }
  for (const auto& node : network_->nodes()) {
    if (const auto failure = node->process->failure()) { broken(fmt::format("{} ends with an exception of another type", node->identity)); }
  }
  if (directory_.has_late_writer()) { broken("a former chief changes the directory"); }
  check_endings();
  result_.finished = static_cast<int>(endings_.size());
  result_.points = world_.points();
  return std::move(result_);
}

}  // namespace

schedule_result run_schedule(std::uint64_t seed, bool with_story) { return schedule(seed, with_story).run(); }

}  // namespace stepwell::test
