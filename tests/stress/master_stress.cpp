// SPDX-License-Identifier: Apache-2.0
//
// A chief and seven workers over one model, on the real clock, with failures, restores and stops at any moment.
//
// STEPWELL_STRESS_SEED repeats the choices of a run, but not the scheduling of the machine. STEPWELL_STRESS_SECONDS
// sets the duration. The exit code is 0 if all rounds kept their promises. A round that hangs ends the program with a
// message.
#include "stress/rounds.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>
#include <stepwell/creation/session_creator.hpp>
#include <stepwell/model/model_session.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

constexpr int worker_count = 7;
const std::string master = "local:stress";

/// The first broken promise.
class broken_promises {
public:
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (first_.empty()) { first_ = what; }
  }
  void expect(bool kept, const char* what) {
    if (!kept) { note(what); }
  }
  void throw_first() const {
    const std::lock_guard lock(mutex_);
    if (!first_.empty()) { throw std::runtime_error(first_); }
  }

private:
  mutable std::mutex mutex_;
  std::string first_;
};

/// Random choices for one thread.
class dice {
public:
  dice(std::uint64_t seed, std::uint64_t round, std::uint64_t who) : numbers_(mixed(seed, round, who)) {}
  bool one_in(std::uint64_t count) { return numbers_() % count == 0; }
  std::uint64_t below(std::uint64_t count) { return numbers_() % count; }

private:
  static std::uint64_t mixed(std::uint64_t seed, std::uint64_t round, std::uint64_t who) {
    std::seed_seq sequence{seed, seed >> 32, round, who};
    std::uint64_t mixed = 0;
    std::uint32_t parts[2];
    sequence.generate(parts, parts + 2);
    mixed = (std::uint64_t{parts[0]} << 32) | parts[1];
    return mixed;
  }
  std::mt19937_64 numbers_;
};

/// A model that counts its steps in plain integers. Concurrent steps make the counts differ.
struct serial_model {
  broken_promises* broken;
  std::int64_t count = 0;
  std::vector<std::int64_t> copies = std::vector<std::int64_t>(16);

  std::int64_t step() {
    expect_whole();
    ++count;
    for (auto& copy : copies) { ++copy; }
    return count;
  }
  void init_variables() {
    count = 0;
    copies.assign(copies.size(), 0);
  }
  void expect_whole() const {
    for (const auto copy : copies) { broken->expect(copy == count, "a step found the model in the middle of another"); }
  }
  sw::variable_list variables() { return sw::variables({{"count", count}, {"copies", copies}}); }
};

/// A model that allows concurrent steps, but no step during a restore.
struct crowd_model {
  static constexpr bool concurrent_steps = true;
  broken_promises* broken;
  std::atomic<std::int64_t> count = 0;
  std::atomic<int> inside = 0;
  std::atomic<bool> is_alone = false;

  std::int64_t step() {
    ++inside;
    broken->expect(!is_alone, "a step met a restore");
    const auto mine = ++count;
    --inside;
    return mine;
  }
  void init_variables() {
    is_alone = true;
    broken->expect(inside == 0, "a restore met a step");
    count = 0;
    broken->expect(inside == 0, "a step began during a restore");
    is_alone = false;
  }
  sw::variable_list variables() { return sw::variables({}); }
};

/// A hook that throws transient failures at random points.
struct failing_hook {
  dice chance;
  std::uint64_t rarity;

  void after_create_session(auto&, auto&) { fail("after_create_session"); }
  void before_run(auto&) { fail("before_run"); }
  void after_run(auto&, const auto&) { fail("after_run"); }

private:
  void fail(const char* where) {
    if (chance.one_in(rarity)) { throw sw::aborted_error(std::string("planned, in ") + where); }
  }
};

/// A hook that compares the result of the step with the model and with the shared step. They are equal as long as no
/// other session steps.
struct looking_hook {
  broken_promises* broken;
  auto before_run(auto&) { return sw::fetch(whole_result{}, &serial_model::count); }
  void after_run(auto& context, const auto& values) {
    const auto& [result, count] = values;
    broken->expect(result == count, "a hook saw the values of another session's step");
    broken->expect(context.global_step() == count, "the global step is not the number of steps");
  }

private:
  struct whole_result {
    const std::int64_t& operator()(const std::int64_t& result) const { return result; }
  };
};
struct blind_hook {
  broken_promises* broken;
  void end(auto& session) { broken->expect(session.global_step() >= 0, "the global step is below zero"); }
};
template<class Model>
using watching_hook = std::conditional_t<std::is_same_v<Model, serial_model>, looking_hook, blind_hook>;

