// SPDX-License-Identifier: Apache-2.0
//
// Tests of the concepts for hooks and sessions. Compiling is passing.
#include "support/toy_model.hpp"

#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/session/training_session.hpp>
#include <stepwell/training/evaluation.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using model = sw::test::adding_model;
using raw = sw::model_session<model>;

// hooks ---------------------------------------------------------------------------------------------------------------

struct only_begins {
  void begin();
};
struct only_hears_of_errors {
  void on_error(sw::run_context<raw>&, std::exception_ptr);
};
struct asks_for_nothing {
  void before_run(auto&);
};
struct asks_for_a_pack {
  auto before_run(auto&) { return sw::fetch(&model::result::loss); }
  void after_run(auto&, const auto&) {}
};
struct asks_with_run_args_now_and_then {
  double limit = 0;
  auto before_run(auto&) {  // the fetch has no default value
    return std::optional(sw::run_args{.fetch = sw::fetch([at_most = limit](const auto& outcome) { return outcome.loss < at_most; })});
  }
  void after_run(auto&, const auto&) {}
};
struct asks_with_run_args {
  auto before_run(auto&) { return sw::run_args{sw::fetch(&model::result::loss)}; }
  void after_run(auto&, const auto&) {}
};
struct asks_now_and_then {
  auto before_run(auto&) { return std::optional(sw::fetch(&model::result::loss)); }
  void after_run(auto&, const auto&) {}
};
struct asks_and_does_not_listen {
  auto before_run(auto&) { return sw::fetch(&model::result::loss); }
};
struct has_a_reference {
  int& count;
  void after_run(auto&, const auto&);
};
struct can_only_be_moved {
  std::unique_ptr<int> held;
  void end(auto&);
};
static_assert(sw::hook<only_begins, raw>);
static_assert(sw::hook<only_hears_of_errors, raw>);
static_assert(sw::hook<asks_for_nothing, raw>);
static_assert(sw::hook<asks_for_a_pack, raw>);
static_assert(sw::hook<asks_with_run_args, raw>);
static_assert(sw::hook<asks_with_run_args_now_and_then, raw>);
static_assert(sw::hook<asks_now_and_then, raw>);
static_assert(!sw::hook<asks_and_does_not_listen, raw>);
static_assert(sw::hook<has_a_reference, raw>);
static_assert(sw::hook<can_only_be_moved, raw>);
static_assert(sw::hook<sw::stop_at_step_hook, raw>);
static_assert(sw::hook<sw::checkpoint_saver_hook, raw>);

struct nothing_at_all {};
struct cannot_be_moved {
  cannot_be_moved(cannot_be_moved&&) = delete;
  void begin();
};
struct takes_the_wrong_context {
  void after_run(std::string&, int);
};
struct begins_with_an_argument {
  void begin(int);
};
struct asks_for_a_number {
  int before_run(auto&);
};
struct hides_its_point {
private:
  void begin();
};
struct one_right_one_wrong {
  void begin();
  void end(int, int);
};
struct final_and_wrong final {
  void begin();
  void after_run();
};
struct final_and_right final {
  void begin();
};
static_assert(!sw::hook<int, raw>);
static_assert(!sw::hook<nothing_at_all, raw>);
static_assert(!sw::hook<cannot_be_moved, raw>);
static_assert(!sw::hook<takes_the_wrong_context, raw>);
static_assert(!sw::hook<begins_with_an_argument, raw>);
static_assert(!sw::hook<asks_for_a_number, raw>);
static_assert(!sw::hook<hides_its_point, raw>);
static_assert(!sw::hook<one_right_one_wrong, raw>);
static_assert(!sw::hook<final_and_wrong, raw>);
static_assert(sw::hook<final_and_right, raw>);

