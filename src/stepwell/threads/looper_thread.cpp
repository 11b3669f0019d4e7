// SPDX-License-Identifier: Apache-2.0
#include "stepwell/threads/looper_thread.hpp"

#include "stepwell/base/error.hpp"

#include <utility>

namespace stepwell {
namespace {

/// Checks the token before the coordinator: for a straggler the coordinator may already be in use again or destroyed.
void run(coordinator& threads, const std::optional<clock::duration>& interval, const std::function<void()>& run_loop,
         const std::stop_token& stop) {
  if (!interval) {
    while (!stop.stop_requested()) { run_loop(); }
    return;
  }
  auto next = threads.time()->now();
  while (!stop.stop_requested() && !threads.wait_for_stop(next)) {
    next += *interval;
    run_loop();
  }
}

coordinated_thread make(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop,
                        looper_options options) {
  if (!run_loop) { throw invalid_argument_error("looper_thread: the function is empty; give it a function"); }
  if (interval && *interval < clock::duration::zero()) {
    throw invalid_argument_error("looper_thread: the interval is negative; leave it out to call the function without pauses");
  }
  auto name = options.name;
  return threads.make_thread(
      std::move(name), [&threads, interval, run_loop = std::move(run_loop), options = std::move(options)](const std::stop_token& stop) {
        if (options.start_loop) { options.start_loop(); }
        run(threads, interval, run_loop, stop);
        if (options.stop_loop) { options.stop_loop(); }
      });
}

}  // namespace

looper_thread::looper_thread(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop,
                             looper_options options)
    : thread_(make(threads, interval, std::move(run_loop), std::move(options))) {}

looper_thread looper_thread::loop(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop,
                                  looper_options options) {
  looper_thread looper(threads, interval, std::move(run_loop), std::move(options));
  looper.start();
  return looper;
}

}  // namespace stepwell
