// SPDX-License-Identifier: Apache-2.0
#include "support/simulation.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STEPWELL_FIBERS_OF_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define STEPWELL_FIBERS_OF_ASAN
#endif
#ifdef STEPWELL_FIBERS_OF_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef _LIBCPP_VERSION  // its header does not declare this function of the ABI
namespace __cxxabiv1 {
extern "C" void* __cxa_get_globals() noexcept;
}
#endif

namespace stepwell::test {

namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10U;

/// Stacks are used again, because a simulation is short.
std::vector<std::unique_ptr<std::byte[]>>& unused_stacks() {
  static std::vector<std::unique_ptr<std::byte[]>> stacks;
  return stacks;
}

std::unique_ptr<std::byte[]> take_stack() {
  auto& unused = unused_stacks();
  if (unused.empty()) { return std::unique_ptr<std::byte[]>(new std::byte[stack_bytes]); }
  auto taken = std::move(unused.back());
  unused.pop_back();
  return taken;
}

/// The runtime of C++ keeps the exceptions that are handled now for each thread, so a switch of stacks exchanges them.
void exchange_exceptions(std::uint64_t (&save)[2], const std::uint64_t (&load)[2]) {
  void* const all = abi::__cxa_get_globals();
  std::memcpy(save, all, sizeof(save));
  std::memcpy(all, load, sizeof(load));
}

void begin_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* stack, [[maybe_unused]] std::size_t bytes) {
#ifdef STEPWELL_FIBERS_OF_ASAN
  __sanitizer_start_switch_fiber(save, stack, bytes);
#endif
}
void finish_switch([[maybe_unused]] void* saved, [[maybe_unused]] const void** stack, [[maybe_unused]] std::size_t* bytes) {
#ifdef STEPWELL_FIBERS_OF_ASAN
  __sanitizer_finish_switch_fiber(saved, stack, bytes);
#endif
}

const void* scheduler_stack = nullptr;
std::size_t scheduler_stack_bytes = 0;

}  // namespace

class simulation::virtual_clock final : public clock {
public:
  explicit virtual_clock(simulation& world) : world_(world) {}

  [[nodiscard]] time_point now() const override { return world_.now_; }
  [[nodiscard]] wall_time wall_now() const override {
    return wall_time(std::chrono::seconds(1'700'000'000)) + std::chrono::duration_cast<wall_time::duration>(now().time_since_epoch());
  }
  alarm_id call_at(time_point when, std::function<void()> action) override {
    const auto id = ++last_;
    const auto alive = std::make_shared<bool>(true);
    alarms_.emplace(id, alive);
    world_.at(when, [alive, action = std::move(action)] {
      if (std::exchange(*alive, false)) { action(); }
    });
    return id;
  }
  void cancel(alarm_id id) override {
    if (const auto found = alarms_.extract(id)) { *found.mapped() = false; }
  }
  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& /*condition*/, time_point when) override {
    auto& self = world_.self();
    lock.unlock();
    const bool is_woken = world_.wait([&self] { return self.is_woken_; }, when);
    self.is_woken_ = false;
    lock.lock();
    return is_woken;
  }

private:
  simulation& world_;
  alarm_id last_ = 0;
  std::map<alarm_id, std::shared_ptr<bool>> alarms_;
};

simulation* simulation::current_ = nullptr;

simulation::simulation(std::uint64_t seed) : random_(seed), now_(std::chrono::hours(1)), clock_(std::make_shared<virtual_clock>(*this)) {
  assert(current_ == nullptr);
  current_ = this;
}

simulation::~simulation() {
  for (const auto& one : processes_) { kill(*one); }
  for (const auto& one : processes_) {
    if (one->stack_) { unused_stacks().push_back(std::move(one->stack_)); }
  }
  current_ = nullptr;
}

std::uint64_t simulation::random(std::uint64_t bound) {  // splitmix64
  auto mixed = random_ += 0x9e37'79b9'7f4a'7c15;
  mixed = (mixed ^ mixed >> 30U) * 0xbf58'476d'1ce4'e5b9;
  mixed = (mixed ^ mixed >> 27U) * 0x94d0'49bb'1331'11eb;
  return (mixed ^ mixed >> 31U) % bound;
}

simulated_process& simulation::start(std::function<void()> main) {
  auto& made = *processes_.emplace_back(std::make_unique<simulated_process>());
  made.main_ = std::move(main);
  return made;
}

void simulation::kill(simulated_process& victim) {
  if (victim.has_ended_ || std::exchange(victim.is_killed_, true)) { return; }
  if (&victim == running_) { throw process_killed(); }
  if (victim.has_started_) { switch_to(victim); }
  victim.has_ended_ = true;
}

void simulation::request_stop(simulated_process& of) {
  of.stop_.request_stop();
  of.is_woken_ = true;
}

bool simulation::is_ready(const simulated_process& one) const {
  if (one.has_ended_ || one.is_frozen_) { return false; }
  return one.done_ == nullptr || one.wakes_ <= now_ || (*one.done_)();
}

void simulation::run_actions() {
  while (!at_points_.empty() && at_points_.begin()->first <= points_ + 1) {
    const auto action = std::move(at_points_.begin()->second);
    at_points_.erase(at_points_.begin());
    action();
  }
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    const auto action = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    action();
  }
}

