// SPDX-License-Identifier: Apache-2.0
//
// Scenarios for the parts of the library that create threads, one for each part.
#include "fault/scenarios.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/coro/detail/helper_threads.hpp>
#include <stepwell/io/detail/signal_watch.hpp>
#include <stepwell/io/pool.hpp>
#include <stepwell/threads/coordinator.hpp>

#include <atomic>
#include <csignal>
#include <future>
#include <map>
#include <memory>

namespace stepwell::test {
namespace {

void pools(const std::string& /*directory*/) {
  std::atomic<int> runs = 0;
  io::pool threads(3);
  for (int i = 0; i < 10; ++i) {
    threads.post([&] { ++runs; });
  }
  threads.join();
  if (runs != 10) { throw std::logic_error("a job was not run"); }
}

/// Destroys the last reference to the pool inside one of the pool's own jobs.
void pool_dropped_inside(const std::string& /*directory*/) {
  auto threads = std::make_shared<io::pool>(2);
  std::promise<void> is_alone;
  std::promise<void> is_dropped;
  threads->post([&, kept = threads]() mutable {
    is_alone.get_future().wait();
    kept.reset();
    is_dropped.set_value();
  });
  threads.reset();
  is_alone.set_value();
  is_dropped.get_future().wait();
}

void signals(const std::string& /*directory*/) {
  for (int i = 0; i < 2; ++i) {
    std::promise<int> told;
    const auto watch = value_or_throw(io::signal_watch::start({SIGUSR1}, [&](int signal) { told.set_value(signal); }));
    ::raise(SIGUSR1);
    if (told.get_future().get() != SIGUSR1) { throw std::logic_error("another signal was told"); }
  }
}

void alarms(const std::string& /*directory*/) {
  const auto time = system_clock();
  std::promise<void> is_due;
  const alarm soon(time, time->now(), [&] { is_due.set_value(); });
  is_due.get_future().wait();
}

void offloaded_calls(const std::string& /*directory*/) {
  std::promise<void> first;
  std::promise<void> second;
  std::promise<void> apart;
  // Waits for all results, also after an error, because the jobs refer to them.
  std::vector<std::future<void>> begun;
  std::exception_ptr failure;
  const auto begin = [&](std::promise<void>& done, auto post) {
    try {
      post([&done] { done.set_value(); });
      begun.push_back(done.get_future());
    } catch (...) { failure = std::current_exception(); }
  };
  auto& threads = coro::helper_threads::shared();
  begin(first, [&](auto job) { threads.post(job); });
  begin(second, [&](auto job) { threads.post(job); });
  begin(apart, [&](auto job) { threads.post_apart(job); });
  for (auto& done : begun) { done.wait(); }
  if (failure) { std::rethrow_exception(failure); }
}

void coordinated_threads(const std::string& /*directory*/) {
  coordinator threads(system_clock(), {});
  const auto stop = [&threads](const std::stop_token&) { threads.request_stop(); };
  threads.start_thread("first", stop);
  threads.start_thread("second", stop);
  threads.join();
}

}  // namespace

scenario scenario_called(std::string_view name) {
  static const std::map<std::string_view, scenario> all{
      {"pools", pools},
      {"pool_dropped_inside", pool_dropped_inside},
      {"signals", signals},
      {"alarms", alarms},
      {"offloaded_calls", offloaded_calls},
      {"coordinated_threads", coordinated_threads},
      {"blocking_sessions", blocking_sessions},
      {"awaited_sessions", awaited_sessions},
      {"featured_sessions", featured_sessions},
  };
  const auto found = all.find(name);
  return found == all.end() ? scenario() : found->second;
}

}  // namespace stepwell::test
