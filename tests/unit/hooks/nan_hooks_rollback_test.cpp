// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::counting_source;

namespace {

/// A model that returns NaN at one batch until its rate is changed.
struct fragile_model : adding_model {
  std::int64_t bad_batch = 5;
  float rate = 1;

  result step(const std::int64_t& batch) {
    auto made = adding_model::step(batch);
    if (batch == bad_batch && rate == 1) { sum = made.loss = std::numeric_limits<float>::quiet_NaN(); }
    return made;
  }
};

struct rollback_rig : sw::test::session_rig {
  fragile_model fragile;

  auto options() const {
    sw::training_options made{.checkpoint_dir = directory.path(),
                              .saves = {.save_steps = 2, .saver = {.max_to_keep = sw::none}},
                              .summaries = {.save_steps = sw::none},
                              .step_counter = {.every_n_steps = sw::none}};
    made.saves.saver.file_system = files;
    made.saves.saver.pool = pool;
    made.retry.initial_backoff = 0;
    made.clock = clock;
    return made;
  }
  template<class Answer>
  auto start(Answer answer, sw::rollback_on_nan_options given = {}) {
    return sw::monitored_training_session(fragile, options(), sw::rollback_on_nan_hook(given, &fragile_model::result::loss, answer),
                                          sw::stop_at_step_hook{{.last_step = 8}});
  }
};

/// Sets the rate when a session is created, as `reduce_on_plateau_hook` does.
struct rate_hook {
  fragile_model* model;
  void after_create_session(auto& /*session*/, auto& /*threads*/) { model->rate = 1; }
};

template<class Session>
std::vector<std::int64_t> batches_of(Session& session, counting_source& source) {
  std::vector<std::int64_t> seen;
  for (const auto& step : session.steps(source)) { seen.push_back(step.value.batch); }
  return seen;
}

}  // namespace

TEST_CASE("a loop goes back to the newest checkpoint and past the batch that did it", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  auto session = rig.start(sw::skip_batch{});
  counting_source source;
  CHECK(batches_of(session, source) == std::vector<std::int64_t>{1, 2, 3, 4, 6, 7, 8, 9});
  CHECK(rig.fragile.sum == 1 + 2 + 3 + 4 + 6 + 7 + 8 + 9);
  CHECK(session.metrics().rollbacks == 1);
  CHECK(log.contains(sw::log_level::warning, "rolling back to the newest checkpoint and skipping this batch"));
  session.close();
  CHECK(sw::test::newest_in(rig.directory.path()).model.sum == rig.fragile.sum);
}

TEST_CASE("a rollback may change the model, and repeats the same batches", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  rig.fragile.bad_batch = 6;
  auto session = rig.start([&] { rig.fragile.rate = 0.5f; });
  counting_source source;
  CHECK(batches_of(session, source) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 5, 6, 7, 8});
  CHECK(session.global_step() == 8);
  session.close();
}

TEST_CASE("the messages of a rollback have the name of the value", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  auto session =
      sw::monitored_training_session(rig.fragile, rig.options(), sw::stop_at_step_hook{{.last_step = 8}},
                                     sw::rollback_on_nan_hook(sw::tag("generator loss", &fragile_model::result::loss), sw::skip_batch{}));
  counting_source source;
  CHECK(batches_of(session, source).size() == 8);
  CHECK(log.contains(sw::log_level::warning, "generator loss is nan at step 5"));
  session.close();
}

TEST_CASE("a skipped last batch of the data ends the training as the end of the data", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  auto session =
      sw::monitored_training_session(rig.fragile, rig.options(), sw::rollback_on_nan_hook(&fragile_model::result::loss, sw::skip_batch{}));
  auto batches = sw::data::counter({.count = 6});  // 0 to 5; batch 5 is bad
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  CHECK(session.global_step() == 5);
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  session.close();
}

