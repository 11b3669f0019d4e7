// SPDX-License-Identifier: Apache-2.0
//
// Spans of time for timelines. A `trace_span` measures one activity of a thread. A `trace_recorder` collects the spans. A `trace_scope`
// selects the recorder of a thread:
//
//     const trace_scope scope(recorder);            // on the thread of a session
//     const trace_span  span("run");                // later on the same thread, in any function that is called inside the scope
//
// Code that passes work to another thread also passes the recorder, `current_trace()`. On the other thread, the work first opens a
// `trace_scope` with this recorder. The spans of a background job are then recorded for the session that requested the job, even if these
// spans end long after the spans of the session's thread.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// A detail of a span, with a name. Shown to users.
struct trace_argument {
  std::string key;
  std::string text;

  friend bool operator==(const trace_argument&, const trace_argument&) = default;
};

/// One span of time that a thread spent on one activity.
struct trace_event {
  std::string name;
  std::string category;
  std::uint32_t thread_id = 0;  ///< See `current_thread_id`.
  std::string thread_name;
  clock::time_point begin;
  clock::time_point end;
  std::vector<trace_argument> arguments = {};

  friend bool operator==(const trace_event&, const trace_event&) = default;
};

/// The spans that a recorder collected.
struct run_metadata {
  std::vector<trace_event> spans;  ///< Spans in the order in which they ended.
  clock::time_point origin;        ///< An instant at or before the begin of the first span.
  clock::wall_time wall_origin;    ///< The time of day at `origin`.
  std::size_t lost = 0;            ///< Number of spans since the last `take` that were dropped: too many spans, or no memory was left.
};

/// A collector of spans that have ended.
/// @threads All functions may be called from any thread.
class trace_recorder {
public:
  static constexpr std::size_t default_max_spans = std::size_t{1} << 20;

  /// Creates a recorder that takes all times from `time`. It holds at most `max_spans` spans at a time; further spans are dropped and
  /// counted as lost.
  explicit trace_recorder(std::shared_ptr<clock> time, std::size_t max_spans = default_max_spans);
  trace_recorder(const trace_recorder&) = delete;
  trace_recorder& operator=(const trace_recorder&) = delete;

  /// Removes and returns the spans that have ended since the previous call of `take`. Spans that end later are returned by a later call.
  [[nodiscard]] run_metadata take();

  /// Returns the number of spans recorded so far, including those removed by `take`. The next span that ends has this position.
  [[nodiscard]] std::uint64_t position() const noexcept;
  /// Returns a copy of the spans from number `position` on (see `position()`), without the spans that `take` has removed.
  [[nodiscard]] run_metadata since(std::uint64_t position) const;

  /// Adds a span that was not measured by a `trace_span`. If memory is exhausted, the span is counted as lost.
  void add(trace_event ended) noexcept;

  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return time_; }

private:
  const std::shared_ptr<clock> time_;
  const std::size_t max_spans_;
  const clock::time_point origin_;
  const clock::wall_time wall_origin_;
  mutable detail::checked_mutex mutex_;
  std::vector<trace_event> spans_ STEPWELL_GUARDED_BY(mutex_);
  std::uint64_t taken_ STEPWELL_GUARDED_BY(mutex_) = 0;  // spans removed by all calls of `take`
  std::size_t lost_ STEPWELL_GUARDED_BY(mutex_) = 0;
};

namespace detail {
inline constinit std::atomic<int> traced_scopes = 0;  // number of `trace_scope` objects with a recorder, on all threads
[[nodiscard]] std::shared_ptr<trace_recorder> trace_of_this_thread() noexcept;
}  // namespace detail

/// Returns true if at least one thread of this process has a recorder. @cost One relaxed load.
[[nodiscard]] inline bool is_tracing() noexcept { return detail::traced_scopes.load(std::memory_order_relaxed) != 0; }

/// Returns the recorder of this thread, or null. @cost One relaxed load if no thread has a recorder.
[[nodiscard]] inline std::shared_ptr<trace_recorder> current_trace() noexcept {
  if (!is_tracing()) [[likely]] { return nullptr; }
  return detail::trace_of_this_thread();
}

/// A scope in which `recorder` is the recorder of this thread. The destructor restores the previous recorder. If `recorder` is null, the
/// scope has no effect.
/// @threads Destroy scopes on the thread that created them, in reverse order. A coroutine must not suspend while a scope exists in it.
class trace_scope {
public:
  explicit trace_scope(const std::shared_ptr<trace_recorder>& recorder) noexcept {
    if (recorder) [[unlikely]] { enter(recorder); }
  }
  trace_scope(const trace_scope&) = delete;
  trace_scope& operator=(const trace_scope&) = delete;
  ~trace_scope() {
    if (recorder_) [[unlikely]] { leave(); }
  }

private:
  friend std::shared_ptr<trace_recorder> detail::trace_of_this_thread() noexcept;
  void enter(const std::shared_ptr<trace_recorder>& recorder) noexcept;
  void leave() noexcept;

  std::shared_ptr<trace_recorder> recorder_;
  const trace_scope* outer_ = nullptr;
};

/// A span of time on this thread, from the construction of this object to its destruction. The constructor chooses the recorder. Without a
/// recorder, the span does nothing. If no memory is left, the span is lost, and no exception is thrown.
/// @cost One relaxed load if no thread has a recorder. Otherwise two clock reads and a few small allocations.
class trace_span {
public:
  /// Begins a span for the recorder of this thread. Does nothing if this thread has no recorder.
  explicit trace_span(std::string_view name, std::string_view category = default_category) noexcept {
    if (is_tracing()) [[unlikely]] { begin(detail::trace_of_this_thread(), name, category); }
  }
  /// Begins a span for `recorder`. Does nothing if `recorder` is null.
  trace_span(std::shared_ptr<trace_recorder> recorder, std::string_view name, std::string_view category = default_category) noexcept {
    if (recorder) [[unlikely]] { begin(std::move(recorder), name, category); }
  }
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;
  ~trace_span() {
    if (open_) [[unlikely]] { end(); }
  }

  /// Returns true if the span will be recorded. If it returns false, the caller need not build texts for `argument`.
  explicit operator bool() const noexcept { return open_ != nullptr; }

  void argument(std::string_view key, std::string_view text) noexcept {
    if (open_) [[unlikely]] { append(key, text); }
  }
  template<std::integral Number>
  void argument(std::string_view key, Number value) noexcept {
    if (!open_) [[likely]] { return; }
    std::array<char, 24> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    append(key, {text.data(), end});
  }

private:
  static constexpr std::string_view default_category = "stepwell";
  struct open_span {
    std::shared_ptr<trace_recorder> recorder;
    trace_event event;
  };

  void begin(std::shared_ptr<trace_recorder> recorder, std::string_view name, std::string_view category) noexcept;
  void append(std::string_view key, std::string_view text) noexcept;
  void end() noexcept;

  std::unique_ptr<open_span> open_;
};

}  // namespace stepwell
