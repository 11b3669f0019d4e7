// SPDX-License-Identifier: Apache-2.0
//
// The session protocol without threads, clocks and sessions: a test plays the driver, and decides how each action ends.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/paths.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/session/detail/session_scripts.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::detail::action;
using sw::detail::piece;
using sw::detail::session_phase;
using sw::detail::step_outcome;
using enum session_phase;

namespace {

std::exception_ptr transient() { return std::make_exception_ptr(sw::aborted_error("lost on the way")); }
std::exception_ptr permanent() { return std::make_exception_ptr(sw::invalid_argument_error("no good")); }
std::exception_ptr cancellation() { return std::make_exception_ptr(sw::detail::cancelled()); }

bool is_transient(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const sw::aborted_error&) { return true; } catch (...) {
    return false;
  }
}

/// A session that consists of answers.
class fake_host {
public:
  bool should_stop() const noexcept { return stops || state.is_over(); }
  void end_body() noexcept {}
  bool is_recovery_due() { return std::exchange(recovery_is_due, false); }
  bool is_recovery_due_for_step_fn() { return is_recovery_due(); }
  bool is_boundary_due() const noexcept { return boundary_is_due; }
  bool ends_with_data() { return true; }
  bool can_recover() { return recovers && last && is_transient(last); }
  const std::exception_ptr& failure() const noexcept { return last; }
  bool was_interrupted(const std::exception_ptr& /*failure*/) const noexcept { return interrupted; }
  void clear_interruption() { interrupted = false; }
  void set_creation_failure(std::exception_ptr failure) noexcept { last = std::move(failure); }
  sw::clock::time_point next_attempt() const noexcept { return sw::clock::time_point(std::chrono::seconds(7)); }
  std::int64_t step_reached() const noexcept { return 5; }
  sw::detail::loop_place place_after_recovery(std::int64_t reached) const { return {2, reached}; }
  bool take_skip() noexcept { return std::exchange(skips, false); }
  void forget_failure() noexcept {}
  void check_save() const {
    if (state.is_closed()) { throw sw::failed_precondition_error("closed"); }
  }
  void check_threads() const {}
  bool must_leave_group() const noexcept { return leaves_group; }
  bool ends_in_formation(const std::exception_ptr& /*failure*/) noexcept { return stops_in_formation; }

  /// What an engine does when a piece or a step fails.
  void fail(session_phase phase, std::exception_ptr failure) {
    last = std::move(failure);
    state.to(phase);
  }

  sw::detail::session_state state;
  sw::detail::session_protocol<fake_host> protocol{state, *this};
  std::exception_ptr last;
  bool recovers = true;
  bool stops = false;
  bool interrupted = false;
  bool stops_in_formation = false;
  bool recovery_is_due = false;
  bool boundary_is_due = false;
  bool skips = false;
  bool leaves_group = false;
};

/// A step whose outcome is given.
class fake_attempt final : public sw::detail::step_attempt {
public:
  explicit fake_attempt(kind what = kind::loop, bool repeats = true) noexcept : step_attempt(what, repeats) {}
  void take() override { outcome = next; }
  bool skip_batch() override { return can_skip; }
  void detach() noexcept override { is_detached = true; }

  step_outcome next = step_outcome::done;
  bool can_skip = true;
  bool is_detached = false;
};

std::string name_of(const action& next) {
  static const std::vector<std::string> pieces = {"find_checkpoint", "begin_hooks",  "make_raw",      "notify_created", "finish_creation",
                                                  "creation_failed", "leave_failed", "attach_source", "step",           "boundary",
                                                  "drain",           "request_save", "leave_group",   "end_hooks",      "finish_close",
                                                  "shut_down"};
  switch (next.type) {
    case action::kind::work: return pieces.at(static_cast<std::size_t>(next.what));
    case action::kind::wait: return "wait";
    case action::kind::yield: return "yield";
    case action::kind::observe: return "observe";
  }
  return {};
}

/// Drives a script by hand.
class by_hand {
public:
  by_hand(fake_host& host, sw::detail::script steps) : host_(host), script_(std::move(steps)) { resume(nullptr); }