simulation::outcome simulation::run(const limits& most) {
  const auto end = now_ + most.time;
  while (points_ < most.points && now_ < end) {
    run_actions();
    ready_.clear();
    auto next = timers_.empty() ? clock::time_point::max() : timers_.begin()->first;
    bool is_anyone_left = !timers_.empty();
    for (const auto& one : processes_) {
      if (is_ready(*one)) { ready_.push_back(one.get()); }
      if (one->has_ended_) { continue; }
      is_anyone_left = true;
      if (!one->is_frozen_) { next = std::min(next, one->wakes_); }
    }
    if (!is_anyone_left) { return outcome::all_ended; }
    if (!ready_.empty()) {
      ++points_;
      switch_to(*ready_[random(ready_.size())]);
    } else if (next == clock::time_point::max()) {
      return outcome::stuck;
    } else {
      now_ = next;
    }
  }
  return outcome::too_long;
}

// ---- switches of stacks

void simulation::enter() {
  finish_switch(nullptr, &scheduler_stack, &scheduler_stack_bytes);
  auto& world = *current_;
  auto& self = *world.running_;
  try {
    self.main_();
  } catch (const process_killed&) {
  } catch (...) { self.failure_ = std::current_exception(); }
  self.has_ended_ = true;
  exchange_exceptions(self.exceptions_, world.scheduler_exceptions_);
  begin_switch(nullptr, scheduler_stack, scheduler_stack_bytes);
  ::setcontext(&world.scheduler_);
}

void simulation::switch_to(simulated_process& next) {
  auto* const before = std::exchange(running_, &next);
  assert(before == nullptr);
  if (!std::exchange(next.has_started_, true)) {
    next.stack_ = take_stack();
    ::getcontext(&next.context_);
    next.context_.uc_stack.ss_sp = next.stack_.get();
    next.context_.uc_stack.ss_size = stack_bytes;
    ::makecontext(&next.context_, &simulation::enter, 0);
  }
  exchange_exceptions(scheduler_exceptions_, next.exceptions_);
  void* saved = nullptr;
  begin_switch(&saved, next.stack_.get(), stack_bytes);
  ::swapcontext(&scheduler_, &next.context_);
  finish_switch(saved, nullptr, nullptr);
  running_ = before;
}

void simulation::switch_back() {
  auto& self = *running_;
  exchange_exceptions(self.exceptions_, scheduler_exceptions_);
  begin_switch(&self.fake_stack_, scheduler_stack, scheduler_stack_bytes);
  ::swapcontext(&self.context_, &scheduler_);
  finish_switch(self.fake_stack_, &scheduler_stack, &scheduler_stack_bytes);
}

void simulation::point() {
  wait([] { return true; }, now_);
}

bool simulation::wait(function_ref<bool()> done, clock::time_point when) {
  auto& self = *running_;
  if (!self.is_killed_) {
    self.done_ = &done;
    self.wakes_ = when;
    switch_back();
    self.done_ = nullptr;
    self.wakes_ = clock::time_point::max();
  }
  if (self.is_killed_) { throw process_killed(); }
  return done();
}

void simulation::sleep_for(clock::duration length) {
  wait([] { return false; }, now_ + length);
}

}  // namespace stepwell::test
