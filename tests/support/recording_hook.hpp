// SPDX-License-Identifier: Apache-2.0
//
// Hooks that show what a session does: one writes down every call, one knows the threads, one counts tries.
#pragma once

#include <stepwell/threads/coordinator.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace stepwell::test {

/// Writes down every call, with the step it saw.
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

/// Knows the coordinator of the session, to report in place of a thread.
struct coordinator_hook {
  coordinator* threads = nullptr;
  int creations = 0;

  void after_create_session(auto& /*session*/, coordinator& given) {
    threads = &given;
    ++creations;
  }
};

/// The attempts of the runs it saw, and the failures it was told of.
struct attempts_hook {
  std::vector<int> attempts = {};
  std::vector<std::exception_ptr> failures = {};

  void before_run(auto& context) { attempts.push_back(context.attempt()); }
  void on_error(auto& /*context*/, const std::exception_ptr& failure) { failures.push_back(failure); }
};

}  // namespace stepwell::test
