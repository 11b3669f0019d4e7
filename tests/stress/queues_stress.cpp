// SPDX-License-Identifier: Apache-2.0
//
// Queues, their runner and a coordinator on the real clock, with eight producers and stops at any moment.
//
// STEPWELL_STRESS_SEED repeats the choices of a run, but not the scheduling of the machine. STEPWELL_STRESS_SECONDS
// sets the duration. The exit code is 0 if all rounds kept their promises. A round that hangs ends the program with a
// message.
#include "stress/rounds.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>
#include <stepwell/base/random.hpp>
#include <stepwell/data/queue.hpp>
#include <stepwell/threads/queue_runner.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;
using steady = std::chrono::steady_clock;

namespace {

constexpr std::uint64_t producer_count = 8;

/// The end of a round.
enum class ending { at_the_end_of_input, by_a_stop, by_a_failure, by_a_cancellation };

/// The parameters of one round: a pure function of seed and round.
struct plan {
  plan(std::uint64_t seed, std::uint64_t round) : random(seed, round) {}

  std::uint64_t below(std::uint64_t limit) { return random() % limit; }

  sw::random_stream random;
  std::uint64_t capacity = 1 + below(8);
  std::uint64_t consumers = 1 + below(4);
  std::uint64_t each = 50 + below(400);  // elements per producer
  std::uint64_t fails_at = below(each);
  std::uint64_t failing = below(producer_count);
  bool shuffles = below(2) == 0;
  bool consumers_are_late = below(4) == 0;
  bool recovers = below(2) == 0;  // continues after a stop
  ending how = static_cast<ending>(below(4));
  std::uint64_t stop_after_us = below(3'000);
};

[[noreturn]] void complain(const std::string& what) { throw std::logic_error(what); }
void promise(bool kept, const char* what) {
  if (!kept) { complain(what); }
}

/// A producer's elements and progress. Written by the producer's thread, or between two runs.
struct producer {
  std::uint64_t number;
  std::uint64_t next = 0;  // all elements before this one have been enqueued
};

template<class Queue>
class round_of {
public:
  round_of(Queue& queue, plan& what) : queue_(queue), plan_(what), taken_(plan_.consumers) {
    for (std::uint64_t i = 0; i < producer_count; ++i) { producers_[i].number = i; }
  }

  void run() {
    std::vector<sw::enqueue_op> ops;
    for (auto& each : producers_) {
      ops.push_back({"p" + std::to_string(each.number), [this, &each](std::stop_token) { produce(each); }});
    }
    sw::queue_runner runner(queue_, std::move(ops));
    once(runner);
    check_taken(false);
    if (plan_.recovers && (plan_.how == ending::by_a_stop || plan_.how == ending::by_a_failure)) {
      threads_.clear_stop();
      plan_.how = ending::at_the_end_of_input;
      once(runner);
    }
    check_taken(plan_.how == ending::at_the_end_of_input);
  }

private:
  void produce(producer& mine) {
    if (mine.next == plan_.each) { throw sw::out_of_range_error("all done"); }
    if (plan_.how == ending::by_a_failure && mine.number == plan_.failing && mine.next == plan_.fails_at) {
      throw std::runtime_error("planned");
    }
    queue_.enqueue(mine.number * plan_.each + mine.next);
    ++mine.next;
  }

  void consume(std::vector<std::uint64_t>& taken, bool looks) {
    if (looks) {
      for (; queue_.peek() != nullptr; queue_.advance()) { taken.push_back(*queue_.peek()); }
      return;
    }
    try {
      for (;;) { taken.push_back(queue_.dequeue()); }
    } catch (const sw::out_of_range_error&) {  // the end of the queue
    }
  }

