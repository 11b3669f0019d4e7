// SPDX-License-Identifier: Apache-2.0
//
// Tests that a session inside `any_session` behaves like the same session without it.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"
#include "support/toy_model.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/any_session.hpp>
#include <stepwell/session/training_session.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
using test::adding_model;
using test::counting_source;
using erased = sw::any_session<adding_model::result, counting_source>;
using numbers = std::vector<std::int64_t>;

namespace {

static_assert(sw::training_session<erased> && sw::steps_from<erased, counting_source> && !sw::steps_from<erased, numbers>);
static_assert(std::is_nothrow_move_constructible_v<erased> && std::is_move_assignable_v<erased> && !std::is_copy_constructible_v<erased>);
static_assert(std::is_constructible_v<erased, sw::monitored_session<sw::model_session<adding_model>>>);
static_assert(std::is_constructible_v<erased, sw::singular_monitored_session<sw::model_session<adding_model>, sw::stop_at_step_hook>>);
static_assert(std::is_constructible_v<erased, std::unique_ptr<sw::monitored_session<sw::model_session<adding_model>>>>);
static_assert(!std::is_constructible_v<erased, sw::monitored_session<sw::model_session<test::counting_model>>>);  // a different result type
static_assert(!std::is_constructible_v<erased, adding_model> && !std::is_constructible_v<erased, int>);
static_assert(!std::is_convertible_v<sw::monitored_session<sw::model_session<adding_model>>, erased>);

/// The loop of the third example. It accepts every session.
template<sw::training_session Session, class Source>
  requires sw::steps_from<Session, Source>
sw::stop_reason fit(Session& session, Source& source, std::int64_t& done) {
  done = 0;
  for ([[maybe_unused]] const auto& step : session.steps(source)) { ++done; }
  session.close();
  return session.stop_reason();
}

/// A class that holds a type-erased session without being a template.
struct trainer {
  explicit trainer(erased given) : session(std::move(given)) {}
  void train_until(std::int64_t step) {
    for (const auto& done : session.steps(source)) {
      if (done.global_step == step) { session.request_stop("the trainer has had enough"); }
    }
  }
  erased session;
  counting_source source = {};
};

struct failing_hook {
  void after_run(auto&, const auto&) { throw sw::out_of_range_error("of a hook"); }
};
struct ended_hook {
  int& ends;
  void end(auto&) { ++ends; }
};

/// The effects of hooks in a training.
struct hook_effects {
  std::string progress;
  std::int64_t steps = 0;
  std::int64_t best_step = 0;
  std::string why;
  float sum = 0;
  bool operator==(const hook_effects&) const = default;
};

/// Trains with a session that `make(options, model, hooks...)` returns. The evaluated distance is least after step 3, at the sum 6.
template<class Make>
hook_effects effects_in(const Make& make) {
  const test::temporary_directory directory;
  hook_effects all;
  adding_model model;
  counting_source source;
  const auto distance = [](const adding_model& now) { return (now.sum - 6) * (now.sum - 6); };
  const auto tested = sw::evaluate_every(1, distance, sw::measure("distance", [](double value) { return value; }));
  sw::training_options options{.checkpoint_dir = directory.path(), .clock = std::make_shared<sw::manual_clock>()};
  auto session =
      make(std::move(options), model, tested, sw::best_checkpoint_hook{tested.value("distance")},
           sw::early_stopping_hook{{.patience = 2, .restore_best = true}, tested.value("distance")},
           sw::progress_hook{{.line_every = 0, .is_terminal = false, .output = [&](std::string_view text) { all.progress += text; }},
                             sw::tag("distance", tested.value("distance"))});
  all.why = fit(session, source, all.steps).text;
  all.best_step = sw::best_checkpoint(directory.path()).value().step;
  all.sum = model.sum;
  return all;
}

}  // namespace

