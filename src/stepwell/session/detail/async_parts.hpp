// SPDX-License-Identifier: Apache-2.0
//
// Small parts of an awaited session: how it is cancelled, how it takes turns, and where pieces of its work are done.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/hook/detail/session_control.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace stepwell::detail {
namespace asio = boost::asio;

/// How a cancelled operation ends.
[[noreturn]] inline void throw_aborted() { throw boost::system::system_error(asio::error::operation_aborted, "stepwell"); }

/// Whether the one who awaits has asked for less. Looked at where nothing is done yet, and nowhere else.
inline asio::awaitable<void> throw_if_cancelled() {
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) { throw_aborted(); }
}

/// How many steps run in one go, so that whoever shares the event loop gets his turn about every 100 us: the clock is read
/// once a turn, not once a step.
class turns {
public:
  /// Whether the turn is over; if not, one step of it is taken.
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

/// A recovery that is begun and not done.
struct pending_recovery {
  std::int64_t reached;                                  // by the session that failed
  std::optional<clock::time_point> when = std::nullopt;  // it is left, and to be made anew then
};

/// Ends waiting for others. A class with a constructor: g++ 12 destroys a lambda that is made inside an awaited expression
/// twice.
class interrupts {
public:
  explicit interrupts(std::shared_ptr<session_signals> signals) noexcept : signals_(std::move(signals)) {}
  void operator()() const { signals_->interrupt(); }

private:
  std::shared_ptr<session_signals> signals_;
};

/// Where a piece of work is done.
enum class workshop {
  here,     ///< On the executor of the one who awaits.
  helpers,  ///< What touches disks, or waits for them.
  apart,    ///< What may wait for another session.
  compute,  ///< Steps.
};

/// Whether a cancellation gets through to what is awaited.
enum class hearing { nothing, cancellation };

/// The user's own coroutine, as a thread of execution of its own, so that it finds the cancellation state of any such.
inline asio::awaitable<void> on_its_own(asio::awaitable<void> theirs) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await std::move(theirs);
}

}  // namespace stepwell::detail
