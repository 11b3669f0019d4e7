// SPDX-License-Identifier: Apache-2.0
//
// Every log message of a session with a name begins with the name, in blocking and in awaited sessions.
#include "support/both_ways.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/data/queue.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/global_step_waiter_hook.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/threads/coordinator.hpp>
#include <stepwell/threads/queue_runner.hpp>

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using namespace sw::test;
using sw::log_level;

namespace {

/// A model whose loss does not improve.
struct flat_model {
  struct result {
    double loss = 1;
  };
  double rate = 1;
  std::int64_t steps = 0;
  std::int64_t fails_at = -1;

  result step(const std::vector<int>& /*batch*/) {
    if (steps == fails_at) {
      fails_at = -1;
      throw sw::aborted_error("the device is away");
    }
    ++steps;
    return {};
  }
  sw::variable_list variables() { return sw::variables({{"rate", rate}, {"steps", steps}}); }
};

/// An endless source that cannot seek.
struct blind_source {
  std::vector<int> batch = {1};
  const std::vector<int>* peek() const { return &batch; }
  void advance() {}
};

/// A source that can be saved while it is used, but not afterwards.
struct forgetful_source : blind_source {
  mutable bool is_lost = false;
  std::uint64_t position() const {
    if (is_lost) { throw sw::unavailable_error("the file is away"); }
    return 0;
  }
  void seek(std::uint64_t /*position*/) {}
};

/// Starts a thread that logs.
struct logging_thread_hook {
  void after_create_session(auto& /*session*/, sw::coordinator& threads) {
    threads.start_thread("reader", [](const std::stop_token&) { sw::log_info("the reader begins"); });
  }
};

struct named_rig {
  session_way way = GENERATE(session_way::blocking, session_way::awaited);
  temporary_directory directory;
  std::shared_ptr<sw::manual_clock> clock = std::make_shared<sw::manual_clock>();
  flat_model model;
  sw::training_options options = {.name = "trial-7",
                                  .checkpoint_dir = directory.path(),
                                  .summaries = {.save_steps = sw::none},
                                  .step_counter = {.every_n_steps = sw::none},
                                  .retry = {.initial_backoff = 0},
                                  .clock = clock};
  std::unique_ptr<log_capture> log = std::make_unique<log_capture>();

  /// Trains four more steps, or until the end of `source`.
  template<class... Hooks>
  void train_with(auto source, Hooks... hooks) {
    train(way, model, options, source, 0, std::move(hooks)..., sw::stop_at_step_hook{{.num_steps = 4}});
  }
  /// Checks that `text` was logged, and that all messages begin with the name of the session.
  void check_named(log_level level, const std::string& text) const {
    CAPTURE(way == session_way::awaited);
    CHECK(log->contains(level, text));
    for (const auto& message : log->messages()) {
      CAPTURE(message.text);
      CHECK(message.text.starts_with("[trial-7] "));
    }
  }
};

auto shuffled(std::uint64_t seed) { return sw::data::shuffled_batches(std::vector<int>(10, 1), {.batch_size = 2, .seed = seed}); }

}  // namespace

TEST_CASE("hooks that log during a run log with the name of the session", "[training][log]") {
  named_rig rig;
  SECTION("a reduced rate") {
    const sw::reduce_on_plateau_hook plateau{{.plateau = {.factor = 0.5, .patience = 1}}, &flat_model::rate, &flat_model::result::loss};
    rig.train_with(blind_source(), plateau);
    rig.check_named(log_level::info, "the rate is reduced from 1 to 0.5");
  }
  SECTION("a wait for other sessions") {
    const sw::global_step_waiter_hook waiter{{.wait_until_step = 9, .max_wait_secs = 0}};
    CHECK_THROWS_AS(rig.train_with(blind_source(), waiter), sw::deadline_exceeded_error);
    rig.check_named(log_level::info, "Waiting for global step 9");
  }
  SECTION("the progress of an evaluation") {
    rig.train_with(blind_source(), sw::stop_after_n_evals_hook{{.num_evals = 2}});
    rig.check_named(log_level::info, "Evaluation [2/2]");
  }
  SECTION("an evaluation in the loop, and the best checkpoint") {
    const auto tested =
        sw::evaluate_every(2, [](const flat_model& now) { return now.rate; }, sw::measure("rate", [](double value) { return value; }));
    rig.train_with(blind_source(), tested, sw::best_checkpoint_hook{tested.value("rate")});
    rig.check_named(log_level::info, "evaluation at step 2: rate = 1");
    rig.check_named(log_level::info, "best: rate 1 at step 2");
  }
  SECTION("an evaluation beside the training that logs") {
    flat_model other;
    const auto rate_of = [](const flat_model& now) {
      sw::log_info("on the thread of the evaluation");
      return now.rate;
    };
    rig.train_with(blind_source(),
                   sw::evaluate_every(2, sw::beside(other), rate_of, sw::measure("rate", [](double value) { return value; })));
    rig.check_named(log_level::info, "on the thread of the evaluation");
  }
  SECTION("a summary with values that are not finite") {
    rig.options.summaries.save_steps = 1;
    rig.train_with(blind_source(), sw::summaries([](sw::summary::writer& out, const auto&, const auto&, std::int64_t step) {
                     const std::array values = {1.0F, std::numeric_limits<float>::quiet_NaN()};
                     out.add_histogram("weights", values, step);
                   }));
    rig.check_named(log_level::warning, "1 of the 2 values of histogram weights");
  }
}