TEST_CASE("an evaluation, the best state, early stopping and progress have the same effects in singular and erased sessions",
          "[session][any_session][singular]") {
  const test::log_capture log;
  const auto make = [](sw::training_options options, adding_model& model, auto... hooks) {
    return sw::monitored_session(std::move(options), model, std::move(hooks)...);
  };
  const auto make_singular = [](sw::training_options options, adding_model& model, auto... hooks) {
    return sw::singular_monitored_session(std::move(options), model, std::move(hooks)...);
  };
  const auto erasing = [](const auto& inner) {
    return [&inner](auto&&... given) { return erased(inner(std::forward<decltype(given)>(given)...)); };
  };
  const auto expected = effects_in(make);
  CHECK(expected.steps == 5);
  CHECK(expected.best_step == 3);
  CHECK(expected.sum == 6);  // restored
  CHECK(expected.why.starts_with("early stopping: the best value of distance was 0 at step 3"));
  CHECK(expected.progress.find("distance 16") != std::string::npos);
  CHECK(effects_in(make_singular) == expected);
  CHECK(effects_in(erasing(make)) == expected);
  CHECK(effects_in(erasing(make_singular)) == expected);
}

TEST_CASE("a loop written once for every session runs on an erased one as on the session itself", "[session][any_session]") {
  std::int64_t done = 0;
  const auto run = [&](auto wrap) {
    adding_model model;
    counting_source source;
    auto session =
        wrap(sw::monitored_session(model, sw::stop_at_step_hook{{.last_step = 5}}, sw::nan_tensor_hook{&adding_model::result::loss}));
    const auto why = fit(session, source, done);
    CHECK(done == 5);
    CHECK(why.cause == sw::stop_cause::last_step);
    CHECK(session.should_stop());
    CHECK(session.is_closed());
    CHECK(source.next == 6);
    return model.sum;
  };
  CHECK(run([](auto session) { return session; }) == 15);
  CHECK(run([](auto session) { return erased(std::move(session)); }) == 15);
}

TEST_CASE("a class may hold a session with any hooks, and move", "[session][any_session]") {
  adding_model one;
  adding_model other;
  std::vector<trainer> trainers;
  trainers.emplace_back(erased(sw::monitored_session(one, sw::stop_at_step_hook{{.last_step = 3}})));
  trainers.emplace_back(erased(std::make_unique<sw::singular_monitored_session<sw::model_session<adding_model>>>(other)));
  for (auto& trainer : trainers) { trainer.train_until(4); }
  CHECK(trainers[0].session.global_step() == 3);
  CHECK(trainers[1].session.global_step() == 4);
  CHECK(trainers[1].session.stop_reason().text == "the trainer has had enough");
  CHECK(trainers[1].session.metrics().creations == 1);
  for (auto& trainer : trainers) { trainer.session.close(); }
}

TEST_CASE("single batches run, kept ones and ones made on the spot", "[session][any_session]") {
  adding_model model;
  erased session(sw::monitored_session{model});
  const std::int64_t kept = 4;
  CHECK(session.run(kept).loss == 4);
  CHECK(session.run(5).batch == 5);
  CHECK(session.global_step() == 2);
  session.close();
  CHECK_THROWS_AS(session.run(6), sw::failed_precondition_error);
  session.close();  // a second close does nothing (decision D-15)
}

TEST_CASE("any range is a source of an erased session, too", "[session][any_session]") {
  adding_model model;
  numbers batches{1, 2, 3};
  sw::any_session<adding_model::result, numbers> session(sw::monitored_session{model});
  std::int64_t done = 0;
  CHECK(fit(session, batches, done).cause == sw::stop_cause::end_of_data);
  CHECK(done == 3);

  sw::any_session<adding_model::result, numbers> next(sw::monitored_session{model});
  std::int64_t mine = 7;
  CHECK(next.run(mine).batch == 7);
  CHECK(next.run(8).batch == 8);
}

TEST_CASE("an erased session may move during a loop over its steps", "[session][any_session]") {
  adding_model model;
  counting_source source;
  erased first(sw::monitored_session(model, sw::stop_at_step_hook{{.last_step = 4}}));
  erased second(sw::monitored_session{model});
  for (const auto& step : first.steps(source)) {
    if (step.global_step == 2) { second = std::move(first); }
  }
  CHECK(second.global_step() == 4);
  CHECK(second.should_stop());
}

