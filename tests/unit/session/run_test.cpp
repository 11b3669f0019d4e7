// SPDX-License-Identifier: Apache-2.0
//
// Tests of one run: the requests of caller and hooks are merged (contract RUN).
#include "support/catch.hpp"
#include "support/toy_model.hpp"

#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

/// A model that adds `rate` times the value of the batch in each step.
struct rated_model {
  struct batch {
    float value = 1;
    int weight = 1;
  };
  struct result {
    float loss;
    float rate_seen;
  };

  float sum = 0;
  float rate = 1;
  int steps = 0;

  result step(const batch& given) {
    ++steps;
    if (given.value < 0) { throw std::runtime_error("a negative batch"); }
    sum += rate * given.value * static_cast<float>(given.weight);
    return {sum, rate};
  }
  sw::variable_list variables() { return sw::variables({{"sum", sum}, {"rate", rate}}); }
};

using batch = rated_model::batch;

static_assert(!sw::detail::has_pull<sw::model_session<rated_model>>, "sessions over models contain no code for a pull");

struct log_of_calls {
  std::vector<std::string>* log;
  std::string name;
  bool stops = false;

  void before_run(auto& context) {
    log->push_back(name + ".before");
    if (stops) { context.request_stop(); }
  }
  void after_run(auto&, const auto&) { log->push_back(name + ".after"); }
};

/// A hook that feeds the rate of the model.
struct feeds_rate {
  float rate;
  std::vector<std::string>* log = nullptr;

  auto before_run(auto&) {
    return sw::run_args{.fetch = sw::fetch(&rated_model::result::rate_seen), .feed = sw::feed(&rated_model::rate, rate)};
  }
  void after_run(auto&, const auto& values) {
    if (log != nullptr) { log->push_back(std::to_string(values.value())); }
  }
};
struct feeds_rate_too : feeds_rate {};

/// A hook that requests run options, and records the options of the run.
struct asks_options {
  sw::run_options wanted;
  sw::run_options* seen;
  const sw::run_metadata** place = nullptr;

  // A copy: for the name of a member, in a template, clang (19, 21) deduces a run_args without options.
  auto before_run(auto&) { return sw::run_args{.options = sw::run_options(wanted)}; }
  void after_run(auto&, const auto& values) {
    *seen = values.options();
    if (place != nullptr) { *place = &values.metadata(); }
  }
};
struct asks_options_too : asks_options {};

struct sees_context {
  std::vector<const void*>* seen;
  void before_run(auto& context) { seen->push_back(&context); }
  void after_run(auto& context, const auto&) { seen->push_back(&context); }
};
struct sees_context_too : sees_context {};

/// A raw session that records the request it receives.
struct listening_session {
  static constexpr bool reads_feeds = true;
  using result_type = int;
  using outcome_type = sw::run_outcome<int>;

  std::int64_t step;
  sw::run_options* options;
  int* fed_value;

  outcome_type run(const auto& order) {
    *options = order.options();
    std::apply([&](const auto*... one) { ((*fed_value = one->value), ...); }, order.feeds());
    ++step;
    return {7, step - 1, step};
  }
  template<class Projection>
  int read(const outcome_type& outcome, const Projection&) const {
    return outcome.result;
  }
  std::int64_t global_step() const { return step; }
  sw::variable_list variables() { return sw::variables({{"global_step", step}}); }
};

}  // namespace

TEST_CASE("RUN-2 RUN-3 RUN-10 a run has one context, and calls before_run and after_run of every hook in order", "[session][run]") {
  rated_model model;
  std::vector<const void*> seen;
  sw::monitored_session session(model, sees_context{&seen}, sees_context_too{{&seen}});
  session.run(batch{});
  REQUIRE(seen.size() == 4);
  CHECK(seen == std::vector<const void*>(4, seen[0]));
}

TEST_CASE("RUN-4 RUN-12 hooks and caller fetch in one run, and each receives its own values", "[session][run]") {
  rated_model model;
  std::vector<std::string> log;
  sw::monitored_session session(model, feeds_rate{0.5f, &log});
  const auto [loss, sum] = session.run(sw::fetch(&rated_model::result::loss, &rated_model::sum), batch{4});
  CHECK(loss == 2);
  CHECK(sum == 2);
  CHECK(log == std::vector<std::string>{std::to_string(0.5f)});
  CHECK(model.steps == 1);
}

TEST_CASE("RUN-5 HOOK-FEED-1 a fed member of the model gets its own value back, also after a run that fails", "[session][run]") {
  rated_model model;
  float next = 10;
  sw::monitored_session session(model, sw::feed_fn_hook{[&] { return sw::feed(&rated_model::rate, next++); }});
  CHECK(session.run(batch{}).rate_seen == 10);
  CHECK(session.run(batch{}).rate_seen == 11);
  CHECK(model.rate == 1);
  CHECK_THROWS_AS(session.run(batch{-1}), std::runtime_error);
  CHECK(model.rate == 1);
}

