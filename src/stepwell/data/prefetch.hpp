// SPDX-License-Identifier: Apache-2.0
//
// Sources that make their batches in advance, on threads of their own. `prefetch` returns the batches of an underlying source.
// `parallel_map` also applies a function to the batches of an underlying source.
#pragma once

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/data/detail/read_ahead.hpp"
#include "stepwell/data/source.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::data {
namespace detail {

/// The position and the epoch of the current batch of a source, stored so that they can be returned after the source has advanced.
struct source_place {
  std::uint64_t position = 0;
  epoch_position epoch = {};
  bool is_epoch_start = false;
};

template<class Source>
concept knows_epoch_start = requires(const Source& source) {
  { source.is_at_epoch_start() } -> std::same_as<bool>;
};

template<class Source>
[[nodiscard]] source_place place_of(const Source& source) {
  source_place place;
  if constexpr (seekable_source<Source>) { place.position = source.position(); }
  if constexpr (epoch_source<Source>) { place.epoch = {source.epoch(), source.is_last_of_epoch(), epochs_of(source)}; }
  if constexpr (knows_epoch_start<Source>) { place.is_epoch_start = source.is_at_epoch_start(); }
  return place;
}

template<class Value>
void store(std::optional<Value>& to, const Value& value) {
  stepwell::detail::with_memory("could not copy a batch", {}, [&] {
    if constexpr (std::is_copy_assignable_v<Value>) {
      if (to) {
        *to = value;  // uses the memory of the previous batch
        return;
      }
    }
    to.emplace(value);
  });
}

/// The consumer's side of a source whose batches are made by threads. A derived class `Work` implements `read_ahead_work`. The threads run
/// from the first `peek` until a seek or a failure. The next `peek` starts them again. But after a failure of `parallel_map` over a source
/// that is not seekable, they are not started again, and each further `peek` throws this failure.
/// @pre `Work` calls `halt` in its destructor.
template<class Source, class Value>
class read_ahead : public read_ahead_work {
protected:
  using under = std::remove_reference_t<Source>;
  static constexpr bool can_seek = seekable_source<Source>;

  struct slot_type {
    std::optional<Value> value;
    std::exception_ptr failure;
    epoch_position epoch;
    source_place after;  // the place of the source after this batch was consumed
    bool is_end = false;
  };

public:
  read_ahead(Source&& source, const prefetch_options& options)
      : source_(std::forward<Source>(source)), options_(options), slots_(options.depth + 1) {}

  [[nodiscard]] const Value* peek() {
    if (current_ != nullptr) { return &*current_->value; }
    if (!threads_.is_running()) { start(); }
    auto& slot = slots_[threads_.wait_front()];
    if (slot.failure) [[unlikely]] { fail(slot.failure); }
    if (slot.is_end) { return nullptr; }
    current_ = &slot;
    place_.epoch = slot.epoch;  // `place_` is older than the batch: the source may not have known yet that an epoch ends with it
    return &*slot.value;
  }
  void advance() {
    if (!threads_.is_running()) { return source_.advance(); }
    if (peek() == nullptr) { return; }
    place_ = std::exchange(current_, nullptr)->after;
    threads_.pop();
  }
  [[nodiscard]] source_place place() const { return threads_.is_running() ? place_ : detail::place_of(source_); }
  void seek(std::uint64_t position) {
    halt();
    source_.seek(position);
  }
  [[nodiscard]] const under& source() const noexcept { return source_; }

protected:
  /// Called before the threads start. Prepares the members of `Work` for item number 0, which is the current batch of the source.
  virtual void prepare() = 0;
  /// Returns true if the batch that failed is still the current batch of the source, so that no seek is needed to retry it.
  [[nodiscard]] virtual bool stands_at_failure() const noexcept = 0;

