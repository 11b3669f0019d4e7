// SPDX-License-Identifier: Apache-2.0
//
// A session that fails when a test says so and recovers from its checkpoints without delay, because its clock stands
// still.
#pragma once

#include "support/session_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/creation/session_manager.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/training_options.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::test {

/// Returns options for recovery without backoff on a clock that stands still.
inline training_options at_once() { return {.retry = {.initial_backoff = 0}, .clock = std::make_shared<manual_clock>()}; }

/// Returns a callable that throws an `Error` in its first `times` calls.
template<class Error>
auto failing(int times, std::string why = "a bad day") {
  return [times, why](auto&&...) mutable {
    if (times-- > 0) { throw Error(why); }
  };
}

/// A callable that throws an `aborted_error` once for each of `batches`. It records all batches in `seen`.
struct failing_batches {
  std::multiset<std::int64_t> batches;
  std::vector<std::int64_t>* seen = nullptr;

  void operator()(std::int64_t batch) {
    if (seen != nullptr) { seen->push_back(batch); }
    if (const auto found = batches.find(batch); found != batches.end()) {
      batches.erase(found);
      throw aborted_error("batch " + std::to_string(batch) + " is lost on the way");
    }
  }
};

/// A session rig with a checkpoint directory to recover from.
struct recovery_rig : session_rig {
  session_setup setup = {.options = {.retry = {.initial_backoff = 0}, .clock = clock}, .restores_what_it_saves = true};

  [[nodiscard]] checkpoint_saver_hook saver_hook(std::int64_t every_steps) const {
    return checkpoint_saver_hook({.checkpoint_dir = directory.path(),
                                  .save_steps = every_steps,
                                  .saver = {.max_to_keep = none, .file_system = files, .pool = pool, .clock = clock},
                                  .events = {.file_system = files, .threads = pool, .clock = clock}});
  }
  template<class... Hooks>
  [[nodiscard]] auto start_saving_every(std::int64_t steps, Hooks... hooks) {
    auto hook = saver_hook(steps);
    auto with = setup;
    with.find_checkpoint = hook.checkpoint_finder();
    return monitored_session(std::move(with), model, std::move(hook), std::move(hooks)...);
  }
};

/// A raw session with a `close` function.
struct closing_raw : model_session<adding_model> {
  using model_session<adding_model>::model_session;
  std::vector<std::string>* story = nullptr;
  std::function<void()> fails = nullptr;

  void close() {
    story->push_back("raw closed");
    if (fails) { fails(); }
  }
};
struct closing_creator {
  adding_model& model;
  std::vector<std::string>* story;
  std::function<void()> fails = nullptr;

  closing_raw create_session(session_creation& creation) const {
    closing_raw raw(model);
    raw.story = story;
    raw.fails = fails;
    session_manager<closing_raw>().prepare_session(raw, creation);
    return raw;
  }
};

}  // namespace stepwell::test