TEST_CASE("D-17 D-18 an erased session left behind closes, and with() knows its hooks' failures from the end of the data",
          "[session][any_session]") {
  adding_model model;
  int ends = 0;
  { const erased session(sw::monitored_session(model, ended_hook{ends})); }
  CHECK(ends == 1);
  erased failing(sw::monitored_session(model, ended_hook{ends}, failing_hook{}));
  CHECK_THROWS_AS(sw::with(failing, [](auto& session) { session.run(1); }), sw::out_of_range_error);
  CHECK(ends == 1);
  erased ending(sw::monitored_session(model, ended_hook{ends}));
  CHECK_NOTHROW(sw::with(ending, [](auto&) { throw sw::out_of_range_error("no more batches"); }));
  CHECK(ends == 2);
  CHECK(ending.is_closed());
}

TEST_CASE("no session at all is refused", "[session][any_session]") {
  CHECK_THROWS_AS(erased(std::unique_ptr<sw::monitored_session<sw::model_session<adding_model>>>()), sw::invalid_argument_error);
}

TEST_CASE("an erased training session saves and resumes as itself", "[session][any_session]") {
  test::session_rig rig;
  {
    trainer first{erased(rig.start())};
    first.train_until(4);
    first.session.close();
    CHECK(first.session.metrics().creations == 1);
  }
  CHECK(rig.steps() == "0 2 4");
  rig.model = {};
  auto options = rig.options();
  options.resume_after_stop = true;  // the first trainer has requested a stop
  trainer second{erased(sw::monitored_training_session(rig.model, options))};
  CHECK(second.session.global_step() == 4);
  second.train_until(6);
  second.session.close();
  CHECK(test::same(rig.model, test::model_after(6)));
}

TEST_CASE("each function of a session that was moved from throws, and close and abandon leave the moved session alone",
          "[session][any_session]") {
  adding_model model;
  counting_source source;
  const std::int64_t batch = 1;
  const auto is_refused = [](auto call) {
    std::string message;
    try {
      call();
    } catch (const sw::failed_precondition_error& failure) { message = failure.what(); }
    CHECK(message.find("was moved from; use the session object") != std::string::npos);
  };
  const auto check = [&](auto& from) {
    is_refused([&] { static_cast<void>(from.run(batch)); });
    is_refused([&] { static_cast<void>(from.steps(source)); });
    is_refused([&] { static_cast<void>(from.next(source)); });
    is_refused([&] { static_cast<void>(from.run_all(source)); });
    is_refused([&] { static_cast<void>(from.should_stop()); });
    is_refused([&] { from.request_stop(); });
    is_refused([&] { static_cast<void>(from.stop_reason()); });
    is_refused([&] { static_cast<void>(from.global_step()); });
    is_refused([&] { static_cast<void>(from.metrics()); });
    is_refused([&] { static_cast<void>(from.watched()); });
    is_refused([&] { static_cast<void>(from.is_closed()); });
    is_refused([&] { from.close(); });
    from.abandon(nullptr);
    CHECK_FALSE(from.came_from_hook(nullptr));
  };
  sw::monitored_session first(model);
  sw::monitored_session second(std::move(first));
  check(first);  // NOLINT(bugprone-use-after-move)
  is_refused([&] { static_cast<void>(first.snapshot()); });
  is_refused([&] { first.checkpoint_now(); });
  is_refused([&] { static_cast<void>(first.raw_session()); });
  is_refused([&] { static_cast<void>(first.subject()); });
  is_refused([&] { static_cast<void>(first.restored_from()); });
  is_refused([&] { first.run_step_fn([](auto&) {}); });
  is_refused([&] { sw::with(first, [](auto&) {}); });
  CHECK(second.run(batch).loss == 1);
  erased third(std::move(second));
  erased fourth(std::move(third));
  check(third);  // NOLINT(bugprone-use-after-move)
  CHECK(fourth.next(source)->global_step == 2);
  third = std::move(fourth);
  CHECK(third.run(batch).loss == 3);
}
