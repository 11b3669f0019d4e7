// SPDX-License-Identifier: Apache-2.0
//
// Training sessions of a group, whose processes are threads of this one.
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/mean_model.hpp"
#include "support/temporary_directory.hpp"
#include "support/thread_group.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/io/fenced_directory.hpp>
#include <stepwell/metrics/metrics.hpp>
#include <stepwell/protocol/run_ending.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <exception>
#include <functional>
#include <latch>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

const auto all_examples = mean_examples(50);

auto batches_of(const std::shared_ptr<sw::group>& group, std::uint64_t epochs = 4) {
  return sw::data::shuffled_batches(sw::parts_of(all_examples, group), {.batch_size = 8, .seed = 3, .epochs = epochs});
}

/// Throws the failure of a rank, or an error that no test expects if the rank has none.
void rethrow(const std::exception_ptr& failure) {
  if (!failure) { throw std::logic_error("this rank has not failed"); }
  std::rethrow_exception(failure);
}

sw::training_options options_of(const std::shared_ptr<sw::group>& group, const std::string& directory) {
  sw::training_options options{.summaries = {.save_steps = sw::none},
                               .step_counter = {.every_n_steps = sw::none},
                               .max_wait_secs = 20,
                               .retry = {.initial_backoff = 0},
                               .group = group};
  if (!directory.empty()) {
    options.checkpoint_dir = directory;
    options.saves.save_steps = 5;
    options.saves.saver.max_to_keep = sw::none;
  }
  return options;
}

/// The weights after each step, as each rank has seen them. A step that is repeated after a recovery replaces its predecessor.
class record {
public:
  void add(int rank, std::int64_t step, double weight) {
    const std::lock_guard lock(mutex_);
    weights_[rank][step] = weight;
  }
  [[nodiscard]] std::map<std::int64_t, double> of(int rank) const {
    const auto found = weights_.find(rank);
    return found == weights_.end() ? std::map<std::int64_t, double>() : found->second;
  }

private:
  std::mutex mutex_;
  std::map<int, std::map<std::int64_t, double>> weights_;
};

using change = std::function<void(mean_model&, int rank)>;

/// Trains in a group of `size` threads. Returns the weights of each rank.
void train(thread_job& job, record& seen, const std::string& directory, std::int64_t last_step, const change& prepare = {}) {
  job.run_well(
      [&](const std::shared_ptr<sw::group>& group) {
        const int rank = group->rank();
        mean_model model(group);
        if (prepare) { prepare(model, rank); }
        auto batches = batches_of(group);
        auto session = sw::monitored_training_session(model, options_of(group, directory), sw::stop_at_step(last_step));
        for (const auto& step : session.steps(batches)) { seen.add(rank, step.global_step, step.value.weight); }
        session.close();
      },
      {.parts = 4});
}

std::map<std::int64_t, double> weights_alone(std::int64_t last_step) {
  const temporary_directory directory;
  thread_job alone(1);
  record seen;
  train(alone, seen, directory.path(), last_step);
  return seen.of(0);
}

/// Sums over the processes after each step, and merges their metric.
struct counting_hook {
  std::shared_ptr<sw::group> group;
  std::vector<double>* means;
  sw::metrics::mean mine = {};

  void after_run(auto& context, const auto& /*values*/) {
    mine.update(static_cast<double>(group->rank()) + static_cast<double>(context.global_step()));
    double processes = 1;
    group->sum(processes);
    means->push_back(group->merged(mine).value() + processes);  // checked at the end: assertions belong to one thread
  }
};

/// Uses the group before each step.
struct early_hook {
  std::shared_ptr<sw::group> group;
  std::function<void(sw::group&)> use;
  void before_run(auto& /*context*/) { use(*group); }
};

/// Gives the signals of its session to the test.
struct signals_hook {
  std::shared_ptr<sw::session_signals>* signals;
  void after_create_session(auto& session, auto& /*threads*/) { *signals = session.signals(); }
};