TEST_CASE("the function of a rollback changes the model after the hooks have begun", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  auto session =
      sw::monitored_training_session(rig.fragile, rig.options(), sw::stop_at_step_hook{{.last_step = 8}}, rate_hook{&rig.fragile},
                                     sw::rollback_on_nan_hook(&fragile_model::result::loss, [&] { rig.fragile.rate = 0.5f; }));
  counting_source source;
  CHECK(batches_of(session, source) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(session.metrics().rollbacks == 1);
  session.close();
}

TEST_CASE("a rollback in the last step does not end the training before its last step", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  rig.fragile.bad_batch = 8;
  auto session = rig.start([&] { rig.fragile.rate = 0.5f; });
  counting_source source;
  CHECK(batches_of(session, source) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 7, 8});
  CHECK(session.global_step() == 8);
  CHECK(session.stop_reason().text == "step 8 is done");
  session.close();
}

TEST_CASE("a stop that another hook requested in the last step is kept in a rollback", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  rig.fragile.bad_batch = 8;
  auto stop_too = sw::every_n_steps(1, [](auto& context) {
    if (context.global_step() == 8) { context.request_stop("enough"); }
  });
  auto session = sw::monitored_training_session(rig.fragile, rig.options(), sw::stop_at_step_hook{{.last_step = 8}}, std::move(stop_too),
                                                sw::rollback_on_nan_hook(&fragile_model::result::loss, [&] { rig.fragile.rate = 0.5f; }));
  counting_source source;
  CHECK(batches_of(session, source) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7});
  CHECK(session.global_step() == 6);
  CHECK(session.stop_reason().text == "enough");
  session.close();
}

TEST_CASE("stop_at_epoch stops in the next epoch if the last batch of its epoch is skipped", "[hooks][rollback][stop_at_epoch]") {
  struct epoch_model {
    struct result {
      double loss;
    };
    double sum = 0;
    result step(const std::vector<double>& batch) { return {sum += batch[0]}; }
    sw::variable_list variables() { return sw::variables({{"sum", sum}}); }
  };
  const sw::test::log_capture log;
  rollback_rig rig;
  epoch_model model;
  auto batches =
      sw::data::batches_in_order(std::vector<double>{1, 2, 3, std::numeric_limits<double>::quiet_NaN()}, {.batch_size = 1, .epochs = 3});
  auto session = sw::monitored_training_session(model, rig.options(), sw::stop_at_epoch(1),
                                                sw::rollback_on_nan_hook(&epoch_model::result::loss, sw::skip_batch{}));
  CHECK(session.run_all(batches).steps == 5);  // three, one again, and the first one of the second epoch
  CHECK(model.sum == 1 + 2 + 3 + 1);
  CHECK(session.stop_reason().text == "epoch 1 is done");
  session.close();
}

TEST_CASE("a state gone bad is never saved, also at the step where a checkpoint is due", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  rig.fragile.bad_batch = 4;  // a checkpoint is due at step 4
  auto session = rig.start(sw::skip_batch{});
  counting_source source;
  CHECK(batches_of(session, source) == std::vector<std::int64_t>{1, 2, 3, 3, 5, 6, 7, 8, 9});
  session.close();
  CHECK(rig.fragile.sum == 1 + 2 + 3 + 5 + 6 + 7 + 8 + 9);
}

TEST_CASE("an answer that does not help ends in nan_loss_error, and the bad state is not the last one saved", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  int answers = 0;
  auto session = rig.start([&] { ++answers; }, {.max_rollbacks = 3});
  counting_source source;
  CHECK_THROWS_WITH(batches_of(session, source), ContainsSubstring("NaN loss during training.") && ContainsSubstring("after 3 rollbacks"));
  CHECK(answers == 3);
  session.close();
  CHECK(sw::test::newest_in(rig.directory.path()).step == 4);
}

TEST_CASE("in run there is no batch to leave out: the state is restored and the failure thrown", "[hooks][rollback]") {
  const sw::test::log_capture log;
  rollback_rig rig;
  auto session = rig.start(sw::skip_batch{});
  for (std::int64_t batch = 1; batch <= 4; ++batch) { session.run(batch); }
  CHECK_THROWS_AS(session.run(std::int64_t{5}), sw::aborted_error);
  CHECK(session.global_step() == 4);
  CHECK(rig.fragile.sum == 1 + 2 + 3 + 4);
  CHECK(session.run(std::int64_t{6}).loss == 16);
  session.close();
}

TEST_CASE("an answer that is no function is refused", "[hooks][rollback]") {
  CHECK_THROWS_AS(sw::rollback_on_nan_hook(&fragile_model::result::loss, std::function<void()>()), sw::invalid_argument_error);
}
