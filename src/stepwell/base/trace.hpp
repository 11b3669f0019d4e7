// SPDX-License-Identifier: Apache-2.0
//
// Spans of time, for timelines. A recorder collects them; who does something worth seeing opens a `trace_span`; between
// the two stands the recorder in force on a thread:
//
//     const trace_scope scope(recorder);            // on the thread of a session
//     const trace_span  span("run");                // anywhere below, on the same thread
//
// Work that is handed to another thread takes `current_trace()` along and opens a `trace_scope` there: so the spans of
// a background job land with the session that asked for it, also when they end long after that session's own.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/run_metadata.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// Collects spans that have ended.
/// @threads Any.
class trace_recorder {
public:
  static constexpr std::size_t default_max_spans = std::size_t{1} << 20;

  /// Times are those of `time`. What would make it hold more than `max_spans` is counted and dropped.
  explicit trace_recorder(std::shared_ptr<clock> time, std::size_t max_spans = default_max_spans);
  trace_recorder(const trace_recorder&) = delete;
  trace_recorder& operator=(const trace_recorder&) = delete;

  /// What has ended since the call before. What is still open, or begins later, is for the next call.
  [[nodiscard]] run_metadata take();

  /// Where the next span that ends will stand: a number that only grows.
  [[nodiscard]] std::uint64_t position() const noexcept;
  /// A copy of what has ended from `position` on, as far as nobody took it.
  [[nodiscard]] run_metadata since(std::uint64_t position) const;

  /// Adds a span that did not come by way of a `trace_span`. Without memory for it, it counts as lost.
  void add(trace_event ended) noexcept;

  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return time_; }

private:
  const std::shared_ptr<clock> time_;
  const std::size_t max_spans_;
  const clock::time_point origin_;
  const clock::wall_time wall_origin_;
  mutable std::mutex mutex_;
  std::vector<trace_event> spans_;
  std::uint64_t taken_ = 0;  // spans, by all calls of `take`
  std::size_t lost_ = 0;
};

namespace detail {
inline constinit std::atomic<int> traced_scopes = 0;  // alive, on all threads
[[nodiscard]] std::shared_ptr<trace_recorder> trace_of_this_thread() noexcept;
}  // namespace detail

/// False when no thread of this process is traced. @cost One relaxed load.
[[nodiscard]] inline bool is_tracing() noexcept { return detail::traced_scopes.load(std::memory_order_relaxed) != 0; }

/// The recorder in force on this thread, or null. @cost One relaxed load where no thread is traced.
[[nodiscard]] inline std::shared_ptr<trace_recorder> current_trace() noexcept {
  if (!is_tracing()) [[likely]] { return nullptr; }
  return detail::trace_of_this_thread();
}

/// Makes `recorder` the one in force on this thread, until the scope is gone; then it is the one before again. Null
/// changes nothing.
/// @threads Destroyed on the thread that made it, in reverse order: it must not live across a suspension of a coroutine.
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

/// A span from here to its end of life, on this thread. Does nothing where there is no recorder.
/// It belongs to the recorder it began with, whichever is in force at its end. It never fails: without memory for it,
/// there is no span.
/// @cost Where no thread is traced: one relaxed load. Else the clock twice, and a few small allocations.
class trace_span {
public:
  /// Of the recorder in force on this thread.
  explicit trace_span(std::string_view name, std::string_view category = default_category) noexcept {
    if (is_tracing()) [[unlikely]] { begin(detail::trace_of_this_thread(), name, category); }
  }
  /// Of `recorder`; of none if that is null.
  trace_span(std::shared_ptr<trace_recorder> recorder, std::string_view name, std::string_view category = default_category) noexcept {
    if (recorder) [[unlikely]] { begin(std::move(recorder), name, category); }
  }
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;
  ~trace_span() {
    if (open_) [[unlikely]] { end(); }
  }

  /// True where it will be recorded: ask it before making a text for `argument`.
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