/// Fails once, after step 20.
struct failing_hook {
  bool fails;
  void after_run(auto& context, const auto& /*values*/) {
    if (context.global_step() == 20 && std::exchange(fails, false)) { throw sw::unavailable_error("the device was lost"); }
  }
};

/// Keeps the examples of the last step.
struct counting_model : mean_model {
  using mean_model::mean_model;

  result step(const std::vector<sw::batch_part<examples>>& parts) {
    const auto made = mean_model::step(parts);
    last.clear();
    for (const auto& part : parts) { last.insert(last.end(), part.batch.begin(), part.batch.end()); }
    return made;
  }

  examples last;
};

/// Has a value that is summed over the processes whenever it is read.
struct summing_model : mean_model {
  using mean_model::mean_model;
  double over_all() const {
    double processes = 1;
    group->sum(processes);
    return processes;
  }
};

/// Advances a manual clock while all ranks of `job` wait for each other.
class ticking {
public:
  ticking(const thread_job& job, sw::manual_clock& clock)
      : thread_([&job, &clock](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            job.all_are_waiting() && clock.pending() > 0 ? clock.advance(std::chrono::milliseconds(10)) : std::this_thread::yield();
          }
        }) {}

private:
  std::jthread thread_;
};

/// How a rank of a group has ended.
struct ended_rank {
  std::int64_t step = 0;
  sw::stop_reason why = {};
};

