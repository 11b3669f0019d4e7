// SPDX-License-Identifier: Apache-2.0
//
// What an awaited session keeps between two awaited calls, and how it gets a piece of its work done on another thread.
// `use_awaitable` is what all `async_...()` functions below are made of.
#pragma once

#include "stepwell/coro/async_sleep.hpp"
#include "stepwell/coro/bell.hpp"
#include "stepwell/coro/errand.hpp"
#include "stepwell/coro/helper_threads.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/session_core.hpp"
#include "stepwell/session/source_lease.hpp"
#include "stepwell/session/step_driver.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

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
  std::int64_t      steps_ = 1;
  std::int64_t      left_ = 0;
  clock::time_point begun_{};
};

/// A lease on a source, from the first step with it on.
class lease_holder_base {
public:
  virtual ~lease_holder_base() = default;
  virtual void release() noexcept = 0;
};
template<class Async, class Source>
class lease_holder;

/// One address for each type.
template<class Source>
inline constexpr char kind_of_source{};

/// A recovery that is begun and not done.
struct pending_recovery {
  std::int64_t                     reached;  // by the session that failed
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
  helpers,  ///< What touches disks, or waits for them.
  apart,    ///< What may wait for another session.
  compute,  ///< Steps.
};

/// @threads The session's, but for what `elsewhere` runs.
template<class Core>
class async_core : public std::enable_shared_from_this<async_core<Core>> {
public:
  using core_type = Core;

  template<class... Args>
  explicit async_core(async_options how, Args&&... args)
      : how_(std::move(how)), core_(std::in_place, std::forward<Args>(args)...) {}
  async_core(const async_core&) = delete;
  async_core& operator=(const async_core&) = delete;

  /// @pre Not abandoned.
  [[nodiscard]] Core&                core() noexcept { return *core_; }
  [[nodiscard]] const Core&          core() const noexcept { return *core_; }
  [[nodiscard]] const async_options& how() const noexcept { return how_; }
  [[nodiscard]] bool                 is_abandoned() const noexcept { return !core_; }

  /// Who holds this is the one operation under way. @errors `failed_precondition_error` for a second one.
  class operation {
  public:
    explicit operation(async_core& self) : self_(self) {
      if (self.is_busy_) { throw failed_precondition_error("another operation of this session has not ended; await one at a time"); }
      if (self.is_abandoned()) { throw_aborted(); }
      self.is_busy_ = true;
      self.is_quick_ = false;
    }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    ~operation() {
      self_.is_busy_ = false;
      self_.is_quick_ = self_.is_started && !self_.due && !self_.is_abandoned() && !self_.how_.has_compute();
    }

  private:
    async_core& self_;
  };
  /// Whether a step may be taken without further ado; if so, it is one of this turn.
  [[nodiscard]] bool may_step_at_once() {
    return is_quick_ && !turns_.is_over() && !core_->should_stop() && !core_->recovery_due();
  }
  /// @errors `failed_precondition_error` before the start.
  void refuse_unless_started() const {
    if (!is_started) { throw failed_precondition_error("the session is not started; await async_start() first"); }
  }

  /// Calls `function` in `where` and goes on when it has returned; what it throws is thrown. A cancellation is not heard,
  /// but may end the waiting for others inside. If the frame is destroyed meanwhile, it waits for `function`.
  template<class Function>
  asio::awaitable<void> elsewhere(workshop where, Function& function) {
    const auto errand = coro::make_errand(function);
    const under_way now(*this, errand);
    hand_over(where, errand);
    const interrupts on_cancel(core_->control().signals());
    co_await errand->done().async_wait_on(asio::use_awaitable, on_cancel);
    refuse_if_abandoned();
    errand->rethrow();
  }

  /// Waits for `when`, or a stop. @cancel Nothing but the waiting is lost.
  asio::awaitable<void> back_off(clock::time_point when) {
    const coro::bell         woken;
    const rung_at_end        now(*this, woken);
    const std::stop_callback on_stop(core_->control().signals()->stop_token(), [woken] { woken.ring(); });
    co_await coro::async_sleep_until(core_->control().time(), when, woken);
    refuse_if_abandoned();
  }

  /// Lets others have a turn, if this one's is over; then true.
  [[nodiscard]] bool is_turn_over() noexcept { return turns_.is_over(); }
  asio::awaitable<void> take_turn() {
    co_await asio::post(asio::use_awaitable);
    refuse_if_abandoned();
    turns_.begin(core_->control().time()->now());
  }

  /// Creates once; false if it failed in a way that may pass. @cancel Waiting for others is given up.
  asio::awaitable<bool> create() {
    auto& signals = *core_->control().signals();
    signals.clear_interruption();
    bool is_made = false;
    bool is_given_up = false;
    auto make = [&] { is_made = core_->create(); };
    try {
      co_await elsewhere(how_.creation_waits().value_or(false) ? workshop::apart : workshop::helpers, make);
    } catch (const cancelled_error&) {
      if (!signals.interrupted()) { throw; }
      is_given_up = true;
    }
    if (is_given_up) { throw_aborted(); }
    co_return is_made;
  }

  /// Recovers as `stepwell::recover` does; where a loop stands then. One that was cancelled goes on here.
  asio::awaitable<loop_place> recover() {
    if (!due) { due.emplace(pending_recovery{core_->step_reached()}); }
    for (;;) {
      if (!due->when) { co_await leave(); }
      co_await throw_if_cancelled();
      co_await back_off(*due->when);
      const bool is_made = co_await create();
      due->when.reset();
      if (is_made) { break; }
    }
    const auto reached = due->reached;
    due.reset();
    co_return place_after_recovery(*core_, reached);
  }

