// SPDX-License-Identifier: Apache-2.0
//
// Small parts of an asynchronous session: cancellation, time slices, and the execution places of its work.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/hook/detail/deferred_requests.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell::detail {
namespace asio = boost::asio;

/// Throws the error of a cancelled operation.
[[noreturn]] inline void throw_aborted() { throw boost::system::system_error(asio::error::operation_aborted, "stepwell"); }

/// Returns true if `failure` is the error of a cancelled operation.
inline bool is_aborted(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) { return error.code() == asio::error::operation_aborted; } catch (...) {
    return false;
  }
}

/// Throws `operation_aborted` if cancellation was requested.
inline asio::awaitable<void> throw_if_cancelled() {
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) { throw_aborted(); }
}

/// A number of steps that run without a yield, chosen so that other work on the event loop can run about every 100 us. The clock is read
/// once for each slice.
class time_slice {
public:
  /// Returns true if the slice is used up; else consumes one step of it.
  [[nodiscard]] bool is_over() noexcept { return --left_ < 0; }
  void begin(clock::time_point now) noexcept {
    using namespace std::chrono_literals;
    const auto took = std::max<clock::duration>(now - begun_, 1ns);
    const auto fits = steps_ * std::chrono::duration_cast<std::chrono::nanoseconds>(100us).count() /
                      std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
    steps_ = std::clamp<std::int64_t>(fits, 1, std::min<std::int64_t>(2 * steps_, 1024));
    left_ = steps_;
    begun_ = now;
  }

private:
  std::int64_t steps_ = 1;
  std::int64_t left_ = 0;
  clock::time_point begun_{};
};

/// A function object that interrupts waits for other sessions. It is a class with a constructor because g++ 12 destroys a lambda that is
/// created inside an awaited expression twice.
class interrupts {
public:
  explicit interrupts(std::shared_ptr<session_signals> signals) noexcept : signals_(std::move(signals)) {}
  void operator()() const { signals_->interrupt(); }

private:
  std::shared_ptr<session_signals> signals_;
};

/// The place where a piece of work runs.
enum class execution_place {
  here,        ///< On the executor of the caller.
  pool,        ///< On a shared thread: work that may wait for a disk.
  own_thread,  ///< On a thread of its own: work that may wait for another session.
  compute,     ///< On the executor for steps.
};

/// Declares whether a cancellation is forwarded to the awaited coroutine of a user.
enum class cancellation_mode { deferred, forwarded };

/// Awaits a user's coroutine as a separate Asio thread of execution, with all kinds of cancellation enabled.
inline asio::awaitable<void> on_its_own(asio::awaitable<void> theirs) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await std::move(theirs);
}

/// The value of an operation without a result.
struct nothing {};

/// Awaits `make()`. Asio's own check for cancellation before each `co_await` is switched off meanwhile, because it would discard completed
/// work.
/// `T` is the result of `make()`, or void.
template<class T, class Make>
asio::awaitable<T> defer_cancellation(Make make) {
  using value_type = std::conditional_t<std::is_void_v<T>, nothing, T>;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr failure;
  std::optional<value_type> value;
  try {
    value_type got = co_await make();
    value.emplace(std::move(got));
  } catch (...) { failure = std::current_exception(); }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) { std::rethrow_exception(failure); }
  if constexpr (!std::is_void_v<T>) { co_return std::move(*value); }
}

}  // namespace stepwell::detail