TEST_CASE("a loop logs problems of its source with the name of the session", "[training][log]") {
  named_rig rig;
  SECTION("a source that cannot seek, after a resume") {
    rig.train_with(blind_source());
    rig.train_with(blind_source());
    rig.check_named(log_level::warning, "cannot seek: after step 4");
  }
  SECTION("a source that cannot seek, after a source that could") {
    rig.train_with(shuffled(5));
    rig.train_with(blind_source());
    rig.check_named(log_level::warning, "cannot seek to position ");
  }
  SECTION("other data than before") {
    rig.train_with(shuffled(5));
    rig.train_with(shuffled(6));
    rig.check_named(log_level::warning, "other data (10 examples, seed 6)");
  }
  SECTION("a source that cannot be rewound") {
    rig.options.on_unseekable = sw::unseekable_policy::skip;
    rig.model.fails_at = 2;
    rig.train_with(blind_source());
    rig.check_named(log_level::warning, "the state went from step 2 to 0");
  }
  SECTION("a source whose position cannot be read at the end") {
    forgetful_source source;
    auto lose = sw::every_n_steps(4, [&] { source.is_lost = true; });
    rig.options.checkpoint_dir.clear();
    train(rig.way, rig.model, rig.options, source, 0, std::move(lose), sw::stop_at_step(4));
    rig.check_named(log_level::error, "could not read the position of the source");
  }
}

TEST_CASE("an awaited step logs that its source cannot be rewound with the name of the session", "[training][log][async]") {
  struct awaited_flat_model : flat_model {
    boost::asio::awaitable<result> step(const std::vector<int>& batch) { co_return flat_model::step(batch); }
  };
  const log_capture log;
  awaited_flat_model model;
  model.fails_at = 2;
  blind_source source;
  const sw::training_options options{.name = "trial-7", .retry = {.initial_backoff = 0}, .on_unseekable = sw::unseekable_policy::skip};
  train_awaited(model, options, source, 0, sw::stop_at_step(4));
  CHECK(log.contains(log_level::warning, "[trial-7] the state went from step 2 to 0"));
}

TEST_CASE("the threads of a session log with its name", "[training][log]") {
  named_rig rig;
  SECTION("a queue runner that fails") {
    sw::data::fifo_queue<int> images({.capacity = 1, .name = "images"});
    const auto fail = [](const std::stop_token&) { throw sw::internal_error("no camera"); };
    rig.options.queue_runners = {std::make_shared<sw::queue_runner>(images, std::vector{sw::enqueue_op{.name = "camera", .run = fail}})};
    blind_source source;
    CHECK_THROWS_WITH(train(rig.way, rig.model, rig.options, source, 0), ContainsSubstring("no camera"));
    rig.check_named(log_level::info, "Error reported to Coordinator: no camera");
  }
  SECTION("a thread of a hook") {
    rig.train_with(blind_source(), logging_thread_hook());
    rig.check_named(log_level::info, "the reader begins");
  }
}

TEST_CASE("options are checked, and a failed close is logged, with the name of the session", "[training][log]") {
  named_rig rig;
  SECTION("two periods") {
    rig.options.summaries.save_secs = 1;
    rig.options.summaries.save_steps = 1;
    rig.train_with(blind_source());
    rig.check_named(log_level::warning, "both summaries.save_secs and summaries.save_steps");
  }
  SECTION("a session that is destroyed without a close") {
    if (rig.way == session_way::awaited) { return; }  // it is abandoned, and closes nothing
    {
      auto session = sw::monitored_training_session(rig.model, rig.options, sw::at_end([] { throw sw::internal_error("no space"); }));
    }
    rig.check_named(log_level::error, "closing it failed: ");
  }
}

TEST_CASE("hooks of an asynchronous session log with its name at the creation", "[training][log][async]") {
  temporary_directory best;
  named_rig rig;
  const auto train_anew = [&] {
    flat_model model;
    rig.options.checkpoint_dir.clear();
    blind_source source;
    train_awaited(model, rig.options, source, 0, sw::best_checkpoint_hook{{.directory = best.path()}, &flat_model::result::loss},
                  sw::stop_at_step(2));
  };
  train_anew();
  train_anew();
  rig.check_named(log_level::warning, "this training begins anew, and the directory holds the best state");
}

TEST_CASE("a session of either kind logs durable checkpoints at most once in 10 s, and the last one", "[training][log]") {
  named_rig rig;
  rig.options.saves.save_steps = 1;
  blind_source source;
  auto tick = sw::every_n_steps(1, [&] { rig.clock->advance(1s); });
  train(rig.way, rig.model, rig.options, source, 0, std::move(tick), sw::stop_at_step(30));
  std::size_t saved = 0;
  for (const auto& message : rig.log->messages()) { saved += message.text.find("] saved " + rig.directory.path()) != std::string::npos; }
  CHECK(saved >= 2);
  CHECK(saved <= 5);
  rig.check_named(log_level::info, "saved " + rig.directory.path() + "/model.ckpt-30, ");
}