/// The sessions and the state of one round.
template<class Model>
class rounds {
public:
  rounds(std::uint64_t seed, std::uint64_t round) : seed_(seed), round_(round) { model_.broken = &broken_; }

  void run() {
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < worker_count; ++i) {
        threads.emplace_back([this, i] { work(static_cast<std::uint64_t>(i)); });
      }
      threads.emplace_back([this] { lead(); });
      stop_all();
    }
    broken_.expect(sw::sessions_at(master) == 0, "a session did not leave its seat");
    broken_.throw_first();
  }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

private:
  void stop_all() {
    dice chance(seed_, round_, 100);
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(chance.below(5'000)));
      stops_[chance.below(stops_.size())].request_stop();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(chance.below(20'000)));
    for (auto& stop : stops_) { stop.request_stop(); }
  }

  sw::training_options settings(std::uint64_t who) {
    return {.retry = {.max_attempts = 1'000'000, .initial_backoff = 0.0002, .max_backoff = 0.001, .seed = who},
            .stop_token = stops_[who].get_token()};
  }

  void work(std::uint64_t who) {
    dice chance(seed_, round_, who);
    const auto rarity = 20 + chance.below(500);
    while (!stops_[who].stop_requested()) {
      attempt(who, [&] {
        sw::monitored_session session(settings(who), sw::worker_session_creator<Model>(model_, nullptr, {.target = {.master = master}}),
                                      failing_hook{dice(seed_, round_, 200 + who), rarity}, watching_hook<Model>{&broken_});
        step(session, chance);
      });
    }
  }

  /// Runs one chief after another. Each chief initialises the model.
  void lead() {
    const std::uint64_t who = worker_count;
    dice chance(seed_, round_, who);
    const auto with = std::make_shared<sw::scaffold<Model>>(sw::scaffold_options<Model>{.init_fn = [&](const auto&, Model&) {
      if (chance.one_in(4)) { throw sw::unavailable_error("planned, while making the model ready"); }
    }});
    const auto rarity = 10 + chance.below(200);
    while (!stops_[who].stop_requested()) {
      attempt(who, [&] {
        sw::monitored_session session(settings(who), sw::chief_session_creator<Model>(model_, with, {.target = {.master = master}}),
                                      failing_hook{dice(seed_, round_, 200 + who), rarity}, watching_hook<Model>{&broken_});
        step(session, chance);
      });
    }
  }

  /// Runs some steps. Then the session is closed, destroyed, or ended by an error.
  void step(auto& session, dice& chance) {
    auto left = chance.below(300);
    for ([[maybe_unused]] const auto& done : session.steps()) {
      steps_.fetch_add(1, std::memory_order_relaxed);
      if (left-- == 0) { break; }
    }
    switch (chance.below(3)) {
      case 0: return session.close();
      case 1: throw std::domain_error("planned");
      default: return;
    }
  }

  template<class Action>
  void attempt(std::uint64_t who, Action&& action) {
    try {
      action();
    } catch (const std::domain_error&) {
    } catch (const sw::cancelled_error& ended) {
      if (!stops_[who].stop_requested()) { broken_.note(ended.what()); }
    } catch (const sw::aborted_error& ended) {  // a session does not recover after a stop
      if (!stops_[who].stop_requested()) { broken_.note(ended.what()); }
    } catch (const sw::unavailable_error& ended) {
      if (!stops_[who].stop_requested()) { broken_.note(ended.what()); }
    } catch (const std::exception& other) { broken_.note(other.what()); }
  }

  std::uint64_t seed_;
  std::uint64_t round_;
  broken_promises broken_;
  Model model_{};
  std::vector<std::stop_source> stops_ = std::vector<std::stop_source>(worker_count + 1);
  std::atomic<std::int64_t> steps_ = 0;
};

template<class Model>
std::int64_t run_round(std::uint64_t seed, std::uint64_t round) {
  rounds<Model> one(seed, round);
  one.run();
  return one.steps();
}

}  // namespace

int main() {
  sw::set_log_sink([](sw::log_level, std::string_view) {});  // there are many planned failures
  std::int64_t steps = 0;
  const int code = sw::test::run_rounds([&](std::uint64_t seed, std::uint64_t round) {
    steps += round % 4 == 3 ? run_round<crowd_model>(seed, round) : run_round<serial_model>(seed, round);
  });
  std::printf("%lld steps\n", static_cast<long long>(steps));
  return code;
}