/// Trains three ranks, of which rank 2 ends with step 7: by a request, or because its data ends. The ranks in `losing` lose the group in the last
/// sum of rank 2. A lost process would be awaited longer than this test takes.
std::map<int, ended_rank> train_with_loss_in_last_sum(const std::string& directory, bool is_request, const std::set<int>& losing,
                                                      record& seen) {
  thread_job job(3);
  const auto clock = std::make_shared<sw::manual_clock>();
  std::mutex mutex;
  std::map<int, ended_rank> ended;
  std::set<int> to_lose = losing;
  std::atomic<bool> is_ending = false;
  job.after_sum = [&](int rank, sw::dtype type) {
    if (!is_ending || type != sw::dtype::int64) { return; }  // the sums of the model are doubles, the causes of an end are integers
    const std::lock_guard lock(mutex);
    if (to_lose.erase(rank) > 0) { throw sw::unavailable_error("the connections were lost"); }
  };
  const ticking ticks(job, *clock);
  job.run_well(
      [&](const std::shared_ptr<sw::group>& group) {
        const int rank = group->rank();
        mean_model model(group);
        auto options = options_of(group, directory);
        options.clock = clock;
        options.max_wait_secs = 600;
        auto batches = batches_of(group, rank == 2 && !is_request ? 1 : 2);
        auto session = sw::monitored_training_session(model, options);
        std::int64_t done = 0;
        for (const auto& step : session.steps(batches)) {
          done = step.global_step;
          seen.add(rank, done, step.value.weight);
          if (rank != 2 || done != 7) { continue; }
          is_ending = true;
          if (is_request) { session.request_stop("enough"); }
        }
        {
          const std::lock_guard lock(mutex);
          ended[rank] = {done, session.stop_reason()};
        }
        session.close();
      },
      {.patience_secs = 10'000, .parts = 4});
  return ended;
}

}  // namespace

TEST_CASE("a group of any size has the same bits after each step and in its checkpoints as one process") {
  const auto expected = weights_alone(20);
  REQUIRE(expected.size() == 20);
  const int size = GENERATE(2, 3, 4);
  const temporary_directory directory;
  thread_job job(size);
  record seen;
  train(job, seen, directory.path(), 20);
  for (int rank = 0; rank < size; ++rank) { CHECK(seen.of(rank) == expected); }
  CHECK(steps_in(directory.path()) == "0 5 10 15 20");
}

TEST_CASE("the processes of a group need one collective operation for each step") {
  const temporary_directory directory;
  int more = 0;
  const auto operations_of = [&](std::int64_t steps) {
    thread_job job(2);
    record seen;
    train(job, seen, "", steps);
    return job.operations.load();
  };
  more = operations_of(20) - operations_of(10);
  CHECK(more == 2 * 10);
}

TEST_CASE("a group continues a training that another number of processes began") {
  const auto expected = weights_alone(25);
  const temporary_directory directory;
  record seen;
  std::int64_t last = 0;
  for (const int size : {4, 2, 1, 3, 4}) {
    thread_job job(size);
    train(job, seen, directory.path(), last += 5);
  }
  CHECK(seen.of(0) == expected);
}

TEST_CASE("each example is used once in each epoch, with losses, stops, and other numbers of processes") {
  const temporary_directory directory;
  std::mutex mutex;
  std::map<std::int64_t, std::map<int, examples>> used;  // by step and rank; a step that is repeated replaces its predecessor
  const auto train_until = [&](int size, std::int64_t last_step, bool is_killed) {
    thread_job job(size);
    return job.run(
        [&](const std::shared_ptr<sw::group>& group) {
          const int rank = group->rank();
          counting_model model(group);
          if (rank == size / 2) {
            model.before_sum = [calls = 0]() mutable {
              if (++calls == 3) { throw sw::unavailable_error("the device was lost"); }
            };
          }
          auto batches = batches_of(group);
          auto options = options_of(group, directory.path());
          options.resume_after_stop = true;  // the next start continues
          auto session = sw::monitored_training_session(model, options);
          for (const auto& step : session.steps(batches)) {
            {
              const std::lock_guard lock(mutex);
              used[step.global_step][rank] = model.last;
            }
            if (step.global_step != last_step || rank != size - 1) { continue; }
            if (is_killed) { throw std::runtime_error("killed"); }
            session.request_stop("enough");
          }
          session.close();
        },
        {.parts = 4});
  };
  const auto ends_well = [](const auto& failures) { return std::ranges::all_of(failures, [](const auto& one) { return one == nullptr; }); };
  CHECK(ends_well(train_until(4, 6, false)));
  CHECK(ends_well(train_until(2, 11, false)));
  CHECK_FALSE(ends_well(train_until(1, 17, true)));
  CHECK(ends_well(train_until(3, 22, false)));
  CHECK(ends_well(train_until(4, 100, false)));

  auto expected = all_examples;
  std::ranges::sort(expected);
  REQUIRE(used.size() == 28);  // 4 epochs of 7 batches
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    examples of_epoch;
    for (std::int64_t step = 7 * epoch + 1; step <= 7 * epoch + 7; ++step) {
      for (const auto& [rank, some] : used.at(step)) { of_epoch.insert(of_epoch.end(), some.begin(), some.end()); }
    }
    std::ranges::sort(of_epoch);
    CHECK(of_epoch == expected);
  }
}

TEST_CASE("a transient failure of any process makes the whole group continue from the newest checkpoint") {
  const auto expected = weights_alone(20);
  const int failing = GENERATE(0, 1, 2);
  const temporary_directory directory;
  thread_job job(3);
  record seen;
  train(job, seen, directory.path(), 20, [&](mean_model& model, int rank) {
    if (rank != failing) { return; }
    model.before_sum = [calls = 0]() mutable {
      if (++calls == 8) { throw sw::unavailable_error("the device was lost"); }
    };
  });
  for (int rank = 0; rank < 3; ++rank) { CHECK(seen.of(rank) == expected); }
}

TEST_CASE("a group without a checkpoint recovers to the state that rank 0 has kept") {
  const auto expected = weights_alone(20);
  thread_job job(2);
  record seen;
  train(job, seen, "", 20, [&](mean_model& model, int rank) {
    if (rank != 1) { return; }
    model.weight = 7;  // rank 0 sends its own value
    model.before_sum = [calls = 0]() mutable {
      if (++calls == 8) { throw sw::unavailable_error("the device was lost"); }
    };
  });
  CHECK(seen.of(0) == expected);
  CHECK(seen.of(1) == expected);
}

