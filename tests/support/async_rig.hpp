// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous sessions of one type, so that each test file instantiates the session once, and an event loop that runs
// them.
#pragma once

#include "support/recovery_rig.hpp"

#include <stepwell/session/async_session.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::test {
namespace asio = boost::asio;

/// A hook that records every call with its step, then calls `act` (and `after` in `after_run`).
template<class Model>
struct scripted_hook_for {
  using context_type = run_context<model_session<Model>>;

  std::vector<std::string>* story = nullptr;
  std::function<void(const std::string& point)> act = nullptr;
  std::function<void(context_type&)> after = nullptr;

  void begin() { tell("begin", -1); }
  void after_create_session(auto& session, auto&) { tell("create", session.global_step()); }
  void before_run(auto& context) { tell("before", context.global_step()); }
  void after_run(context_type& context, const auto&) {
    tell("after", context.global_step());
    if (after) { after(context); }
  }
  void on_error(auto&, const std::exception_ptr&) { tell("error", -1); }
  void end(auto& session) { tell("end", session.global_step()); }

private:
  void tell(const std::string& point, std::int64_t step) const {
    if (story != nullptr) { story->push_back(step < 0 ? point : point + " " + std::to_string(step)); }
    if (act) { act(point); }
  }
};

using scripted_hook = scripted_hook_for<adding_model>;
using async_test_session = async_monitored_session<model_session<adding_model>, checkpoint_saver_hook, scripted_hook>;
using blocking_test_session = monitored_session<model_session<adding_model>, checkpoint_saver_hook, scripted_hook>;
using test_step = async_test_session::step_type;

/// A seekable source that ends.
struct ending_source {
  std::int64_t last = 5;
  std::int64_t next = 1;

  const std::int64_t* peek() const { return next <= last ? &next : nullptr; }
  void advance() { ++next; }
  std::uint64_t position() const { return static_cast<std::uint64_t>(next - 1); }
  void seek(std::uint64_t position) { next = static_cast<std::int64_t>(position) + 1; }
};

struct async_rig : recovery_rig {
  asio::io_context io;

  /// Returns a session. It saves nothing if `every_steps` is 0.
  template<class Session>
  [[nodiscard]] Session make(std::int64_t every_steps, scripted_hook hook = {}, auto... how) {
    auto saver = every_steps > 0 ? saver_hook(every_steps) : checkpoint_saver_hook::off();
    auto with = setup;
    if (saver.is_on()) { with.find_checkpoint = saver.checkpoint_finder(); }
    return Session(std::move(how)..., std::move(with), model, std::move(saver), std::move(hook));
  }
  [[nodiscard]] auto async(std::int64_t every_steps, scripted_hook hook = {}, auto... how) {
    return make<async_test_session>(every_steps, std::move(hook), std::move(how)...);
  }

  /// Returns the result of `make`, which is retried (at most 100 times) until the checkpoint directory is unlocked. A
  /// session that was destroyed without close holds the directory until its background writes have finished.
  template<class Make>
  auto when_free(Make make) const {
    for (int tries = 0;; ++tries) {
      try {
        return make();
      } catch (const failed_precondition_error&) {
        if (tries == 100) { throw; }
      }
      settle();
    }
  }

  /// Runs `work` in the event loop until the loop has no more work, and returns the result of `work`.
  template<class T>
  T await(asio::awaitable<T> work) {
    auto done = asio::co_spawn(io, std::move(work), asio::use_future);
    io.restart();
    io.run();
    return done.get();
  }
};

/// Runs steps until the data ends or the session stops. Returns the global steps.
inline asio::awaitable<std::vector<std::int64_t>> all_steps(auto& session, auto& source) {
  std::vector<std::int64_t> seen;
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
    seen.push_back(step->global_step);
  }
  co_return seen;
}
/// Starts the session, runs all steps and closes it.
inline asio::awaitable<std::vector<std::int64_t>> whole_life(auto& session, auto& source) {
  co_await session.async_start();
  auto seen = co_await all_steps(session, source);
  co_await session.async_close();
  co_return seen;
}

/// Runs at most `count` handlers; stops early if `has_ended` becomes true.
inline void run_handlers(asio::io_context& loop, int count, const bool& has_ended) {
  for (int i = 0; i < count && !has_ended; ++i) { loop.run_one(); }
}

/// Runs the loop after a cancellation, and returns false. Boost 1.83 throws out of run() if a coroutine is cancelled before it has begun, after
/// no handler; then returns true, and no completion handler is called.
inline bool run_cancelled(asio::io_context& loop, int handlers) {
  try {
    loop.run();
    return false;
  } catch (const boost::system::system_error&) {
    if (handlers != 0) { throw; }
  }
  loop.run();
  return true;
}

/// The end of cancelled work. `had_ended` is true if the work ended before the cancellation.
struct cancelled_work {
  bool had_ended = false;
  bool is_done = false;
  std::exception_ptr failure;
};
/// Runs `work` for `handlers` handlers, cancels it, and runs the loop until it has no more work.
inline cancelled_work cancel_after(asio::io_context& loop, int handlers, asio::awaitable<void> work,
                                   asio::cancellation_type kind = asio::cancellation_type::total) {
  asio::cancellation_signal cancel;
  cancelled_work end;
  asio::co_spawn(loop, std::move(work), asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr& failure) {
                   end.failure = failure;
                   end.is_done = true;
                 }));
  run_handlers(loop, handlers, end.is_done);
  end.had_ended = end.is_done;
  if (!end.is_done) { cancel.emit(kind); }
  if (run_cancelled(loop, handlers)) {
    end.failure = std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted));
    end.is_done = true;
  }
  return end;
}

/// Returns true if `action` throws `operation_aborted`, as cancelled work does.
template<class Action>
bool is_aborted(Action&& action) {
  try {
    action();
  } catch (const boost::system::system_error& failure) { return failure.code() == asio::error::operation_aborted; }
  return false;
}
inline bool was_aborted(const std::exception_ptr& failure) {
  return failure && is_aborted([&] { std::rethrow_exception(failure); });
}

}  // namespace stepwell::test
