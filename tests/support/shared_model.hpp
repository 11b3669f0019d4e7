// SPDX-License-Identifier: Apache-2.0
//
// A model that several sessions step and that detects concurrent steps, with creators for chief and workers.
#pragma once

#include <stepwell/creation/session_creator.hpp>
#include <stepwell/model/model_session.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::test {

struct shared_model {
  struct result {
    std::int64_t count;
  };

  std::int64_t count = 0;
  std::vector<std::int64_t> copies = std::vector<std::int64_t>(100);  // all equal, except in the middle of a step
  std::function<void(std::int64_t)> before = nullptr;
  std::atomic<int> inside = 0;
  std::atomic<bool> was_disturbed = false;

  result step() { return step(0); }
  result step(std::int64_t batch) {
    if (++inside != 1) { was_disturbed = true; }
    if (before) { before(batch); }
    ++count;
    for (auto& copy : copies) { ++copy; }
    --inside;
    return {count};
  }
  [[nodiscard]] bool is_whole() const {
    for (const auto copy : copies) {
      if (copy != count) { return false; }
    }
    return true;
  }
  variable_list variables() { return stepwell::variables({{"count", count}, {"copies", copies}}); }
};

/// A hook that compares the parts of the model after each step. They differ if another session is in the middle of a
/// step.
struct looking_hook {
  bool saw_a_mess = false;
  auto before_run(auto&) { return fetch(&shared_model::result::count, &shared_model::count, &shared_model::copies); }
  void after_run(auto&, const auto& values) {
    const auto& [returned, count, copies] = values;
    saw_a_mess |= returned != count || copies.front() != count || copies.back() != count;
  }
};

/// Returns options with this clock and without backoff before a recovery.
inline training_options options_on(std::shared_ptr<clock> time) { return {.retry = {.initial_backoff = 0}, .clock = std::move(time)}; }

template<class Model>
chief_session_creator<Model> chief_of(Model& model, const std::string& master, const std::string& checkpoint_dir = "") {
  return chief_session_creator<Model>(model, nullptr, {.target = {.master = master}, .restore = {.checkpoint_dir = checkpoint_dir}});
}
template<class Model>
worker_session_creator<Model> worker_of(Model& model, const std::string& master, seconds_value max_wait_secs = 1800) {
  return worker_session_creator<Model>(model, nullptr, {.target = {.master = master}, .max_wait_secs = max_wait_secs});
}

}  // namespace stepwell::test
