// SPDX-License-Identifier: Apache-2.0
//
// The trace of a run: spans of the calls of hooks, of the run and of its boundary, and the metadata of a run whose options request a trace.
// If neither the caller nor a hook can request a trace, all of this is empty.
// @see contract RUN-8
#pragma once

#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/protocol/detail/boundary_requests.hpp"
#include "stepwell/protocol/run_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

namespace stepwell::detail {

/// A traced part of a session's work: a span of `recorder`. Spans that this thread opens meanwhile are recorded there, too.
class traced_part {
public:
  traced_part(const std::shared_ptr<trace_recorder>& recorder, std::string_view name) noexcept
      : scope_(recorder), span_(recorder, name, "session") {}

private:
  trace_scope scope_;
  trace_span span_;
};

struct untraced_part {
  constexpr untraced_part(const std::shared_ptr<trace_recorder>&, std::string_view, std::string_view = {}) noexcept {}
};

template<bool Traced>
using run_part = std::conditional_t<Traced, traced_part, untraced_part>;
/// The span of work that may suspend and continue on another thread. Spans that are opened meanwhile are not recorded there.
template<bool Traced>
using awaited_part = std::conditional_t<Traced, trace_span, untraced_part>;

/// The name of a call of a hook: "my::hook", "before_run". Empty: no call.
struct hook_call {
  std::string_view hook = {};
  std::string_view point = {};
};

/// The text "hook my::hook before_run", composed at compile time. Compilers do this slowly, so only traced calls have it.
template<class Hook, class Point>
inline constexpr auto text_of_call = [] {
  constexpr std::string_view parts[] = {"hook ", type_name<Hook>(), " ", Point::name};
  std::array<char, parts[0].size() + parts[1].size() + parts[2].size() + parts[3].size()> text{};
  auto* next = text.data();
  for (const auto part : parts) { next = std::ranges::copy(part, next).out; }
  return text;
}();
template<class Hook, class Point>
[[nodiscard]] constexpr std::string_view name_of_call() noexcept {
  return {text_of_call<Hook, Point>.data(), text_of_call<Hook, Point>.size()};
}
/// Returns the span of the call `Point` of a hook.
template<bool Traced, class Hook, class Point>
[[gnu::always_inline, nodiscard]] inline run_part<Traced> part_of_call(const std::shared_ptr<trace_recorder>& recorder) noexcept {
  if constexpr (Traced) {
    return {recorder, name_of_call<Hook, Point>()};
  } else {
    return {recorder, {}};
  }
}

/// The trace of one run whose caller or hooks may request it. If the options request a trace and no hook has set a recorder, creates a
/// recorder for the duration of the run.
class run_trace {
public:
  explicit run_trace(boundary_requests& requests) noexcept : requests_(requests) {}
  run_trace(const run_trace&) = delete;
  run_trace& operator=(const run_trace&) = delete;
  ~run_trace() {
    if (own_ && requests_.trace() == own_) [[unlikely]] { requests_.trace_into(nullptr); }
  }

  /// Starts a trace if the caller requests one. Called before `before_run` of the hooks.
  template<class Caller>
  void before_hooks(const Caller& caller) {
    if constexpr (Caller::has_options) {
      if (asks(*caller.options())) { make_own(); }
    }
  }
  /// Starts a trace if the merged options request one. Called after `before_run` of the hooks. If a hook has set a recorder, the spans
  /// recorded before are moved to it.
  template<class Order>
  void before_run(const Order& order) {
    if constexpr (Order::has_options) {
      if (asks(order.options())) [[unlikely]] { attach_recorder(); }
    }
  }
  /// Writes the spans recorded so far to the metadata. Called before `after_run` of the hooks, which can read them.
  template<class Order>
  void after_run(const Order& order) {
    if constexpr (Order::has_options) {
      if (wanted_) [[unlikely]] { tell(order.metadata()); }
    }
  }
  /// Appends the spans of `after_run` of the hooks to the metadata, for the caller.
  template<class Order>
  void after_hooks(const Order& order) {
    if constexpr (Order::has_options) {
      if (wanted_) [[unlikely]] { tell_more(order.metadata()); }
    }
  }

private:
  [[nodiscard]] static bool asks(const run_options& options) noexcept {
    return options.trace_level.value_or(trace_level::none) != trace_level::none;
  }
  void make_own();
  void attach_recorder();
  void tell(run_metadata& observed);
  void tell_more(run_metadata& observed) const;

  boundary_requests& requests_;
  std::shared_ptr<trace_recorder> own_;
  std::shared_ptr<trace_recorder> wanted_;  // the recorder of the spans for the metadata; null: no trace is requested
  std::uint64_t told_ = 0;                  // position of the first span that is not in the metadata yet
};

struct no_run_trace {
  explicit constexpr no_run_trace(const boundary_requests&) noexcept {}
  static constexpr void before_hooks(const auto&) noexcept {}
  static constexpr void before_run(const auto&) noexcept {}
  static constexpr void after_run(const auto&) noexcept {}
  static constexpr void after_hooks(const auto&) noexcept {}
};

template<bool Traced>
using trace_of_run = std::conditional_t<Traced, run_trace, no_run_trace>;

}  // namespace stepwell::detail