TEST_CASE("a stop of any process ends all processes of a group at the same step, which is saved once, and a restart does no step") {
  const auto expected = weights_alone(20);
  const int stopping = GENERATE(0, 1, 2);
  const std::int64_t at = GENERATE(5, 7);  // the period saves step 5
  CAPTURE(stopping, at);
  const temporary_directory directory;
  std::mutex mutex;
  std::map<int, std::int64_t> last;
  std::map<int, sw::stop_reason> why;
  record seen;
  const auto train_once = [&] {
    thread_job job(3);
    return job.run(
        [&](const std::shared_ptr<sw::group>& group) {
          const int rank = group->rank();
          mean_model model(group);
          auto batches = batches_of(group);
          auto session = sw::monitored_training_session(model, options_of(group, directory.path()));
          std::int64_t done = -1;
          for (const auto& step : session.steps(batches)) {
            done = step.global_step;
            seen.add(rank, done, step.value.weight);
            if (rank == stopping && done == at) { session.request_stop("enough"); }
          }
          {
            const std::lock_guard lock(mutex);
            last[rank] = done;
            why[rank] = session.stop_reason();
          }
          session.close();
        },
        {.parts = 4});
  };
  for (const auto& failure : train_once()) { CHECK(failure == nullptr); }
  CHECK(last == std::map<int, std::int64_t>{{0, at}, {1, at}, {2, at}});
  for (int rank = 0; rank < 3; ++rank) {
    for (const auto& [step, weight] : seen.of(rank)) { CHECK(weight == expected.at(step)); }
  }
  for (const auto& [rank, reason] : why) {
    CHECK(reason.cause == sw::stop_cause::requested);
    const auto text =
        rank == stopping ? std::string("enough") : "rank " + std::to_string(stopping) + " of the group has ended the training (requested)";
    CHECK(reason.text == text);
  }
  const auto of_chief = why[0].text;
  CHECK(steps_in(directory.path()) == (at == 5 ? "0 5" : "0 5 7"));

  for (const auto& failure : train_once()) { CHECK(failure == nullptr); }
  CHECK(last == std::map<int, std::int64_t>{{0, -1}, {1, -1}, {2, -1}});
  for (const auto& [rank, reason] : why) { CHECK(reason.text == of_chief); }
  CHECK(steps_in(directory.path()) == (at == 5 ? "0 5" : "0 5 7"));
}

TEST_CASE("a group ends when the data of any process ends") {
  thread_job job(2);
  std::mutex mutex;
  std::map<int, std::int64_t> last;
  const auto failures = job.run(
      [&](const std::shared_ptr<sw::group>& group) {
        mean_model model(group);
        auto batches = batches_of(group, group->rank() == 1 ? 1 : 2);
        auto session = sw::monitored_training_session(model, options_of(group, ""));
        for (const auto& step : session.steps(batches)) {
          const std::lock_guard lock(mutex);
          last[group->rank()] = step.global_step;
        }
        session.close();
      },
      {.parts = 4});
  for (const auto& failure : failures) { CHECK(failure == nullptr); }
  CHECK(last[0] == last[1]);
  CHECK(last[0] == 7);
}

