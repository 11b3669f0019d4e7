// SPDX-License-Identifier: Apache-2.0
//
// A raw session with the optional members of the table in protocol/raw_session.hpp. Records their calls.
#pragma once

#include "support/plain_raw_session.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/detail/function_ref.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/protocol/raw_session.hpp>
#include <stepwell/protocol/session_signals.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace stepwell::test {

/// A raw session with every optional member. Records which of them are called, and the end of the lifetime of each object that they return.
struct full_raw_session : plain_raw_session {
  static constexpr bool reads_feeds = false;
  template<class... Args>
  static constexpr bool takes = sizeof...(Args) <= 1;
  template<class... Args>
  static constexpr bool awaits = false;
  using fetch_key = int;

  explicit full_raw_session(std::vector<std::string>& to) : calls(&to) {}

  auto enter(const auto& request) {
    auto scope = during("enter");
    const auto note = [this](int key) { calls->push_back("fetch " + std::to_string(key)); };
    if constexpr (requires { request.for_each_fetch(note); }) { request.for_each_fetch(note); }
    return scope;
  }
  auto feed(const auto& /*request*/) { return during("feed"); }
  outcome_type run(const auto& request, const auto&... /*batch*/) {
    calls->emplace_back("run");
    return plain_raw_session::run(request);
  }
  auto pull() { return during("pull"); }
  void push() { calls->emplace_back("push"); }
  auto exclusive() { return during("exclusive"); }
  update_fence& fence() { return *fence_of_all; }
  std::string& subject() { return *trained; }
  void close() { calls->emplace_back("close"); }
  [[nodiscard]] bool is_shared() const { return false; }
  [[nodiscard]] std::int64_t read_global_step() const {
    calls->emplace_back("read_global_step");
    return steps + 100;  // with the steps of other sessions
  }
  std::int64_t prepare_as_chief(function_ref<bool()> make_ready) {
    const auto preparing = during("prepare_as_chief");
    make_ready();
    return steps;
  }
  [[nodiscard]] bool is_chief_ready() const { return is_chief_seen; }
  bool wait_for_chief(session_signals& /*signals*/, clock& /*time*/, clock::time_point /*until*/) {
    calls->emplace_back("wait_for_chief");
    return is_chief_seen = true;
  }
  void join() { calls->emplace_back("join"); }
  auto fed(const auto& /*request*/, const auto&... /*batch*/) { return std::tuple<>(); }
  int step(std::tuple<>& /*fed*/) { return 0; }
  outcome_type count(std::int64_t before, int&& result) {
    ++steps;
    return {result, before, steps};
  }

  std::vector<std::string>* calls;
  std::unique_ptr<update_fence> fence_of_all = std::make_unique<update_fence>();
  std::unique_ptr<std::string> trained = std::make_unique<std::string>("iron");
  bool is_chief_seen = false;

private:
  /// Records `name`, and the end of the lifetime of the result.
  [[nodiscard]] std::shared_ptr<void> during(const std::string& name) const {
    calls->push_back(name);
    return std::shared_ptr<void>(nullptr, [to = calls, name](std::nullptr_t) { to->push_back("end of " + name); });
  }
};

}  // namespace stepwell::test