  /// The action that is pending; "done" at the end.
  std::string pending() const { return is_done_ ? "done" : name_of(script_.pending()); }
  by_hand& succeed() {
    if (!is_done_ && script_.pending().type == action::kind::work && script_.pending().what == piece::step) {
      host_.state.to(stepping);  // as a run does
      host_.state.to(ready);
      script_.pending().attempt->take();
    }
    return resume(nullptr);
  }
  by_hand& fail(std::exception_ptr failure) { return resume(std::move(failure)); }
  /// Succeeds until `name` is pending.
  by_hand& up_to(const std::string& name) {
    while (pending() != name) {
      REQUIRE(pending() != "done");
      succeed();
    }
    return *this;
  }
  void finish() {
    while (!is_done_) { succeed(); }
  }
  /// What the script threw, if it did.
  std::exception_ptr thrown() const { return thrown_; }
  bool was_cancelled() const {
    if (!thrown_) { return false; }
    try {
      std::rethrow_exception(thrown_);
    } catch (const sw::detail::cancelled&) { return true; } catch (...) {
      return false;
    }
  }

private:
  by_hand& resume(std::exception_ptr result) {
    try {
      is_done_ = !script_.resume(std::move(result));
    } catch (...) {
      thrown_ = std::current_exception();
      is_done_ = true;
    }
    return *this;
  }

  fake_host& host_;
  sw::detail::script script_;
  bool is_done_ = false;
  std::exception_ptr thrown_;
};

void start(fake_host& host) {
  by_hand(host, host.protocol.start()).finish();
  REQUIRE(host.state.phase() == ready);
}

/// The actions of a script that succeeds.
std::vector<std::string> actions_of(fake_host& host, sw::detail::script steps) {
  std::vector<std::string> all;
  by_hand driver(host, std::move(steps));
  for (; driver.pending() != "done"; driver.succeed()) { all.push_back(driver.pending()); }
  CHECK(!driver.thrown());
  return all;
}

using words = std::vector<std::string>;

}  // namespace

TEST_CASE("a start begins the hooks, makes the raw session and notifies the hooks", "[session][protocol]") {
  fake_host host;
  CHECK(host.state.phase() == created);
  CHECK(actions_of(host, host.protocol.start()) ==
        words{"observe", "find_checkpoint", "begin_hooks", "observe", "make_raw", "notify_created", "finish_creation"});
  CHECK(host.state.phase() == ready);
  CHECK(host.state.was_ready());
}

TEST_CASE("a start goes through its phases", "[session][protocol]") {
  fake_host host;
  by_hand driver(host, host.protocol.start());
  driver.up_to("begin_hooks");
  CHECK(host.state.phase() == created);
  driver.up_to("observe");
  CHECK(host.state.phase() == begun);
  driver.up_to("make_raw");
  CHECK(host.state.phase() == creating);
  driver.finish();
  CHECK(host.state.phase() == ready);
}

TEST_CASE("hooks that cannot begin make the start fail for good", "[session][protocol]") {
  fake_host host;
  by_hand driver(host, host.protocol.start());
  driver.up_to("begin_hooks").fail(permanent());
  CHECK(driver.thrown());
  CHECK(host.state.phase() == start_failed);
}

TEST_CASE("a first creation that fails in a way that may pass is tried again after a wait", "[session][protocol]") {
  fake_host host;
  by_hand driver(host, host.protocol.start());
  driver.up_to("make_raw").fail(transient());
  CHECK(driver.pending() == "creation_failed");
  driver.succeed();
  CHECK(driver.pending() == "leave_failed");
  CHECK(host.state.phase() == leaving);
  driver.up_to("wait");
  CHECK(host.state.phase() == backing_off);
  driver.succeed();
  CHECK(driver.pending() == "make_raw");
  driver.finish();
  CHECK(!driver.thrown());
  CHECK(host.state.phase() == ready);
}

TEST_CASE("a first creation that fails otherwise makes the start fail for good", "[session][protocol]") {
  for (const std::string at : {"make_raw", "notify_created", "finish_creation"}) {
    fake_host host;
    by_hand driver(host, host.protocol.start());
    driver.up_to(at).fail(permanent());
    REQUIRE(driver.pending() == "creation_failed");
    driver.fail(permanent());
    CHECK(driver.thrown());
    CHECK(host.state.phase() == start_failed);
  }
}