TEST_CASE("RUN-5 a fed member of the batch is fed in a copy", "[session][run]") {
  rated_model model;
  sw::monitored_session session(model,
                                sw::feed_fn_hook{[] { return sw::feeds(sw::feed(&batch::weight, 3), sw::feed(&rated_model::rate, 2.0)); }});
  const batch given{5, 1};
  CHECK(session.run(given).loss == 30);
  CHECK(given.weight == 1);
}

TEST_CASE("RUN-4 the values of the caller are read before fed members get their own values back", "[session][run]") {
  rated_model model;
  sw::monitored_session session(model);
  const auto [rate] = session.run(sw::fetch(&rated_model::rate), sw::feed(&rated_model::rate, 5.0f), batch{1});
  CHECK(rate == 5);
  CHECK(model.rate == 1);
}

TEST_CASE("RUN-5 two hooks feeding one fetch is an error", "[session][run]") {
  rated_model model;
  sw::monitored_session session(model, feeds_rate{1}, feeds_rate_too{{2}});
  CHECK_THROWS_WITH(session.run(batch{}), ContainsSubstring("Same tensor is fed by two hooks.") && ContainsSubstring("Conflict(s): ["));
  CHECK_THROWS_AS(session.run(batch{}), sw::failed_precondition_error);
}

TEST_CASE("RUN-5 a hook and the caller feeding one fetch is an error, and else both feed", "[session][run]") {
  rated_model model;
  sw::monitored_session session(model, feeds_rate{3});
  CHECK_THROWS_WITH(session.run(sw::feed(&rated_model::rate, 1.0f), batch{}),
                    ContainsSubstring("Same tensor is fed by a SessionRunHook and user."));
  CHECK(session.run(sw::feed(&batch::weight, 2), batch{5}).loss == 30);
}

TEST_CASE("RUN-5 a feed whose key is a null pointer is refused before the step", "[session][run]") {
  rated_model model;
  sw::monitored_session session(model);
  float rated_model::* no_member = nullptr;
  CHECK_THROWS_AS(session.run(sw::feed(no_member, 1.0f), batch{}), sw::invalid_argument_error);
  int batch::* no_weight = nullptr;
  CHECK_THROWS_AS(session.run(sw::feed(no_weight, 2), batch{}), sw::invalid_argument_error);
  CHECK(model.steps == 0);
  CHECK(session.run(batch{}).rate_seen == 1);
}

TEST_CASE("RUN-6 RUN-13 if two feeds conflict, nothing runs, and after_run is not called", "[session][run]") {
  rated_model model;
  std::vector<std::string> log;
  sw::monitored_session session(model, log_of_calls{&log, "first"}, feeds_rate{1}, feeds_rate_too{{2}});
  CHECK_THROWS_AS(session.run(batch{}), sw::failed_precondition_error);
  CHECK(log == std::vector<std::string>{"first.before"});
  CHECK(model.steps == 0);
  CHECK(session.global_step() == 0);
  log.clear();
  CHECK_THROWS(session.run(batch{-1}));
  CHECK(log == std::vector<std::string>{"first.before"});
}

TEST_CASE("RUN-7 options are merged: the greater number, and a flag that either sets", "[session][run]") {
  rated_model model;
  sw::run_options seen;
  sw::run_options first{.trace_level = sw::trace_level::software, .timeout_in_ms = 100, .output_partition_graphs = true};
  sw::run_options second{
      .trace_level = sw::trace_level::full, .timeout_in_ms = 50, .inter_op_thread_pool = 2, .output_partition_graphs = false};
  sw::run_options callers{.inter_op_thread_pool = 1, .report_tensor_allocations_upon_oom = true};

  sw::monitored_session session(model, asks_options{first, &seen}, asks_options_too{{second, &seen}});
  session.run(callers, batch{});
  CHECK(seen.trace_level == sw::trace_level::full);
  CHECK(seen.timeout_in_ms == 100);
  CHECK(seen.inter_op_thread_pool == 2);
  CHECK(seen.output_partition_graphs == true);
  CHECK(seen.report_tensor_allocations_upon_oom == true);
}

TEST_CASE("D-10 the caller's options stay unchanged, unset options stay unset, and a run without a time-out has no limit",
          "[session][run]") {
  rated_model model;
  sw::run_options seen;
  const sw::run_options callers{.timeout_in_ms = 0, .inter_op_thread_pool = -1};
  sw::monitored_session session(model, asks_options{{.timeout_in_ms = 10}, &seen});
  session.run(callers, batch{});
  CHECK(callers.timeout_in_ms == 0);
  CHECK(seen.timeout_in_ms == 0);
  CHECK(seen.inter_op_thread_pool == -1);
  CHECK_FALSE(seen.trace_level);
  CHECK_FALSE(seen.output_partition_graphs);
}

