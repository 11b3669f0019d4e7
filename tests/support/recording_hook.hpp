// SPDX-License-Identifier: Apache-2.0
//
// Hooks that make a session observable: one records every call, one keeps the coordinator, one records attempts and
// failures.
#pragma once

#include <stepwell/threads/coordinator.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace stepwell::test {

/// A hook that records every call with its step.
struct recording_hook {
  std::vector<std::string>* story;
  std::string name = "";

  void begin() { tell("begin"); }
  void after_create_session(auto& session, auto&) { tell("create", session.global_step()); }
  void before_run(auto& context) { tell("before", context.global_step()); }
  void after_run(auto& context, const auto&) { tell("after", context.global_step()); }
  void on_error(auto&, const std::exception_ptr& failure) { tell(failure ? "error" : "error unknown"); }
  void end(auto& session) { tell("end", session.global_step()); }

private:
  void tell(const std::string& what) { story->push_back(name + what); }
  void tell(const std::string& what, std::int64_t step) { story->push_back(name + what + " " + std::to_string(step)); }
};

/// A hook that keeps a pointer to the session's coordinator, so that a test can report failures as a thread would.
struct coordinator_hook {
  coordinator* threads = nullptr;
  int creations = 0;

  void after_create_session(auto& /*session*/, coordinator& given) {
    threads = &given;
    ++creations;
  }
};

/// A hook that records the attempt number of each run and the failures passed to `on_error`.
struct attempts_hook {
  std::vector<int> attempts = {};
  std::vector<std::exception_ptr> failures = {};

  void before_run(auto& context) { attempts.push_back(context.attempt()); }
  void on_error(auto& /*context*/, const std::exception_ptr& failure) { failures.push_back(failure); }
};

}  // namespace stepwell::test