TEST_CASE("a start whose retries are used up has failed for good", "[session][protocol]") {
  fake_host host;
  by_hand driver(host, host.protocol.start());
  driver.up_to("make_raw").fail(transient()).succeed();
  REQUIRE(driver.pending() == "leave_failed");
  driver.fail(transient());
  CHECK(driver.thrown());
  CHECK(host.state.phase() == start_failed);
}

TEST_CASE("a cancelled start continues where it was", "[session][protocol][cancel]") {
  fake_host host;
  SECTION("before it began") {
    by_hand driver(host, host.protocol.start());
    driver.fail(cancellation());
    CHECK(driver.was_cancelled());
    CHECK(host.state.phase() == created);
  }
  SECTION("after the hooks have begun: they do not begin again") {
    by_hand driver(host, host.protocol.start());
    driver.succeed().up_to("observe").fail(cancellation());
    CHECK(driver.was_cancelled());
    CHECK(host.state.phase() == begun);
    CHECK(actions_of(host, host.protocol.start()) == words{"observe", "make_raw", "notify_created", "finish_creation"});
  }
  SECTION("in a creation that waits for others") {
    by_hand driver(host, host.protocol.start());
    driver.up_to("make_raw");
    host.interrupted = true;
    driver.fail(permanent());
    CHECK(driver.was_cancelled());
    CHECK(host.state.phase() == begun);
  }
  SECTION("in the wait before the next attempt: it is not left again") {
    by_hand driver(host, host.protocol.start());
    driver.up_to("make_raw").fail(transient());
    driver.up_to("wait").fail(cancellation());
    CHECK(driver.was_cancelled());
    CHECK(host.state.phase() == backing_off);
    CHECK(actions_of(host, host.protocol.start()) == words{"observe", "observe", "wait", "make_raw", "notify_created", "finish_creation"});
  }
}

TEST_CASE("a step of a loop attaches the source, steps, and keeps the boundary if it is due", "[session][protocol]") {
  fake_host host;
  start(host);
  fake_attempt attempt;
  CHECK(actions_of(host, host.protocol.step(attempt)) == words{"yield", "observe", "attach_source", "step"});
  CHECK(attempt.outcome == step_outcome::done);
  host.boundary_is_due = true;
  attempt.outcome = step_outcome::not_taken;
  CHECK(actions_of(host, host.protocol.step(attempt)) == words{"yield", "observe", "attach_source", "step", "boundary"});
  attempt.outcome = step_outcome::done;  // taken on the fast path
  CHECK(actions_of(host, host.protocol.step(attempt)) == words{"boundary"});
  CHECK(host.state.phase() == ready);
}

TEST_CASE("the end of the data, or a stop, ends the loop and releases the source", "[session][protocol]") {
  fake_host host;
  start(host);
  fake_attempt attempt;
  SECTION("the data ends") {
    attempt.next = step_outcome::out_of_data;
    CHECK(actions_of(host, host.protocol.step(attempt)) == words{"yield", "observe", "attach_source", "step"});
  }
  SECTION("a stop was requested") {
    host.stops = true;
    CHECK(actions_of(host, host.protocol.step(attempt)).empty());
  }
  SECTION("a stop was requested in a process of a group") {
    host.stops = host.leaves_group = true;
    CHECK(actions_of(host, host.protocol.step(attempt)) == words{"leave_group"});
  }
  CHECK(attempt.outcome == step_outcome::out_of_data);
  CHECK(attempt.is_detached);
}

TEST_CASE("a step that fails in a way that may pass is repeated after a recovery", "[session][protocol]") {
  fake_host host;
  start(host);
  for (const auto kind : {fake_attempt::kind::loop, fake_attempt::kind::run, fake_attempt::kind::step_fn}) {
    fake_attempt attempt(kind);
    attempt.outcome = step_outcome::to_recover;
    host.state.to_within_step(stepping);
    host.fail(failed_midway, transient());
    by_hand driver(host, host.protocol.step(attempt));
    CHECK(driver.pending() == "leave_failed");
    driver.up_to("step");
    CHECK(attempt.place.attempt == 2);
    CHECK(attempt.place.rolled_back_from == 5);
    driver.finish();
    CHECK(attempt.outcome == step_outcome::done);
    CHECK(host.state.phase() == ready);
  }
}