  /// Stops the threads and drops all batches.
  void halt() noexcept {
    threads_.stop();
    current_ = nullptr;
  }
  /// Like `halt`. If the caller owns the source and the source is seekable, also moves the source back to the first batch that was not
  /// consumed.
  void leave() noexcept {
    const bool was_running = threads_.is_running();
    halt();
    if constexpr (can_seek && std::is_lvalue_reference_v<Source>) {
      try {
        if (was_running) { source_.seek(place_.position); }
      } catch (...) {}  // NOLINT(bugprone-empty-catch): the caller's next seek or peek of the source reports the failure
    }
  }

  /// Calls `make`, and returns its result: false if there is no further batch. If `make` throws, stores the exception as the failure of
  /// `slot`, and returns false.
  template<class Make>
  static bool fill(slot_type& slot, Make&& make) noexcept {
    slot.failure = nullptr;
    slot.is_end = false;
    try {
      return make();
    } catch (...) { slot.failure = std::current_exception(); }
    return false;
  }

  Source source_;
  prefetch_options options_;
  std::vector<slot_type> slots_;

private:
  void start() {
    place_ = detail::place_of(source_);
    prepare();
    threads_.start(*this, options_);
  }
  [[noreturn, gnu::cold]] void fail(std::exception_ptr failure) {
    if constexpr (can_seek) {
      halt();
      source_.seek(place_.position);
    } else if (stands_at_failure()) {
      halt();
    }
    std::rethrow_exception(failure);
  }

  source_place place_;            // the place of the current batch; valid while the threads run
  slot_type* current_ = nullptr;  // the slot of the current batch; null until `peek` has waited for the batch
  read_ahead_threads threads_;
};

/// Makes the batches of a source. The first thread reads the source itself. Each further thread reads a copy of the source. Each thread
/// advances over the batches that the other threads make.
template<class Source>
class prefetch_work final : public read_ahead<Source, batch_of<Source>> {
  using base = read_ahead<Source, batch_of<Source>>;
  using under = typename base::under;
  static constexpr bool can_copy = base::can_seek && std::copy_constructible<under>;
  static_assert(std::copy_constructible<batch_of<Source>>, "stepwell: data::prefetch needs batches that can be copied");

public:
  prefetch_work(Source&& source, const prefetch_options& options) : base(std::forward<Source>(source), options) {
    if (!can_copy && options.threads > 1) { throw_not_copyable(options.threads); }
  }
  ~prefetch_work() override { this->leave(); }

  bool begin(std::size_t /*worker*/, std::uint64_t /*number*/, std::size_t /*slot*/) noexcept override { return true; }
  bool complete(std::size_t worker, std::uint64_t number, std::size_t slot_number) noexcept override {
    auto& slot = this->slots_[slot_number];
    return base::fill(slot, [&] {
      auto& from = reader(worker);
      auto& at = numbers_[worker];
      for (; at < number; ++at) { from.advance(); }
      const auto* const batch = from.peek();
      slot.is_end = batch == nullptr;
      if (slot.is_end) { return false; }
      slot.epoch = detail::place_of(from).epoch;
      detail::store(slot.value, *batch);
      from.advance();
      ++at;
      slot.after = detail::place_of(from);
      return true;
    });
  }

private:
  void prepare() override {
    numbers_.assign(this->options_.threads, 0);
    if constexpr (can_copy) {
      copies_.clear();
      copies_.reserve(this->options_.threads - 1);
      while (copies_.size() + 1 < this->options_.threads) { copies_.emplace_back(std::as_const(this->source_)); }
    }
  }
  [[nodiscard]] bool stands_at_failure() const noexcept override { return true; }
  [[nodiscard]] under& reader(std::size_t worker) noexcept {
    if constexpr (can_copy) {
      if (worker > 0) { return copies_[worker - 1]; }
    }
    return this->source_;
  }