static_assert(sw::phase_of<only_begins>() == sw::hook_phase::user);
static_assert(sw::phase_of<sw::checkpoint_saver_hook>() == sw::hook_phase::persist);
static_assert(sw::phase_of<sw::nan_tensor_hook<float model::result::*>>() == sw::hook_phase::guard);
static_assert(sw::phase_of<sw::early_stopping_hook<float model::result::*>>() == sw::hook_phase::guard);
static_assert(sw::phase_of<sw::ema_hook>() == sw::hook_phase::average);
static_assert(sw::stateful_hook<sw::ema_hook> && sw::stateful_hook<sw::early_stopping_hook<float model::result::*>>);
static_assert(!sw::stateful_hook<sw::stop_at_step_hook>);

// models and raw sessions ---------------------------------------------------------------------------------------------

struct no_step {
  sw::variable_list variables();
};
struct no_variables {
  void step();
};
struct names_its_result {
  using result = double;
  template<class T>
  result step(const T&);
  sw::variable_list variables();
};
struct template_without_result {
  template<class T>
  int step(const T&);
  sw::variable_list variables();
};
static_assert(sw::trainable_model<model> && sw::trainable_model<names_its_result>);
static_assert(!sw::trainable_model<no_step> && !sw::trainable_model<no_variables> && !sw::trainable_model<int>);
static_assert(!sw::trainable_model<template_without_result>);
static_assert(std::is_same_v<sw::model_result<names_its_result>, double>);
static_assert(sw::raw_session<raw> && !sw::raw_session<model>);
static_assert(sw::raw_session<sw::evaluation_session<model>>);

template<class Projection, class Raw>
concept fetch_of =
    requires(const Raw& raw, const typename Raw::outcome_type& outcome, const Projection& projection) { raw.read(outcome, projection); };
static_assert(fetch_of<float model::result::*, sw::evaluation_session<model>> && !fetch_of<int, sw::evaluation_session<model>>);
static_assert(fetch_of<float model::result::*, raw> && fetch_of<float model::*, raw>);
static_assert(!fetch_of<int, raw> && !fetch_of<std::string std::pair<std::string, int>::*, raw>);

// sessions ------------------------------------------------------------------------------------------------------------

/// A session with only the members that a generic loop may use.
struct session_archetype {
  using result_type = int;
  using step_type = sw::step_result<int>;

  session_archetype(session_archetype&&) = default;
  bool should_stop() const { return true; }
  void request_stop(std::string = "") {}
  sw::stop_reason stop_reason() const { return {}; }
  std::int64_t global_step() const { return 0; }
  void close() {}
  std::vector<step_type> steps(std::vector<int>&) { return {}; }
};
static_assert(sw::training_session<session_archetype>);
static_assert(sw::steps_from<session_archetype, std::vector<int>>);
static_assert(!sw::steps_from<session_archetype, std::string>);

struct cannot_say_why : session_archetype {
  void stop_reason() const;
};
static_assert(!sw::training_session<cannot_say_why> && !sw::training_session<model> && !sw::training_session<int>);

/// Uses only the members that the concepts require.
template<sw::training_session Session, class Source>
  requires sw::steps_from<Session, Source>
std::int64_t fit(Session& session, Source& source) {
  for (const auto& step : session.steps(source)) {
    if (step.global_step > 1'000 && !session.should_stop()) { session.request_stop(); }
  }
  session.close();
  return session.stop_reason().cause == sw::stop_cause::error ? -1 : session.global_step();
}
template std::int64_t fit(session_archetype&, std::vector<int>&);

using session = decltype(sw::monitored_training_session(std::declval<model&>(), {}, std::declval<sw::stop_at_step_hook>(),
                                                        std::declval<std::reference_wrapper<only_begins>>()));
static_assert(sw::training_session<session>);
static_assert(sw::steps_from<session, std::vector<std::int64_t>>);
static_assert(std::is_nothrow_move_constructible_v<session> && !std::is_copy_constructible_v<session>);
static_assert(!std::is_move_assignable_v<session>);