  /// Runs one round, from the creation of the threads until all are joined.
  void once(sw::queue_runner& runner) {
    auto made = runner.create_threads(this, &threads_);
    promise(made.size() == producer_count + 1, "a session without threads gets some");
    promise(runner.create_threads(this, &threads_, true).empty(), "a session with threads gets no more");
    for (auto& thread : made) { thread.start(); }
    const bool stops = plan_.how == ending::by_a_stop || plan_.how == ending::by_a_cancellation;
    const bool is_late = stops && plan_.consumers_are_late;
    std::vector<sw::coordinated_thread> consumers;
    if (!is_late) { consumers = start_consumers(); }
    if (stops) {
      std::this_thread::sleep_for(std::chrono::microseconds(plan_.stop_after_us));
      if (plan_.how == ending::by_a_cancellation) { queue_.close(true); }
      threads_.request_stop();
    }
    if (is_late) {  // no consumer makes space, so only the stop ends the producers
      for (const auto& thread : made) { thread.join(); }
      promise(queue_.size() <= queue_.capacity(), "a cancelled enqueue puts nothing in");
      consumers = start_consumers();
    }
    for (const auto& consumer : consumers) { consumer.join(); }
    threads_.request_stop();
    finish(runner);
    promise(std::ranges::none_of(made, &sw::coordinated_thread::is_alive), "all producers are joined");
    promise(std::ranges::none_of(consumers, &sw::coordinated_thread::is_alive), "all consumers are joined");
  }

  std::vector<sw::coordinated_thread> start_consumers() {
    std::vector<sw::coordinated_thread> consumers;
    for (std::uint64_t i = 0; i < plan_.consumers; ++i) {
      consumers.push_back(threads_.start_thread("consumer", [this, i](std::stop_token) { consume(taken_[i], i == 0); }));
    }
    return consumers;
  }

  void finish(sw::queue_runner& runner) {
    bool has_failed = false;
    try {
      threads_.join({.stop_grace_period = std::chrono::hours(1)});
    } catch (const std::runtime_error& failure) {
      has_failed = true;
      // A producer that finds the cancelled queue before the stop fails.
      const bool is_cancelled = std::string(failure.what()).find("closed") != std::string::npos;
      promise(plan_.how == ending::by_a_cancellation ? is_cancelled : std::string(failure.what()) == "planned", failure.what());
    }
    promise(plan_.how != ending::by_a_failure || has_failed, "a failure comes out of the join");
    promise(plan_.how == ending::by_a_cancellation || threads_.suppressed().empty(), "the answers to a stop are no failures");
    promise(threads_.joined() && threads_.should_stop(), "joined after a stop");
    promise(runner.running(this) == 0, "no thread is counted as running");
    promise(queue_.is_closed() && queue_.size() == 0, "the consumers have emptied a closed queue");
    promise(queue_.peek() == nullptr, "the end stays the end");
  }

  /// Checks that every enqueued element was dequeued once, and that each consumer of a FIFO queue received the elements
  /// of a producer in order.
  void check_taken(bool all) {
    std::vector<int> times(producer_count * plan_.each, 0);
    for (const auto& mine : taken_) {
      std::array<std::uint64_t, producer_count> at_least{};
      for (const auto value : mine) {
        auto& least = at_least[value / plan_.each];
        promise(plan_.shuffles || value % plan_.each >= least, "a producer's elements keep their order");
        least = value % plan_.each + 1;
        ++times[value];
      }
    }
    for (const auto& each : producers_) {
      promise(!all || each.next == plan_.each, "all the input went in");
      for (std::uint64_t i = 0; i < plan_.each; ++i) {
        const int count = times[each.number * plan_.each + i];
        promise(count <= 1, "nothing is doubled");
        promise(count == (i < each.next ? 1 : 0), "nothing is lost, and nothing invented");
      }
    }
  }

  Queue& queue_;
  plan& plan_;
  std::array<producer, producer_count> producers_{};
  std::vector<std::vector<std::uint64_t>> taken_;  // by consumer
  sw::coordinator threads_{sw::system_clock(), {}};
};

void run_round(plan what) {
  if (what.shuffles) {
    data::shuffle_queue<std::uint64_t> queue(
        {.capacity = what.capacity, .min_after_dequeue = what.below(what.capacity), .seed = what.random()});
    round_of(queue, what).run();
  } else {
    data::fifo_queue<std::uint64_t> queue({.capacity = what.capacity});
    round_of(queue, what).run();
  }
}

}  // namespace

int main() {
  sw::set_log_level(sw::log_level::warning);  // planned failures are logged at level info
  return sw::test::run_rounds([](std::uint64_t seed, std::uint64_t round) { run_round(plan(seed, round)); });
}