TEST_CASE("a failed boundary is recovered from, unless the run cannot be repeated", "[session][protocol]") {
  fake_host host;
  start(host);
  host.boundary_is_due = true;
  const bool repeats = GENERATE(true, false);
  fake_attempt attempt(fake_attempt::kind::run, repeats);
  by_hand driver(host, host.protocol.step(attempt));
  driver.up_to("boundary");
  CHECK(host.state.phase() == at_boundary);
  host.last = transient();
  driver.fail(host.last);
  if (repeats) {
    CHECK(driver.pending() == "leave_failed");
  } else {
    CHECK(driver.thrown() == host.last);
    CHECK(host.state.phase() == failed);
  }
}

TEST_CASE("a rollback that skips its batch throws where there is no batch to skip", "[session][protocol]") {
  fake_host host;
  start(host);
  host.fail(failed, transient());
  host.skips = true;
  fake_attempt attempt;
  attempt.can_skip = false;
  attempt.outcome = step_outcome::to_recover;
  by_hand driver(host, host.protocol.step(attempt));
  driver.finish();
  CHECK(driver.thrown() == host.last);
  CHECK(host.state.phase() == ready);
}

TEST_CASE("a recovery that fails leaves the session lost, and the next one tries again", "[session][protocol]") {
  fake_host host;
  start(host);
  SECTION("when it leaves") {
    host.fail(failed, transient());
    fake_attempt attempt;
    attempt.outcome = step_outcome::to_recover;
    by_hand driver(host, host.protocol.step(attempt));
    driver.fail(transient());
    CHECK(driver.thrown());
  }
  SECTION("when it creates") {
    host.fail(failed, transient());
    fake_attempt attempt;
    attempt.outcome = step_outcome::to_recover;
    by_hand driver(host, host.protocol.step(attempt));
    driver.up_to("make_raw").fail(permanent()).fail(permanent());
    CHECK(driver.thrown());
  }
  CHECK(host.state.phase() == lost);
  host.recovery_is_due = true;
  fake_attempt run(fake_attempt::kind::run);
  by_hand driver(host, host.protocol.step(run));
  driver.up_to("leave_failed").finish();
  CHECK(host.state.phase() == ready);
}

TEST_CASE("a stop ends the loop of a session whose group is not formed again", "[session][protocol]") {
  fake_host host;
  start(host);
  host.fail(failed, transient());
  host.stops_in_formation = true;
  fake_attempt attempt;
  attempt.outcome = step_outcome::to_recover;
  by_hand driver(host, host.protocol.step(attempt));
  driver.up_to("make_raw").fail(permanent()).fail(permanent()).finish();
  CHECK(attempt.outcome == step_outcome::out_of_data);
  CHECK(host.state.phase() == lost);
}

TEST_CASE("a cancelled recovery is continued by the next step", "[session][protocol][cancel]") {
  fake_host host;
  start(host);
  host.fail(failed_midway, transient());
  fake_attempt attempt;
  attempt.outcome = step_outcome::to_recover;
  by_hand driver(host, host.protocol.step(attempt));
  driver.up_to("wait").fail(cancellation());
  CHECK(driver.was_cancelled());
  CHECK(host.state.phase() == backing_off);
  SECTION("in a creation, too") {
    fake_attempt again;
    by_hand second(host, host.protocol.step(again));
    second.up_to("make_raw");
    host.interrupted = true;
    second.fail(permanent());
    CHECK(second.was_cancelled());
    CHECK(host.state.phase() == backing_off);
  }
  fake_attempt again;
  CHECK(actions_of(host, host.protocol.step(again)) == words{"yield", "observe", "attach_source", "observe", "wait", "make_raw",
                                                             "notify_created", "finish_creation", "yield", "observe", "attach_source",
                                                             "step"});
}