TEST_CASE("RUN-8 all hooks of a run share one metadata object, that of the caller if there is one", "[session][run]") {
  rated_model model;
  sw::run_options seen;
  const sw::run_metadata* first = nullptr;
  const sw::run_metadata* second = nullptr;
  sw::monitored_session session(model, asks_options{{}, &seen, &first}, asks_options_too{{{}, &seen, &second}});
  session.run(batch{});
  CHECK(first != nullptr);
  CHECK(first == second);
  sw::run_metadata mine;
  session.run(mine, batch{});
  CHECK(first == &mine);
  CHECK(second == &mine);
}

namespace {

/// A hook that checks that it has only read access to metadata shared with hooks of other sessions.
struct reads_metadata {
  void after_run(auto&, const auto& values) { static_assert(std::is_same_v<decltype(values.metadata()), const sw::run_metadata&>); }
};

/// A raw session that returns true if it may write to the metadata of the run.
struct observing_session {
  using result_type = bool;
  using outcome_type = sw::run_outcome<bool>;

  std::int64_t step = 0;

  outcome_type run(const auto& order) {
    using metadata_type = std::remove_reference_t<decltype(order.metadata())>;
    static_assert(std::is_const_v<metadata_type> != std::remove_cvref_t<decltype(order)>::has_metadata);
    ++step;
    return {!std::is_const_v<metadata_type>, step - 1, step};
  }
  std::int64_t global_step() const { return step; }
  sw::variable_list variables() { return sw::variables({{"global_step", step}}); }
  template<class Projection>
  bool read(const outcome_type& outcome, const Projection&) const {
    return outcome.result;
  }
};

}  // namespace

TEST_CASE("RUN-8 sessions share no metadata that can be written to", "[session][run]") {
  sw::monitored_session session(observing_session{}, reads_metadata{});
  CHECK_FALSE(session.run());  // without observers the metadata is a constant shared by all sessions
  CHECK(session.run(sw::run_options()));
  sw::run_metadata mine;
  CHECK(session.run(mine));
}

TEST_CASE("RUN-9 without hooks feeds and options reach the raw session unchanged", "[session][run]") {
  sw::run_options options;
  int fed_value = 0;
  sw::monitored_session session(listening_session{0, &options, &fed_value});
  CHECK(session.run(sw::run_options{.timeout_in_ms = 5}, sw::feed(std::string("x"), 42)) == 7);
  CHECK(options.timeout_in_ms == 5);
  CHECK(fed_value == 42);
}

TEST_CASE("RUN-11 RUN-14 a stop asked for in before_run lets this run complete", "[session][run]") {
  rated_model model;
  std::vector<std::string> log;
  sw::monitored_session session(model, log_of_calls{&log, "stopper", true}, log_of_calls{&log, "later"});
  CHECK_FALSE(session.should_stop());
  session.run(batch{});
  CHECK(log == std::vector<std::string>{"stopper.before", "later.before", "stopper.after", "later.after"});
  CHECK(session.should_stop());
  CHECK_THROWS_WITH(session.run(batch{}), ContainsSubstring("Run called even after should_stop requested."));
  session.close();
  CHECK(session.should_stop());
}

TEST_CASE("only the hooks chosen by type see a run made with them, and only<> is none", "[session][run]") {
  struct one : log_of_calls {};
  struct two : log_of_calls {};
  rated_model model;
  std::vector<std::string> log;
  sw::monitored_session session(model, one{{&log, "one"}}, two{{&log, "two"}}, feeds_rate{8});
  CHECK(session.run_with<sw::only<two>>(batch{}).rate_seen == 1);
  CHECK(log == std::vector<std::string>{"two.before", "two.after"});
  CHECK(session.run_with<sw::only<>>(batch{}).rate_seen == 1);
  CHECK(log.size() == 2);
  CHECK(session.run(batch{}).rate_seen == 8);
  CHECK(log.size() == 6);
  CHECK(session.global_step() == 3);
}

TEST_CASE("fetches are evaluated in the order in which they are given", "[session][run]") {
  std::vector<int> order;
  const auto fetch_number = [&order](int number) {
    return [&order, number](const rated_model::result&) {
      order.push_back(number);
      return number;
    };
  };
  rated_model model;
  sw::monitored_session session(model);
  CHECK(session.run(sw::fetch(fetch_number(1), fetch_number(2), fetch_number(3)), batch{}) == std::tuple(1, 2, 3));
  CHECK(order == std::vector{1, 2, 3});
}