  std::vector<std::uint64_t> numbers_;  // for each thread: number of the current batch of its source
  std::vector<std::conditional_t<can_copy, under, char>> copies_;
};

template<class Function, class Batch>
struct map_result : std::invoke_result<Function&, const Batch&> {};
template<class Function, class Batch>
  requires std::invocable<Function&, const Batch&, std::uint64_t>
struct map_result<Function, Batch> : std::invoke_result<Function&, const Batch&, std::uint64_t> {};
template<class Function, class Batch>
using mapped = std::remove_cvref_t<typename map_result<Function, Batch>::type>;

/// Reads a source in order, one thread at a time. Applies a function to copies of the batches, on several threads at once.
template<class Source, class Function>
class parallel_map_work final : public read_ahead<Source, mapped<Function, batch_of<Source>>> {
  using base = read_ahead<Source, mapped<Function, batch_of<Source>>>;
  static_assert(std::copy_constructible<batch_of<Source>>, "stepwell: data::parallel_map needs a source whose batches can be copied");

public:
  parallel_map_work(Source&& source, Function function, const prefetch_options& options)
      : base(std::forward<Source>(source), options), function_(std::move(function)), originals_(options.depth + 1) {}
  ~parallel_map_work() override { this->leave(); }

  bool begin(std::size_t /*worker*/, std::uint64_t /*number*/, std::size_t slot_number) noexcept override {
    auto& slot = this->slots_[slot_number];
    return base::fill(slot, [&] {
      auto& original = originals_[slot_number];
      original.position = detail::place_of(this->source_).position;
      const auto* const batch = this->source_.peek();
      slot.is_end = batch == nullptr;
      if (slot.is_end) { return false; }
      slot.epoch = detail::place_of(this->source_).epoch;
      detail::store(original.batch, *batch);
      this->source_.advance();
      slot.after = detail::place_of(this->source_);
      return true;
    });
  }
  bool complete(std::size_t /*worker*/, std::uint64_t /*number*/, std::size_t slot_number) noexcept override {
    auto& slot = this->slots_[slot_number];
    const auto& original = originals_[slot_number];
    return base::fill(slot, [&] {
      slot.value.emplace(apply(*original.batch, original.position));
      return true;
    });
  }

private:
  struct original_type {
    std::optional<batch_of<Source>> batch;
    std::uint64_t position = 0;
  };

  void prepare() override {}
  [[nodiscard]] bool stands_at_failure() const noexcept override { return false; }
  decltype(auto) apply(const batch_of<Source>& batch, [[maybe_unused]] std::uint64_t position) {
    if constexpr (std::invocable<Function&, const batch_of<Source>&, std::uint64_t>) {
      return std::invoke(function_, batch, position);
    } else {
      return std::invoke(function_, batch);
    }
  }

  Function function_;
  std::vector<original_type> originals_;  // for each slot: the batch to which the function is applied, and its position
};

}  // namespace detail

/// A source whose batches are made in advance by threads. The batches are those of an underlying source, in the same order. The source is
/// seekable if the underlying source is. `position()` is the position of the current batch, however far the threads have read. The current
/// batch is the first one that was not consumed. A resumed run therefore continues with this batch. A seek stops the threads and drops the
/// batches that were made in advance. If the underlying source, or the function of `parallel_map`, throws for a batch, the earlier batches
/// are returned first. The `peek` that should return the failed batch then throws the exception. With a seekable source, and with
/// `prefetch` also for other sources, the next `peek` tries to make the failed batch again. `parallel_map` over a source that is not
/// seekable throws the same exception at each further `peek`.
/// @errors   `failed_precondition_error` from each function if the object was moved from.
/// @lifetime The object can be moved, also while the threads run. The destructor waits until the threads have finished the batches that
///           they have begun. If a seekable source was passed as an lvalue, the destructor seeks this source back to `position()`.
/// @threads  One consumer. Only this object may use the underlying source.
/// @cost     One copy of each batch, and one lock for each `peek` and `advance`. Memory for `depth` + 1 batches; for `parallel_map`, also
///           for the `depth` + 1 batches to which the function is applied. No thread is started before the first `peek`.
template<class Source, class Work, class Value>
class ahead_source {
  using under = std::remove_reference_t<Source>;

public:
  using batch = Value;