TEST_CASE("a checkpoint on request drains, requests, saves and drains", "[session][protocol]") {
  fake_host host;
  start(host);
  const auto before = GENERATE(ready, failed, failed_midway);
  if (before != ready) { host.state.to(before); }
  host.boundary_is_due = true;
  CHECK(actions_of(host, host.protocol.save_now()) == words{"observe", "drain", "request_save", "boundary", "drain"});
  CHECK(host.state.phase() == before);
  by_hand driver(host, host.protocol.save_now());
  driver.up_to("request_save");
  CHECK(host.state.phase() == saving);
  driver.fail(permanent());
  CHECK(driver.thrown());
  CHECK(host.state.phase() == before);
}

TEST_CASE("a close ends the hooks, then saves, and the session is closed also if that fails", "[session][protocol]") {
  fake_host host;
  start(host);
  by_hand driver(host, host.protocol.close());
  driver.up_to("end_hooks");
  CHECK(host.state.phase() == ending);
  driver.up_to("finish_close");
  CHECK(host.state.phase() == finishing);
  driver.fail(permanent());
  CHECK(driver.thrown());
  CHECK(host.state.phase() == closed);
  CHECK(actions_of(host, host.protocol.close()).empty());
}

TEST_CASE("a session that never started is shut down, without its hooks", "[session][protocol]") {
  fake_host host;
  CHECK(actions_of(host, host.protocol.close()) == words{"observe", "shut_down"});
}

TEST_CASE("a script that is destroyed in the middle leaves a phase from which another operation can continue",
          "[session][protocol][cancel]") {
  for (const std::string at : {"make_raw", "notify_created", "finish_creation"}) {
    fake_host host;
    { by_hand(host, host.protocol.start()).up_to(at); }
    CHECK(host.state.phase() == begun);
    start(host);
  }
  for (const std::string at : {"leave_failed", "wait", "make_raw", "step", "boundary"}) {
    fake_host host;
    start(host);
    host.boundary_is_due = true;
    host.fail(failed, transient());
    fake_attempt attempt;
    attempt.outcome = step_outcome::to_recover;
    { by_hand(host, host.protocol.step(attempt)).up_to(at); }
    INFO(at << ": " << sw::detail::name_of(host.state.phase()));
    host.recovery_is_due = host.state.phase() == lost;
    fake_attempt next(fake_attempt::kind::run);
    by_hand driver(host, host.protocol.step(next));
    driver.finish();
    CHECK(!driver.thrown());
    CHECK(host.state.phase() == ready);
  }
}

