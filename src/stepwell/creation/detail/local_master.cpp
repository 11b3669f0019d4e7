// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/detail/local_master.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"

#include <fmt/format.h>
#include <atomic>
#include <cassert>
#include <functional>
#include <map>
#include <stop_token>
#include <string_view>

namespace stepwell {

// ---- fair_shared_mutex

void fair_shared_mutex::enter(entry as) {
  detail::mutex_lock lock(mutex_);
  if (first_ == nullptr && is_open_for(as)) { return admit(as); }
  waiter me{as};
  (first_ == nullptr ? first_ : last_->next) = &me;
  last_ = &me;
  const detail::observed_wait here;
  me.admitted.wait(lock, [&] { return me.is_in; });
}

void fair_shared_mutex::leave(entry as) noexcept {
  const detail::mutex_lock lock(mutex_);
  if (as == entry::alone) {
    assert(has_one_alone_);
    has_one_alone_ = false;
  } else {
    assert(sharing_ > 0);
    --sharing_;
  }
  while (first_ != nullptr && is_open_for(first_->as)) {
    waiter& next = *first_;
    first_ = next.next;
    admit(next.as);
    next.is_in = true;
    next.admitted.notify_one();  // under the lock: `next` may be destroyed once it is released
  }
}

int fair_shared_mutex::waiting() const {
  const detail::mutex_lock lock(mutex_);
  int count = 0;
  for (const auto* one = first_; one != nullptr; one = one->next) { ++count; }
  return count;
}

void fair_shared_mutex::admit(entry as) noexcept {
  if (as == entry::alone) {
    has_one_alone_ = true;
  } else {
    ++sharing_;
  }
}

// ---- local_master

/// The state shared by all connections. `is_ready` and `generation` are written with the gate held exclusively and `mutex` locked, so
/// either of them suffices for reading.
class local_master {
public:
  local_master(std::string called, const master_subject& of) : name(std::move(called)), subject(of) {}