  explicit ahead_source(std::unique_ptr<Work> work) noexcept : work_(std::move(work)) {}

  /// Returns the current batch, or null at the end of the data. Blocks until the batch is made.
  [[nodiscard]] const batch* peek() { return work().peek(); }
  void advance() { work().advance(); }

  [[nodiscard]] std::uint64_t position() const
    requires seekable_source<Source>
  {
    return work().place().position;
  }
  /// Sets the position. @cost Waits until the threads have finished the batches that they have begun, and joins the threads. The next
  /// `peek` starts new threads.
  void seek(std::uint64_t position)
    requires seekable_source<Source>
  {
    work().seek(position);
  }

  [[nodiscard]] std::uint64_t epoch() const
    requires epoch_source<Source>
  {
    return work().place().epoch.epoch;
  }
  [[nodiscard]] bool is_last_of_epoch() const
    requires epoch_source<Source>
  {
    return work().place().epoch.is_last;
  }
  /// Returns the number of epochs after which the data ends. 0: not known.
  [[nodiscard]] std::uint64_t epochs() const
    requires epoch_source<Source>
  {
    return work().place().epoch.of;
  }
  [[nodiscard]] bool is_at_epoch_start() const
    requires detail::knows_epoch_start<under>
  {
    return work().place().is_epoch_start;
  }
  [[nodiscard]] std::string name() const { return data::name_of<under>(work().source()); }
  [[nodiscard]] std::string fingerprint() const { return data::fingerprint_of<under>(work().source()); }

private:
  /// @errors `failed_precondition_error` if this source was moved from.
  [[nodiscard]] Work& work() const {
    if (!work_) [[unlikely]] { detail::throw_moved_from(); }
    return *work_;
  }

  std::unique_ptr<Work> work_;
};

/// Returns a source that reads `source` in advance, on threads: `prefetch(shuffled_batches(examples, {}), {.threads = 2, .depth = 8})`. If
/// `source` is an lvalue, the result refers to it; if it is an rvalue, it is moved into the result. With several threads, each thread after
/// the first has a copy of the source. A thread calls `advance` for the batches that the other threads make, and calls `peek` for the
/// batches that it makes itself. `advance` must therefore be cheap, as it is for `shuffled_batches`. If the source reads a large dataset,
/// pass the dataset to the source as an lvalue: then the copies of the source share the dataset.
/// @errors `invalid_argument_error` if `threads` is 0, `depth` is not from 1 to 1,000,000, or if there are several threads and the source cannot be copied or cannot
///    seek.
/// @see ahead_source
template<batch_source Source>
[[nodiscard]] auto prefetch(Source&& source, prefetch_options options = {}) {
  using work = detail::prefetch_work<Source>;
  detail::check_prefetch("prefetch", options);
  return ahead_source<Source, work, batch_of<Source>>(std::make_unique<work>(std::forward<Source>(source), options));
}

/// Returns a source whose batches are the results of `function(batch)` or `function(batch, position)`, where `batch` is a batch of
/// `source`. `position` is the position of this batch in `source`, or 0 if `source` is not seekable. The function can pass it as `index` to
/// `random_bits`, so that a resumed run gets the same random numbers. One thread at a time reads `source`. Several threads at once call the
/// function. A resumed run restores only the position of `source`, so the result of the function must depend only on its arguments.
/// @threads The function must allow concurrent calls.
/// @errors `invalid_argument_error` if `threads` is 0, or `depth` is not from 1 to 1,000,000.
/// @see ahead_source
template<batch_source Source, std::move_constructible Function>
[[nodiscard]] auto parallel_map(Source&& source, Function function, prefetch_options options = {}) {
  using work = detail::parallel_map_work<Source, Function>;
  using value = detail::mapped<Function, batch_of<Source>>;
  detail::check_prefetch("parallel_map", options);
  return ahead_source<Source, work, value>(std::make_unique<work>(std::forward<Source>(source), std::move(function), options));
}

}  // namespace stepwell::data
