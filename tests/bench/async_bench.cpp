// SPDX-License-Identifier: Apache-2.0
//
// The cost of the asynchronous interface: `co_await async_next()` compared with `run()`, in pairs, with allocations.
// Also the delay of a 1 ms timer in the event loop of a session that trains and saves 64 MiB or 1 GiB to a slow file,
// paired with the same timer alone.
#include "bench/paired.hpp"
#include "support/fault_file_system.hpp"
#include "support/idle_hooks.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/async.hpp>

#include <benchmark/benchmark.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace {
std::atomic<std::int64_t> allocations = 0;
}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // the operators of this program always use malloc and free
#endif
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const got = std::malloc(size)) { return got; }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

namespace sw = stepwell;
namespace asio = boost::asio;
using namespace std::chrono_literals;

template<class Awaited>
void await(asio::io_context& loop, Awaited work) {
  auto done = asio::co_spawn(loop, std::move(work), asio::use_future);
  loop.restart();
  loop.run();
  done.get();
}

asio::awaitable<void> many_steps(auto& session, auto& source, int count) {
  for (int i = 0; i < count; ++i) {
    auto step = co_await session.async_next(source);
    benchmark::DoNotOptimize(step);
  }
}

template<class Model>
auto awaited_session(Model& model) {
  using raw = sw::model_session<Model>;
  return sw::async_monitored_session<raw, sw::stop_at_step_hook>(sw::training_options{}, model,
                                                                 sw::stop_at_step_hook{{.last_step = sw::test::far_away}});
}

/// Measures a million asynchronous steps and a million runs, alternating.
void awaited_against_run(benchmark::State& state) {
  constexpr int steps = 1'000'000;
  asio::io_context loop;
  sw::test::tiny_model awaited_model;
  sw::test::tiny_model model;
  sw::test::repeating_source source;
  auto awaited = awaited_session(awaited_model);
  sw::monitored_session session(model, sw::stop_at_step_hook{{.last_step = sw::test::far_away}});
  await(loop, awaited.async_start());
  await(loop, many_steps(awaited, source, 1000));
  std::int64_t allocated = 0;
  const auto times = sw::bench::run_pairs(
      state, "run",
      [&] {
        const auto before = allocations.load();
        const auto took = sw::bench::seconds_of([&] { await(loop, many_steps(awaited, source, steps)); });
        allocated = allocations.load() - before;
        return took;
      },
      [&] {
        return sw::bench::seconds_of([&] {
          for (int i = 0; i < steps; ++i) { benchmark::DoNotOptimize(session.run(0.5f)); }
        });
      });
  state.counters["over_ns"] = (times.ours - times.theirs) * 1e9 / steps;
  state.counters["allocations_a_step"] = static_cast<double>(allocated) / steps;
}
BENCHMARK(awaited_against_run)->Iterations(15)->UseManualTime()->Unit(benchmark::kMillisecond);

/// A model of the given size in MiB whose step takes about one millisecond.
struct big_model {
  explicit big_model(std::int64_t mebibytes) : weights(static_cast<std::size_t>(mebibytes) << 18, 1.0F) {}

  std::vector<float> weights;

  float step() {
    const auto until = std::chrono::steady_clock::now() + 1ms;
    while (std::chrono::steady_clock::now() < until) { weights[0] += 1; }
    return weights[0];
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}}); }
};

/// Returns the largest delay of `count` ticks of 1 ms, in seconds.
asio::awaitable<double> worst_lateness(int count) {
  double worst = 0;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int i = 0; i < count; ++i) {
    timer.expires_after(1ms);
    const auto due = timer.expiry();
    co_await timer.async_wait(asio::use_awaitable);
    worst = std::max(worst, std::chrono::duration<double>(std::chrono::steady_clock::now() - due).count());
  }
  co_return worst;
}
asio::awaitable<void> train_until(auto& session, const bool& is_over) {
  co_await session.async_start();
  while (!is_over) { static_cast<void>(co_await session.async_next()); }
  co_await session.async_close();
}

struct lateness {
  double worst;
  std::int64_t saves;
};
lateness worst_beside_training(asio::io_context& loop, std::int64_t mebibytes, int ticks) {
  sw::test::temporary_directory directory;
  asio::thread_pool pool(1);
  big_model model(mebibytes);
  const auto files = std::make_shared<sw::test::fault_file_system>();
  files->before_each([](const sw::test::event& what) {
    if (what.kind == sw::test::operation::write) { std::this_thread::sleep_for(2ms); }
  });
  sw::training_options options{.checkpoint_dir = directory.path(), .saves = {.save_steps = 20, .saver = {.file_system = files}}};
  auto session = sw::monitored_training_session(sw::defer_start(sw::async_options().steps_on(pool.get_executor())), model, options);
  bool is_over = false;
  auto trained = asio::co_spawn(loop, train_until(session, is_over), asio::use_future);
  double worst = 0;
  asio::co_spawn(loop, worst_lateness(ticks), [&](const std::exception_ptr&, double found) { worst = found, is_over = true; });
  loop.restart();
  loop.run();
  trained.get();
  return {worst, session.metrics().saves};
}

/// Measures the delay of a timer. `state.range(0)`: MiB of the model; `state.range(1)`: ticks of the timer.
void worst_lateness_of_a_timer(benchmark::State& state) {
  const auto ticks = static_cast<int>(state.range(1));
  asio::io_context loop;
  std::int64_t saves = 0;
  const auto alone = [&] {
    auto worst = asio::co_spawn(loop, worst_lateness(ticks), asio::use_future);
    loop.restart();
    loop.run();
    return worst.get();
  };
  const auto beside_training = [&] {
    const auto found = worst_beside_training(loop, state.range(0), ticks);
    saves = found.saves;
    return found.worst;
  };
  const auto times = sw::bench::run_pairs(state, "alone", beside_training, alone);
  state.counters["over_ms"] = (times.ours - times.theirs) * 1e3;
  state.counters["saves"] = static_cast<double>(saves);
}
BENCHMARK(worst_lateness_of_a_timer)->Args({64, 500})->Iterations(9)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(worst_lateness_of_a_timer)->Args({1024, 4000})->Iterations(9)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