  const std::string name;
  const master_subject subject;
  fair_shared_mutex gate;
  std::int64_t step = 0;  // accessed as an atomic
  detail::checked_mutex mutex;
  std::condition_variable ready_changed;
  bool is_ready = false;
  std::uint64_t generation = 0;
  int seats = 0;           // guarded by the registry's mutex
  bool has_chief = false;  // guarded by the registry's mutex
};

namespace {

constexpr std::string_view scheme = "local:";

/// The masters of the process by name. An entry exists as long as a session is connected to it.
struct master_registry {
  detail::checked_mutex mutex;
  std::map<std::string, std::shared_ptr<local_master>, std::less<>> masters STEPWELL_GUARDED_BY(mutex);
};

master_registry& registry() {
  static master_registry all;
  return all;
}

}  // namespace

int sessions_at(const std::string& master) {
  auto& all = registry();
  const detail::mutex_lock lock(all.mutex);
  const auto found = all.masters.find(master);
  return found == all.masters.end() ? 0 : found->second->seats;
}

master_connection::master_connection(const session_target& target, const master_subject& subject) : target_(target), subject_(subject) {
  if (!target_.master.starts_with(scheme) || target_.master.size() == scheme.size()) {
    throw invalid_argument_error(
        fmt::format("unknown master \"{}\"; give no master (this session alone), or \"local:NAME\" "
                    "(shared by the sessions of this process that give the same name)",
                    target_.master));
  }
  take();
}

void master_connection::take() {
  auto& all = registry();
  const detail::mutex_lock lock(all.mutex);
  const auto found = all.masters.find(target_.master);
  if (found == all.masters.end()) {
    master_ = std::make_shared<local_master>(target_.master, subject_);
    all.masters.emplace(target_.master, master_);
  } else if (found->second->subject != subject_) {
    throw invalid_argument_error(
        fmt::format("the master \"{}\" is in use for another model. All sessions on it reference the same "
                    "model object; name another master for this one",
                    target_.master));
  } else if (target_.is_chief && found->second->has_chief) {
    throw failed_precondition_error(fmt::format(
        "the master \"{}\" has a chief already; close that session first, or make this one a worker (is_chief = false)", target_.master));
  } else {
    master_ = found->second;
  }
  ++master_->seats;
  master_->has_chief |= target_.is_chief;
}

void master_connection::close() noexcept {
  if (is_closed()) { return; }
  assert(depth_ == 0);
  left_at_ = global_step();
  auto& all = registry();
  const detail::mutex_lock lock(all.mutex);
  if (target_.is_chief) { master_->has_chief = false; }
  if (--master_->seats == 0) { all.masters.erase(all.masters.find(master_->name)); }
  master_.reset();
}

local_master& master_connection::master() const {
  if (is_closed()) {
    throw failed_precondition_error(
        fmt::format("this session is no longer connected to the master \"{}\"; create a new session", target_.master));
  }
  return *master_;
}

void master_connection::go_in(fair_shared_mutex::entry as) {
  if (depth_ == 0) {
    master().gate.enter(as);
    entered_ = as;
  } else if (as == fair_shared_mutex::entry::alone && entered_ == fair_shared_mutex::entry::shared) {
    throw failed_precondition_error("exclusive access to the model is not possible inside a concurrent step; request it between two steps");
  }
  ++depth_;
}

void master_connection::go_out() noexcept {
  if (--depth_ == 0) { master_->gate.leave(entered_); }
}

/// Enters the gate for a step. @errors Those of `enter`. The gate is then left.
void master_connection::admit() {
  go_in(subject_.steps_are_concurrent ? fair_shared_mutex::entry::shared : fair_shared_mutex::entry::alone);
  const bool is_current = generation_ == master_->generation;
  if (master_->is_ready && is_current) { return; }
  const master_scope inside(*this);
  if (is_current || !master_->is_ready) {
    throw aborted_error(fmt::format("the chief of \"{}\" has not made the model ready", target_.master));
  }
  throw aborted_error(fmt::format("the chief of \"{}\" has made the model ready again, at step {}, since this session joined",
                                  target_.master, global_step()));
}

master_scope master_connection::enter_alone() {
  go_in(fair_shared_mutex::entry::alone);
  return master_scope(*this);
}

std::int64_t master_connection::global_step() const noexcept {
  return is_closed() ? left_at_ : std::atomic_ref(master_->step).load(std::memory_order_relaxed);
}

std::int64_t& master_connection::shared_step() noexcept { return master_->step; }

master_scope master_connection::begin_preparing() {
  if (!target_.is_chief) {
    throw failed_precondition_error(fmt::format("a worker of \"{}\" cannot make the model ready; it waits for the chief", target_.master));
  }
  if (is_closed()) { take(); }
  auto inside = enter_alone();
  const detail::mutex_lock lock(master_->mutex);
  master_->is_ready = false;
  generation_ = ++master_->generation;
  return inside;
}

void master_connection::end_preparing(std::int64_t step) {
  set_global_step(step);
  {
    const detail::mutex_lock lock(master_->mutex);
    master_->is_ready = true;
  }
  master_->ready_changed.notify_all();
}

bool master_connection::is_chief_ready() const {
  auto& shared = master();
  const detail::mutex_lock lock(shared.mutex);
  return shared.is_ready;
}

bool master_connection::wait_for_chief(session_signals& signals, clock& time, clock::time_point until) {
  auto& shared = master();
  const auto wake = [&shared] {
    { const detail::mutex_lock held(shared.mutex); }  // prevents a lost wake-up between a waiter's check and its wait
    shared.ready_changed.notify_all();
  };
  const std::stop_callback on_stop(signals.stop_token(), wake);  // before the lock: the callback may run right here
  const std::stop_callback on_interruption(signals.interruption_token(), wake);
  detail::mutex_lock lock(shared.mutex);
  time.wait_until(lock, shared.ready_changed, until, [&] { return shared.is_ready || signals.stop_requested() || signals.interrupted(); });
  return shared.is_ready;
}

void master_connection::join() noexcept {
  assert(depth_ > 0);
  generation_ = master_->generation;
}

}  // namespace stepwell