TEST_CASE("a model that is NaN in all processes is not taken for the end of the training") {
  thread_job job(2);
  record seen;
  train(job, seen, "", 6, [&](mean_model& model, int rank) {
    if (rank == 1) {
      model.before_sum = [&model, calls = 0]() mutable {
        if (++calls == 3) { model.weight = std::numeric_limits<double>::quiet_NaN(); }
      };
    }
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto weights = seen.of(rank);
    REQUIRE(weights.size() == 6);
    CHECK(std::isnan(weights.at(3)));
    CHECK(std::isnan(weights.at(6)));
  }
}

TEST_CASE("a hook can sum over the group after each step, and merge its metric") {
  thread_job job(3);
  std::vector<std::vector<double>> means(3);
  job.run_well([&](const std::shared_ptr<sw::group>& group) {
    mean_model model(group);
    auto batches = batches_of(group);
    counting_hook hook{group, &means[static_cast<std::size_t>(group->rank())]};
    auto session = sw::monitored_training_session(model, options_of(group, ""), hook, sw::stop_at_step(4));
    for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    session.close();
  });
  for (const auto& of_rank : means) { CHECK(of_rank == std::vector{5.0, 5.5, 6.0, 6.5}); }
}

TEST_CASE("a hook that uses the group before the step is an error in all processes") {
  for (const auto& use :
       std::vector<std::function<void(sw::group&)>>{[](sw::group& all) {
                                                      double one = 1;
                                                      all.sum(one);
                                                    },
                                                    [](sw::group& all) {
                                                      double one = 1;
                                                      all.broadcast(one);
                                                    },
                                                    [](sw::group& all) { static_cast<void>(all.merged(sw::metrics::mean())); }}) {
    thread_job job(2);
    std::atomic<int> refused = 0;
    job.run_well([&](const std::shared_ptr<sw::group>& group) {
      mean_model model(group);
      auto batches = batches_of(group);
      auto session = sw::monitored_training_session(model, options_of(group, ""), early_hook{group, use}, sw::stop_at_step(4));
      try {
        for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
      } catch (const sw::failed_precondition_error&) { ++refused; }
    });
    CHECK(refused == 2);
  }
}

namespace {

/// A guard that uses the group before each step.
struct derived_guard : sw::nan_tensor_hook<double mean_model::*> {
  using nan_tensor_hook::nan_tensor_hook;
  void before_run(auto& /*context*/) {}
};

}  // namespace

TEST_CASE("a value of the user that a hook of the library reads before the step may not use the group, either") {
  STATIC_REQUIRE(sw::detail::may_use_group_before_run<derived_guard, sw::model_session<mean_model>>);
  thread_job job(2);
  std::atomic<int> refused = 0;
  job.run_well([&](const std::shared_ptr<sw::group>& group) {
    summing_model model(group);
    auto batches = batches_of(group);
    auto session = sw::monitored_training_session(
        model, options_of(group, ""),
        sw::progress_hook{{.is_terminal = false, .output = [](std::string_view) {}}, sw::tag("all", &summing_model::over_all)});
    try {
      for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    } catch (const sw::failed_precondition_error&) { ++refused; }
  });
  CHECK(refused == 2);
}

TEST_CASE("an evaluation in the loop of a group has no period in seconds") {
  thread_job job(2);
  std::atomic<bool> is_refused = false;
  job.run_well([&](const std::shared_ptr<sw::group>& group) {
    mean_model model(group);
    auto options = options_of(group, "");
    options.retry.max_attempts = 0;
    auto batches = batches_of(group);
    try {
      auto session = sw::monitored_training_session(
          model, options, sw::stop_at_step(2),
          sw::evaluate_every(
              std::chrono::seconds(30), std::vector<std::int64_t>{1}, [](const mean_model&, std::int64_t) { return 1.0; },
              sw::measure("value", [](double value) { return value; })));
      for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    } catch (const sw::failed_precondition_error& refused) {
      is_refused = group->rank() == 1 && std::string_view(refused.what()).find("period in steps or epochs") != std::string_view::npos;
    } catch (const sw::unavailable_error&) {}  // rank 0 has lost the other
  });
  CHECK(is_refused);
}

TEST_CASE("a signal to one process during an evaluation that sums does not end the evaluation of this process") {
  thread_job job(2);
  std::vector<std::vector<double>> sums(2);
  job.run_well([&](const std::shared_ptr<sw::group>& group) {
    mean_model model(group);
    auto options = options_of(group, "");
    options.stop_on = {SIGURG};
    options.preemption_grace = 1e-9;
    auto& mine = sums[static_cast<std::size_t>(group->rank())];
    std::shared_ptr<sw::session_signals> signals;
    const auto evaluate = [&](const mean_model& /*model*/, std::int64_t /*example*/) {
      if (group->rank() == 1 && mine.empty()) { signals->end_process("the process was sent SIGTERM", sw::system_clock()->now()); }
      double processes = 1;
      group->sum(processes);
      mine.push_back(processes);
      return processes;
    };
    auto batches = batches_of(group);
    auto session = sw::monitored_training_session(
        model, options, signals_hook{&signals},
        sw::evaluate_every(2, std::vector<std::int64_t>{1, 2, 3}, evaluate, sw::measure("sum", [](double value) { return value; })),
        sw::stop_at_step(4));
    for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    session.close();
  });
  CHECK(sums[0] == std::vector<double>{2, 2, 2});
  CHECK(sums[1] == sums[0]);
}

TEST_CASE("a NaN of one process makes all processes go back and skip the same batch") {
  const temporary_directory directory;
  thread_job job(3);
  record seen;
  job.run_well([&](const std::shared_ptr<sw::group>& group) {
    const int rank = group->rank();
    mean_model model(group);
    if (rank == 1) {
      model.before_sum = [&model, calls = 0]() mutable {
        if (++calls == 8) { model.weight = std::numeric_limits<double>::quiet_NaN(); }
      };
    }
    auto batches = batches_of(group);
    auto session = sw::monitored_training_session(model, options_of(group, directory.path()), sw::stop_at_step(12),
                                                  sw::rollback_on_nan_hook(&mean_model::result::weight, sw::skip_batch{}));
    for (const auto& step : session.steps(batches)) { seen.add(rank, step.global_step, step.value.weight); }
    session.close();
  });
  const auto weights = seen.of(0);
  CHECK(weights.size() == 12);
  for (const auto& [step, weight] : weights) { CHECK(std::isfinite(weight)); }
  CHECK(seen.of(1) == weights);
  CHECK(seen.of(2) == weights);
}

TEST_CASE("a chief of a group whose directory has a newer writer ends, and the others do not wait for ever") {
  const temporary_directory directory;
  thread_job job(2);
  const auto failures = job.run([&](const std::shared_ptr<sw::group>& group) {
    mean_model model(group);
    if (group->is_chief()) {
      model.before_sum = [&, calls = 0]() mutable {
        if (++calls == 7) { static_cast<void>(value_or_throw(sw::io::fenced_directory(directory.path()).open_fence())); }
      };
    }
    auto options = options_of(group, directory.path());
    options.max_wait_secs = 1;
    auto batches = batches_of(group, 1'000'000);  // a slow disk reports the failure many steps later
    auto session = sw::monitored_training_session(model, options);
    for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    session.close();
  });
  CHECK_THROWS_AS(rethrow(failures[0]), sw::failed_precondition_error);
  CHECK_THROWS_WITH(rethrow(failures[0]), ContainsSubstring("has taken over this directory"));
  CHECK_THROWS_AS(rethrow(failures[1]), sw::deadline_exceeded_error);
}

TEST_CASE("a process that is lost after the last step of rank 0 finds that the training has ended") {
  const temporary_directory directory;
  thread_job job(3);
  std::string reason;
  job.run_well([&](const std::shared_ptr<sw::group>& group) {
    mean_model model(group);
    auto batches = batches_of(group);
    auto session =
        sw::monitored_training_session(model, options_of(group, directory.path()), failing_hook{group->rank() == 1}, sw::stop_at_step(20));
    for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    if (group->rank() == 1) { reason = session.stop_reason().text; }
    session.close();
  });
  CHECK_THAT(reason, ContainsSubstring("rank 0 of the group has ended the training at step 20"));
  CHECK(steps_in(directory.path()) == "0 5 10 15 20");
}

TEST_CASE("a request of a process that ends alone is obeyed by the others, which form the group without it") {
  const auto expected = weights_alone(7);
  const std::set<int> losing = GENERATE(std::set{0}, std::set{0, 1});
  const temporary_directory directory;
  record seen;
  const auto ended = train_with_loss_in_last_sum(directory.path(), true, losing, seen);
  REQUIRE(ended.size() == 3);
  for (const auto& [rank, one] : ended) { CHECK(one.why.cause == sw::stop_cause::requested); }
  CHECK(ended.at(2).step == 7);
  CHECK(steps_in(directory.path()) == "0 5");  // restored, and stopped before another step
  CHECK(sw::run_ended(directory.path())->global_step == 5);
  for (int rank = 0; rank < 3; ++rank) { CHECK(seen.of(rank) == expected); }
}

TEST_CASE("the others finish the training of a group if the data of a process that ends alone has ended") {
  const auto expected = weights_alone(14);
  const std::set<int> losing = GENERATE(std::set{0}, std::set{0, 1});
  const temporary_directory directory;
  record seen;
  const auto ended = train_with_loss_in_last_sum(directory.path(), false, losing, seen);
  REQUIRE(ended.size() == 3);
  CHECK(ended.at(2).step == 7);
  CHECK(ended.at(1).step == (losing.contains(1) ? 14 : 7));
  CHECK(ended.at(0).step == 14);
  CHECK(seen.of(0) == expected);
  CHECK(steps_in(directory.path()) == "0 5 10 14");
}

TEST_CASE("a stop ends a session that waits for a lost process of its group") {
  const temporary_directory directory;
  thread_job job(2);
  std::stop_source stop;
  std::latch is_at_step_8(2);
  const auto failures = job.run([&](const std::shared_ptr<sw::group>& group) {
    mean_model model(group);
    model.before_sum = [&, is_chief = group->is_chief(), calls = 0]() mutable {
      if (++calls != 8) { return; }
      is_at_step_8.arrive_and_wait();  // the stop comes during the step of rank 0, or later
      if (!is_chief) { throw std::runtime_error("lost for good"); }
    };
    auto options = options_of(group, directory.path());
    options.stop_token = stop.get_token();
    auto batches = batches_of(group);
    auto session = sw::monitored_training_session(model, options, sw::stop_at_step(20));
    try {
      for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    } catch (const std::runtime_error&) { stop.request_stop(); }
    session.close();
  });
  CHECK(failures[0] == nullptr);
  CHECK(steps_in(directory.path()) == "0 5");
  const auto ended = sw::run_ended(directory.path());
  REQUIRE(ended);
  CHECK(ended->how == sw::session_ending::interrupted);
}

TEST_CASE("the processes of a group must have the same variables") {
  struct other_model : mean_model {
    using mean_model::mean_model;
    double more = 0;
    [[nodiscard]] sw::variable_list variables() { return sw::variables({{"weight", weight}, {"more", more}}); }
  };
  thread_job job(2);
  const auto failures = job.run([&](const std::shared_ptr<sw::group>& group) {
    const auto begin = [&](auto model) { static_cast<void>(sw::monitored_training_session(model, options_of(group, ""))); };
    group->is_chief() ? begin(mean_model(group)) : begin(other_model(group));
  });
  CHECK_THROWS_WITH(rethrow(failures[0]), ContainsSubstring("the variables of rank 0 and of rank 1 of the group differ"));
  CHECK_THROWS_AS(rethrow(failures[1]), sw::failed_precondition_error);
}

TEST_CASE("a session of a group rejects a master") {
  thread_job job(1);
  const auto group = job.join(0);
  mean_model model(group);
  auto options = options_of(group, "");
  options.master = "local:a";
  CHECK_THROWS_AS(sw::monitored_training_session(model, options), sw::invalid_argument_error);
}

TEST_CASE("a sum outside of a session is an error that names the option") {
  thread_job job(2);
  const auto group = job.join(0);
  double value = 1;
  CHECK_THROWS_WITH(group->sum(value), ContainsSubstring("training_options::group"));
}