  /// The holder for a source that is given call by call; found by its address.
  template<class Source>
  lease_holder<async_core, Source>& holder_of(Source& source) {
    for (const auto& given : given_sources_) {
      if (given.address == &source && given.kind == &kind_of_source<Source>) [[likely]] {
        return static_cast<lease_holder<async_core, Source>&>(*given.holder);
      }
    }
    auto  made = std::make_unique<lease_holder<async_core, Source>>(*this, source);
    auto& holder = *made;
    given_sources_.push_back({&source, &kind_of_source<Source>, std::move(made)});
    return holder;
  }
  template<class Source>
  void release(const Source& source) noexcept {
    std::erase_if(given_sources_, [&](const given_source& given) {
      return given.address == &source && given.kind == &kind_of_source<std::remove_const_t<Source>>;
    });
  }
  void add(lease_holder_base* holder) { leases_.push_back(holder); }
  void remove(lease_holder_base* holder) noexcept { std::erase(leases_, holder); }
  void release_leases() noexcept {
    for (auto* holder : leases_) { holder->release(); }
  }

  /// Whoever waits goes on with `operation_aborted`; the session is gone. Waits for the piece that is running elsewhere.
  void abandon() noexcept {
    if (is_abandoned()) { return; }
    is_quick_ = false;
    core_->control().signals()->interrupt();
    if (running_) { running_->settle(); }
    if (bell_ != nullptr) { bell_->ring(); }
    core_->positions().leave_sources();  // they may be gone: nothing says that a source outlives the session
    release_leases();
    core_->let_go();
    core_.reset();
  }

  bool                            has_begun = false;   // its hooks
  bool                            is_started = false;
  bool                            is_spoilt = false;   // starting failed
  std::optional<pending_recovery> due;
  loop_place                      place;
  no_data                         nothing_given;

private:
  struct given_source {
    const void*                        address;
    const char*                        kind;
    std::unique_ptr<lease_holder_base> holder;
  };

  /// While an errand is under way: abandoning waits for it, and so does the frame's end.
  class under_way {
  public:
    under_way(async_core& self, std::shared_ptr<coro::errand> errand) noexcept : self_(self), errand_(std::move(errand)) {
      self_.running_ = errand_;
    }
    under_way(const under_way&) = delete;
    under_way& operator=(const under_way&) = delete;
    ~under_way() {
      self_.running_ = nullptr;
      if (!errand_->has_run() && !self_.is_abandoned()) { self_.core_->control().signals()->interrupt(); }
      errand_->settle();
    }

  private:
    async_core&                   self_;
    std::shared_ptr<coro::errand> errand_;
  };
  class rung_at_end {
  public:
    rung_at_end(async_core& self, const coro::bell& bell) noexcept : self_(self) { self_.bell_ = &bell; }
    rung_at_end(const rung_at_end&) = delete;
    rung_at_end& operator=(const rung_at_end&) = delete;
    ~rung_at_end() { self_.bell_ = nullptr; }

  private:
    async_core& self_;
  };

  void hand_over(workshop where, const std::shared_ptr<coro::errand>& errand) {
    switch (where) {
      case workshop::helpers: return coro::helper_threads::shared().post([errand] { errand->run(); });
      case workshop::apart: return coro::helper_threads::shared().post_apart([errand] { errand->run(); });
      case workshop::compute: asio::post(how_.compute(), coro::errand_ticket(errand));
    }
  }
  void refuse_if_abandoned() const {
    if (is_abandoned()) { throw_aborted(); }
  }
  asio::awaitable<void> leave() {
    clock::time_point when;
    auto              plan = [&] { when = core_->plan_recovery(); };
    try {
      co_await elsewhere(workshop::helpers, plan);
    } catch (...) {
      due.reset();  // there is no further try
      throw;
    }
    due->when = when;
  }

  async_options                   how_;
  bool                            is_busy_ = false;
  bool                            is_quick_ = false;
  turns                           turns_;
  std::optional<Core>             core_;  // nothing once abandoned
  std::vector<lease_holder_base*> leases_;
  std::shared_ptr<coro::errand>   running_;
  const coro::bell*               bell_ = nullptr;
  std::vector<given_source>       given_sources_;  // destroyed first: they are in leases_
};

/// @lifetime `self` and `source` must outlive it.
template<class Async, class Source>
class lease_holder final : public lease_holder_base {
public:
  lease_holder(Async& self, Source& source) : self_(self), source_(source) { self_.add(this); }
  lease_holder(const lease_holder&) = delete;
  lease_holder& operator=(const lease_holder&) = delete;
  ~lease_holder() override { self_.remove(this); }

  [[nodiscard]] Source* source() const noexcept { return &source_; }
  [[nodiscard]] bool    is_held() const noexcept { return lease_.has_value(); }
  [[nodiscard]] auto&   lease() noexcept { return *lease_; }

  /// Before the first step, and after the end. @errors Those of `source_lease`.
  void take() {
    auto& core = self_.core();
    if (lease_) { return; }
    guarded(core, step_stage::source, [&] { lease_.emplace(core.positions(), source_, core.raw().global_step()); });
    core.note_end_of_source(false);
  }
  void release() noexcept override { lease_.reset(); }

private:
  Async&                              self_;
  Source&                             source_;
  std::optional<source_lease<Source>> lease_;
};

}  // namespace stepwell::detail