TEST_CASE("every transition that a script makes is reached; all others are those of a run and of abandoning", "[session][protocol]") {
  using transition = std::pair<session_phase, session_phase>;
  std::set<transition> reached;
  const auto run = [&reached](const std::function<void(fake_host&)>& scenario) {
    fake_host host;
    host.state.on_transition = [&reached](session_phase from, session_phase to) { reached.emplace(from, to); };
    scenario(host);
  };
  const auto recovering = [](fake_host& host, const std::string& at) {
    start(host);
    host.fail(failed, transient());
    auto attempt = std::make_unique<fake_attempt>();
    attempt->outcome = step_outcome::to_recover;
    by_hand driver(host, host.protocol.step(*attempt));
    driver.up_to(at).fail(at == "wait" ? cancellation() : transient());
  };
  // A start, and how it may fail.
  run(start);
  run([](fake_host& host) { by_hand(host, host.protocol.start()).up_to("begin_hooks").fail(permanent()); });
  run([](fake_host& host) { by_hand(host, host.protocol.start()).up_to("make_raw").fail(permanent()).fail(permanent()); });
  run([](fake_host& host) { by_hand(host, host.protocol.start()).up_to("make_raw").fail(transient()).succeed().fail(transient()); });
  run([](fake_host& host) {
    by_hand driver(host, host.protocol.start());
    driver.up_to("make_raw");
    host.interrupted = true;
    driver.fail(permanent());
  });
  // A recovery, and how it may fail.
  run([&](fake_host& host) { recovering(host, "leave_failed"); });
  run([&](fake_host& host) {
    recovering(host, "wait");
    fake_attempt next;
    by_hand driver(host, host.protocol.step(next));
    driver.up_to("make_raw");
    host.interrupted = true;
    driver.fail(permanent());
  });
  run([&](fake_host& host) {
    recovering(host, "wait");
    fake_attempt next;
    by_hand driver(host, host.protocol.step(next));
    driver.up_to("make_raw").fail(permanent()).fail(permanent());
    host.recovery_is_due = true;
    fake_attempt run_again(fake_attempt::kind::run);
    by_hand(host, host.protocol.step(run_again)).finish();
  });
  run([](fake_host& host) {
    start(host);
    host.fail(failed_midway, transient());
    fake_attempt attempt;
    attempt.outcome = step_outcome::to_recover;
    by_hand(host, host.protocol.step(attempt)).finish();
  });
  // Boundaries and saves.
  run([](fake_host& host) {
    start(host);
    host.boundary_is_due = true;
    fake_attempt attempt;
    by_hand(host, host.protocol.step(attempt)).finish();
    attempt.outcome = step_outcome::done;
    by_hand(host, host.protocol.step(attempt)).fail(permanent());
  });
  for (const auto before : {ready, failed, failed_midway}) {
    run([before](fake_host& host) {
      start(host);
      if (before != ready) { host.state.to(before); }
      by_hand(host, host.protocol.save_now()).finish();
    });
  }
  // Closing, from every phase that allows it.
  for (const auto before : {ready, failed, failed_midway}) {
    run([before](fake_host& host) {
      start(host);
      if (before != ready) { host.state.to(before); }
      by_hand(host, host.protocol.close()).finish();
    });
  }
  for (const std::string at : {"wait", "leave_failed"}) {
    run([&](fake_host& host) {
      recovering(host, at);
      by_hand(host, host.protocol.close()).finish();
    });
  }
  // The engine makes these itself, in a run or when a run fails. Tests of sessions pass through them.
  for (const auto& [from, to] : std::vector<transition>{{ready, stepping},
                                                        {stepping, ready},
                                                        {stepping, failed},
                                                        {stepping, failed_midway},
                                                        {failed, ready},
                                                        {failed, stepping},
                                                        {failed, failed},
                                                        {failed, failed_midway},
                                                        {failed_midway, ready},
                                                        {failed_midway, stepping},
                                                        {failed_midway, failed_midway}}) {
    CHECK(sw::detail::is_allowed(from, to));
    reached.emplace(from, to);
  }
  for (auto from = created; from <= abandoned; from = static_cast<session_phase>(static_cast<int>(from) + 1)) {
    for (auto to = created; to < abandoned; to = static_cast<session_phase>(static_cast<int>(to) + 1)) {
      if (!sw::detail::is_allowed(from, to)) { continue; }
      INFO(sw::detail::name_of(from) << " -> " << sw::detail::name_of(to));
      CHECK(reached.contains(transition(from, to)));
    }
  }
}

TEST_CASE("scripts reuse the memory of their session", "[session][protocol]") {
  fake_host host;
  start(host);
  host.boundary_is_due = true;
  const auto* const before = host.protocol.frames().allocate(16);
  host.protocol.frames().deallocate(const_cast<void*>(before), 16);
  for (int i = 0; i < 100; ++i) {
    fake_attempt attempt;
    by_hand(host, host.protocol.step(attempt)).finish();
  }
  const auto* const after = host.protocol.frames().allocate(16);
  host.protocol.frames().deallocate(const_cast<void*>(after), 16);
  CHECK(before == after);
}

TEST_CASE("docs/design/session-protocol.md lists each phase with the phases that may follow", "[session][protocol]") {
  const auto page = sw::test::file_text(sw::test::golden("/../../docs/design/session-protocol.md"));
  for (auto from = created; from <= abandoned; from = static_cast<session_phase>(static_cast<int>(from) + 1)) {
    std::string next;
    for (auto to = created; to <= abandoned; to = static_cast<session_phase>(static_cast<int>(to) + 1)) {
      if (sw::detail::is_allowed(from, to)) { next += (next.empty() ? "`" : ", `") + std::string(sw::detail::name_of(to)) + "`"; }
    }
    const auto row = "| `" + std::string(sw::detail::name_of(from)) + "` | " + (next.empty() ? "none" : next) + " |";
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}
