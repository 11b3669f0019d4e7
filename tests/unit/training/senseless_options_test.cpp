// SPDX-License-Identifier: Apache-2.0
//
// One row for each member of an options struct and each kind of value that makes no sense.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/stepwell.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

using result = adding_model::result;
const double not_a_number = std::nan("");

/// A value that makes no sense: `use` must throw an error that names `member`.
struct senseless {
  std::string options;
  std::string member;
  std::function<void()> use;
};

void check(const std::vector<senseless>& table) {
  const log_capture log;
  for (const auto& [options, member, use] : table) {
    INFO(options << "::" << member);
    try {
      use();
      FAIL_CHECK("nothing is thrown");
    } catch (const sw::invalid_argument_error& error) {
      CHECK_THAT(std::string(error.what()), ContainsSubstring(member));
    } catch (const std::exception& error) { FAIL_CHECK("another exception: " << error.what()); }
  }
}

/// Creates a session with these options.
void train(const sw::training_options& options) {
  counting_model model;
  auto session = sw::monitored_training_session(model, options);
}

}  // namespace

TEST_CASE("a value that makes no sense is an error that names the member: hooks that stop", "[training][senseless_options]") {
  check({
      {"stop_at_step_options", "last_step", [] { sw::stop_at_step_hook({.last_step = -1}); }},
      {"stop_at_step_options", "num_steps", [] { sw::stop_at_step_hook({.num_steps = -1}); }},
      {"stop_at_step_options", "num_steps and last_step", [] { sw::stop_at_step_hook({.num_steps = 1, .last_step = 1}); }},
      {"stop_at_step_options", "num_steps and last_step", [] { sw::stop_at_step_hook({}); }},
      {"multi_step_stop_at_step_options", "last_step", [] { sw::multi_step_stop_at_step_hook({.last_step = -1}); }},
      {"multi_step_stop_at_step_options", "num_steps", [] { sw::multi_step_stop_at_step_hook({.num_steps = -1}); }},
      {"multi_step_stop_at_step_options", "num_steps and last_step",
       [] { sw::multi_step_stop_at_step_hook({.num_steps = 1, .last_step = 1}); }},
      {"multi_step_stop_at_step_options", "steps_per_run", [] { sw::multi_step_stop_at_step_hook({.last_step = 1, .steps_per_run = 0}); }},
      {"stop_at_epoch_options", "last_epoch", [] { sw::stop_at_epoch_hook({.last_epoch = -1}); }},
      {"stop_at_epoch_options", "last_epoch", [] { sw::stop_at_epoch_hook({}); }},
      {"stop_at_epoch_options", "name", [] { sw::stop_at_epoch_hook({.last_epoch = 1, .name = ""}); }},
      {"stop_after_n_evals_options", "num_evals", [] { sw::stop_after_n_evals_hook({.num_evals = -1}); }},
      {"time_limit_hook", "limit", [] { sw::time_limit_hook(0); }},
      {"time_limit_hook", "limit", [] { sw::time_limit_hook{not_a_number}; }},
      {"early_stopping_options", "patience", [] { sw::early_stopping_hook{{.patience = -1}, &result::loss}; }},
      {"early_stopping_options", "patience", [] { sw::early_stopping_hook{{}, &result::loss}; }},
      {"early_stopping_options", "min_delta", [] { sw::early_stopping_hook{{.patience = 1, .min_delta = -1}, &result::loss}; }},
      {"early_stopping_options", "min_delta", [] { sw::early_stopping_hook{{.patience = 1, .min_delta = not_a_number}, &result::loss}; }},
      {"early_stopping_options", "generalization_loss", [] { sw::early_stopping_hook{{.generalization_loss = -1}, &result::loss}; }},
      {"early_stopping_options", "every_n_steps", [] { sw::early_stopping_hook{{.patience = 1, .every_n_steps = 0}, &result::loss}; }},
      {"early_stopping_options", "name", [] { sw::early_stopping_hook{{.patience = 1, .name = ""}, &result::loss}; }},
      {"rollback_on_nan_options", "max_rollbacks",
       [] { sw::rollback_on_nan_hook{{.max_rollbacks = -1}, &result::loss, sw::skip_batch{}}; }},
  });
}

TEST_CASE("a value that makes no sense is an error that names the member: hooks that write", "[training][senseless_options]") {
  const temporary_directory directory;
  const auto path = directory / "run";
  const auto summaries = [](const sw::summary_saver_options& options) {
    sw::summary_saver_hook{options, sw::summary::scalar("loss", &result::loss)};
  };
  const auto saves = [&](sw::checkpoint_saver_options options) {
    options.checkpoint_dir = path;
    sw::checkpoint_saver_hook hook(options);
  };
  const auto best = [](const sw::best_checkpoint_options& options) { sw::best_checkpoint_hook{options, &result::loss}; };
  check({
      {"logging_tensor_options", "every_n_iter", [] { sw::logging_tensor_hook{{.every_n_iter = 0}, &result::loss}; }},
      {"logging_tensor_options", "every_n_iter", [] { sw::logging_tensor_hook{{.every_n_iter = -1}, &result::loss}; }},
      {"logging_tensor_options", "every_n_secs", [] { sw::logging_tensor_hook{{.every_n_secs = -1}, &result::loss}; }},
      {"logging_tensor_options", "every_n_secs", [] { sw::logging_tensor_hook{{.every_n_secs = not_a_number}, &result::loss}; }},
      {"logging_tensor_options", "every_n_iter and every_n_secs",
       [] { sw::logging_tensor_hook{{.every_n_iter = 1, .every_n_secs = 1}, &result::loss}; }},
      {"logging_tensor_options", "every_n_iter and every_n_secs", [] { sw::logging_tensor_hook{{}, &result::loss}; }},
      {"log_every", "every_n_iter", [] { static_cast<void>(sw::log_every(0, &result::loss)); }},
      {"summary_saver_options", "save_steps", [&] { summaries({.output_dir = path, .save_steps = -1}); }},
      {"summary_saver_options", "save_secs", [&] { summaries({.output_dir = path, .save_secs = -1}); }},
      {"summary_saver_options", "save_steps", [&] { summaries({.output_dir = path, .save_steps = sw::none}); }},
      {"checkpoint_saver_options", "save_steps", [&] { saves({.save_steps = -1}); }},
      {"checkpoint_saver_options", "save_secs", [&] { saves({.save_secs = -1}); }},
      {"checkpoint_saver_options", "save_steps", [&] { saves({}); }},
      {"checkpoint_saver_options", "save_overhead", [&] { saves({.save_overhead = 1.0}); }},
      {"checkpoint_saver_options", "save_overhead", [&] { saves({.save_overhead = -0.1}); }},
      {"checkpoint_saver_options", "save_overhead and save_steps", [&] { saves({.save_steps = 1, .save_overhead = 0.1}); }},
      {"checkpoint_saver_options", "save_overhead and save_secs", [&] { saves({.save_secs = 1, .save_overhead = 0.1}); }},
      {"interval_bounds", "min_interval", [&] { saves({.save_overhead = 0.1, .save_interval = {.min_interval = -1}}); }},
      {"interval_bounds", "max_interval", [&] { saves({.save_overhead = 0.1, .save_interval = {.min_interval = 2, .max_interval = 1}}); }},
      {"checkpoint_saver_options", "log_every_secs", [&] { saves({.save_steps = 1, .log_every_secs = -1}); }},
      {"checkpoint_saver_options", "checkpoint_dir", [] { sw::checkpoint_saver_hook({.save_steps = 1}); }},
      {"saver_options", "basename", [&] { sw::saver(path, {.basename = ""}); }},
      {"saver_options", "max_to_keep", [&] { sw::saver(path, {.max_to_keep = -1}); }},
      {"saver_options", "keep_every_n_hours", [&] { sw::saver(path, {.keep_every_n_hours = -1.0}); }},
      {"saver_options", "retries", [&] { sw::saver(path, {.on_error = sw::on_save_error::retry(-1)}); }},
      {"saver_options", "first_wait", [&] { sw::saver(path, {.on_error = sw::on_save_error::retry(1, -std::chrono::seconds(1))}); }},
      {"saver_options", "shards", [&] { sw::saver(path, {.shards = 0}); }},
      {"step_counter_options", "every_n_steps", [] { sw::step_counter_hook({.every_n_steps = -1}); }},
      {"step_counter_options", "every_n_secs", [] { sw::step_counter_hook({.every_n_secs = -1}); }},
      {"step_counter_options", "every_n_steps", [] { sw::step_counter_hook({.every_n_steps = sw::none}); }},
      {"step_counter_options", "log_every_secs", [] { sw::step_counter_hook({.log_every_secs = -1}); }},
      {"best_checkpoint_options", "keep", [&] { best({.keep = 0}); }},
      {"best_checkpoint_options", "min_delta", [&] { best({.min_delta = -1}); }},
      {"best_checkpoint_options", "min_delta", [&] { best({.min_delta = not_a_number}); }},
      {"best_checkpoint_options", "every_n_steps", [&] { best({.every_n_steps = 0}); }},
      {"best_checkpoint_options", "name", [&] { best({.name = ""}); }},
      {"best_checkpoint_options", "name", [&] { best({.name = "a/b"}); }},
      {"best_checkpoint_options", "name", [&] { best({.name = ".hidden"}); }},
      {"best_checkpoint_options", "log_every_secs", [&] { best({.log_every_secs = -1}); }},
      {"best_checkpoint_options", "saver.pool", [&] { best({.saver = {.pool = std::make_shared<sw::io::pool>(1)}}); }},
      {"best_checkpoint_options", "shards", [&] { best({.saver = {.shards = 0}}); }},
      {"profiler_options", "save_steps", [&] { sw::profiler_hook({.save_steps = -1, .output_dir = path}); }},
      {"profiler_options", "save_secs", [&] { sw::profiler_hook({.save_secs = -1, .output_dir = path}); }},
      {"profiler_options", "save_steps and save_secs", [&] { sw::profiler_hook({.output_dir = path}); }},
      {"writer_options", "flush_secs", [&] { sw::summary::writer(path, {.flush_secs = -1}); }},
      {"writer_options", "max_queue_bytes", [&] { sw::summary::writer(path, {.max_queue_bytes = 0}); }},
      {"writer_options", "filename_suffix", [&] { sw::summary::writer(path, {.filename_suffix = "a/b"}); }},
      {"metric_writer_options", "flush_secs", [&] { sw::summary::csv_writer(directory / "metrics.csv", {.flush_secs = -1}); }},
      {"metric_writer_options", "max_queue_bytes", [&] { sw::summary::csv_writer(directory / "metrics.csv", {.max_queue_bytes = 0}); }},
  });
}

TEST_CASE("a value that makes no sense is an error that names the member: other hooks", "[training][senseless_options]") {
  counting_model model;
  const auto evaluate = [](const sw::evaluate_every_options& options) {
    static_cast<void>(sw::evaluate_every(
        options, [](const counting_model& now) { return now.count; }, sw::measure("count", [](int count) { return count; })));
  };
  check({
      {"ema_options", "decay", [&] { sw::ema_hook({.decay = 1}, model); }},
      {"ema_options", "decay", [&] { sw::ema_hook({.decay = not_a_number}, model); }},
      {"ema_options", "name", [&] { sw::ema_hook({.name = ""}, model); }},
      {"global_step_waiter_options", "max_wait_secs", [] { sw::global_step_waiter_hook({.wait_until_step = 1, .max_wait_secs = -1}); }},
      {"progress_options", "last_step", [] { sw::progress_hook<>({.last_step = -1}); }},
      {"progress_options", "last_epoch", [] { sw::progress_hook<>({.last_epoch = -1}); }},
      {"progress_options", "batch_size", [] { sw::progress_hook<>({.batch_size = -1}); }},
      {"progress_options", "bar_every", [] { sw::progress_hook<>({.bar_every = -1}); }},
      {"progress_options", "bar_every", [] { sw::progress_hook<>({.bar_every = not_a_number}); }},
      {"progress_options", "line_every", [] { sw::progress_hook<>({.line_every = -1}); }},
      {"progress_options", "columns", [] { sw::progress_hook<>({.columns = -1}); }},
      {"evaluate_every_options", "every", [&] { evaluate({.every = 0}); }},
      {"evaluate_every_options", "every", [&] { evaluate({.every = sw::epochs(0)}); }},
      {"evaluate_every_options", "every", [&] { evaluate({.every = std::chrono::seconds(-1)}); }},
      {"evaluate_every_options", "every", [&] { evaluate({.every = std::chrono::duration<double>(not_a_number)}); }},
      {"evaluate_every_options", "name", [&] { evaluate({.every = 1, .name = ""}); }},
      {"evaluate_every_options", "log_every_secs", [&] { evaluate({.every = 1, .log_every_secs = -1}); }},
      {"early_stopping_options", "generalization_loss",
       [] { sw::early_stopping_hook{{.mode = sw::early_stopping_mode::maximize, .generalization_loss = 5}, &result::loss}; }},
      {"every_n_steps", "n is 0", [] { static_cast<void>(sw::every_n_steps(0, [] {})); }},
      {"every", "period", [] { static_cast<void>(sw::every(std::chrono::seconds(0), [] {})); }},
      {"saved_state", "name",
       [] { static_cast<void>(sw::every_n_steps(1, [] {}, sw::saved_state{"", [] { return sw::variable_list(); }})); }},
      {"saved_state", "variables", [] { static_cast<void>(sw::every_n_steps(1, [] {}, sw::saved_state{"state", nullptr})); }},
      {"reduce_on_plateau_hook_options", "every_n_steps",
       [] { sw::reduce_on_plateau_hook{{.every_n_steps = 0}, &adding_model::sum, &result::loss}; }},
      {"reduce_on_plateau_hook_options", "name", [] { sw::reduce_on_plateau_hook{{.name = ""}, &adding_model::sum, &result::loss}; }},
      {"reduce_on_plateau_options", "factor", [] { sw::schedules::reduce_on_plateau({.factor = 1}); }},
      {"reduce_on_plateau_options", "patience", [] { sw::schedules::reduce_on_plateau({.patience = 0}); }},
      {"reduce_on_plateau_options", "min_delta", [] { sw::schedules::reduce_on_plateau({.min_delta = -1}); }},
      {"reduce_on_plateau_options", "cooldown", [] { sw::schedules::reduce_on_plateau({.cooldown = -1}); }},
      {"reduce_on_plateau_options", "min_rate", [] { sw::schedules::reduce_on_plateau({.min_rate = -1}); }},
      {"exponential_decay_options", "decay_steps", [] { sw::schedules::exponential_decay({.decay_rate = 1}); }},
      {"exponential_decay_options", "decay_rate", [] { sw::schedules::exponential_decay({.decay_steps = 1, .decay_rate = -1}); }},
      {"polynomial_decay_options", "decay_steps", [] { sw::schedules::polynomial_decay({}); }},
      {"polynomial_decay_options", "power", [] { sw::schedules::polynomial_decay({.decay_steps = 1, .power = 0}); }},
      {"cosine_decay_options", "decay_steps", [] { sw::schedules::cosine_decay({}); }},
      {"cosine_restarts_options", "first_decay_steps", [] { sw::schedules::cosine_restarts({}); }},
      {"cosine_restarts_options", "t_mul", [] { sw::schedules::cosine_restarts({.first_decay_steps = 1, .t_mul = 0.5}); }},
      {"cosine_restarts_options", "m_mul", [] { sw::schedules::cosine_restarts({.first_decay_steps = 1, .m_mul = -1}); }},
      {"piecewise_constant", "boundaries", [] { sw::schedules::piecewise_constant({1, 2}, {1, 2}); }},
      {"piecewise_constant", "boundaries", [] { sw::schedules::piecewise_constant({2, 1}, {1, 2, 3}); }},
      {"warm_up", "steps", [] { sw::schedules::warm_up(-1, sw::schedules::constant(1)); }},
      {"windowed_mean", "size", [] { sw::metrics::windowed_mean(0); }},
      {"exponential_mean", "decay", [] { sw::metrics::exponential_mean(1); }},
      {"exponential_mean", "decay", [] { sw::metrics::exponential_mean{not_a_number}; }},
      {"auc", "bins", [] { sw::metrics::auc(1); }},
      {"top_k_accuracy", "k is 0", [] { sw::metrics::top_k_accuracy(0); }},
      {"confusion_matrix", "classes", [] { sw::metrics::confusion_matrix(0); }},
      {"one_cycle_options", "total_steps", [] { sw::schedules::one_cycle({.total_steps = 1}); }},
      {"one_cycle_options", "rising", [] { sw::schedules::one_cycle({.total_steps = 9, .rising = 1}); }},
      {"one_cycle_options", "div_factor", [] { sw::schedules::one_cycle({.total_steps = 9, .div_factor = 0}); }},
      {"one_cycle_options", "final_div_factor", [] { sw::schedules::one_cycle({.total_steps = 9, .final_div_factor = 0}); }},
  });
}

TEST_CASE("a value that makes no sense is an error that names the member: sources", "[training][senseless_options]") {
  const temporary_directory directory;
  const std::vector<int> numbers{1, 2, 3};
  check({
      {"shuffle_options", "batch_size", [&] { static_cast<void>(sw::data::shuffled_batches(numbers, {.batch_size = 0})); }},
      {"shuffle_options", "drop_remainder",
       [&] { static_cast<void>(sw::data::shuffled_batches(numbers, {.batch_size = 4, .drop_remainder = true})); }},
      {"prefetch_options", "threads", [&] { static_cast<void>(sw::data::prefetch(sw::data::counter(), {.threads = 0})); }},
      {"prefetch_options", "depth", [&] { static_cast<void>(sw::data::prefetch(sw::data::counter(), {.depth = 0})); }},
      {"record_files_options", "paths", [] { sw::data::record_files({}); }},
      {"record_files_options", "max_record_size", [] { sw::data::record_files({.paths = {"a"}, .max_record_size = 0}); }},
      {"record_files_options", "read_size", [] { sw::data::record_files({.paths = {"a"}, .read_size = 0}); }},
      {"mapped_records_options", "paths", [] { sw::data::mapped_records({.record_size = 1}); }},
      {"mapped_records_options", "record_size", [] { sw::data::mapped_records({.paths = {"a"}}); }},
      {"fifo_queue_options", "capacity", [] { sw::data::fifo_queue<int>({.capacity = 0}); }},
      {"shuffle_queue_options", "capacity", [] { sw::data::shuffle_queue<int>({.capacity = 0}); }},
      {"shuffle_queue_options", "min_after_dequeue", [] { sw::data::shuffle_queue<int>({.capacity = 2, .min_after_dequeue = 2}); }},
  });
}

TEST_CASE("a value that makes no sense is an error that names the member: sessions", "[training][senseless_options]") {
  const temporary_directory directory;
  const auto path = directory / "run";
  check({
      {"training_options", "saves.save_secs", [&] { train({.checkpoint_dir = path, .saves = {.save_secs = -1}}); }},
      {"training_options", "saves.save_secs", [] { train({.saves = {.save_secs = not_a_number}}); }},
      {"training_options", "saves.save_steps", [] { train({.saves = {.save_steps = -1}}); }},
      {"training_options", "saves.save_overhead", [] { train({.saves = {.save_overhead = 1}}); }},
      {"training_options", "saves.save_overhead and saves.save_steps",
       [&] { train({.checkpoint_dir = path, .saves = {.save_steps = 1, .save_overhead = 0.1}}); }},
      {"training_options", "min_interval", [] { train({.saves = {.save_interval = {.min_interval = -1}}}); }},
      {"training_options", "summaries.save_steps", [] { train({.summaries = {.save_steps = -1}}); }},
      {"training_options", "summaries.save_secs", [] { train({.summaries = {.save_secs = -1}}); }},
      {"training_options", "step_counter.every_n_steps", [] { train({.step_counter = {.every_n_steps = -1}}); }},
      {"training_options", "step_counter.log_every_secs", [] { train({.step_counter = {.log_every_secs = -1}}); }},
      {"training_options", "saves.log_every_secs", [&] { train({.checkpoint_dir = path, .saves = {.log_every_secs = not_a_number}}); }},
      {"training_options", "saves.checkpoint_dir", [&] { train({.checkpoint_dir = path, .saves = {.checkpoint_dir = path}}); }},
      {"training_options", "max_to_keep", [] { train({.saves = {.saver = {.max_to_keep = -1}}}); }},
      {"training_options", "metrics", [] { train({.metrics = {nullptr}}); }},
      {"training_options", "hparams", [] { train({.summaries = {.hparams = sw::format::hparam_map{{"rate", 0.1}}}}); }},
      {"training_options", "max_wait_secs", [] { train({.max_wait_secs = -1}); }},
      {"training_options", "recovery_wait", [] { train({.recovery_wait = 0}); }},
      {"training_options", "stop_grace_period_secs", [] { train({.stop_grace_period_secs = -1}); }},
      {"training_options", "preemption_grace", [] { train({.stop_on = {SIGTERM}, .preemption_grace = -1}); }},
      {"training_options", "stop_on", [] { train({.preemption_grace = 1}); }},
      {"training_options", "master", [] { train({.is_chief = false}); }},
      {"saver_options", "shards", [] { train({.saves = {.saver = {.shards = 0}}}); }},
      {"retry_policy", "max_attempts", [] { train({.retry = {.max_attempts = -1}}); }},
      {"retry_policy", "initial_backoff", [] { train({.retry = {.initial_backoff = -1}}); }},
      {"retry_policy", "max_backoff", [] { train({.retry = {.max_backoff = -1}}); }},
      {"retry_policy", "multiplier", [] { train({.retry = {.multiplier = 0.5}}); }},
      {"retry_policy", "jitter", [] { train({.retry = {.jitter = 2}}); }},
      {"session_config", "intra_op_parallelism_threads", [] { train({.config = {.intra_op_parallelism_threads = -1}}); }},
      {"session_config", "inter_op_parallelism_threads", [] { train({.config = {.inter_op_parallelism_threads = -1}}); }},
  });
}

TEST_CASE("an option that needs a directory is an error without one", "[training][senseless_options]") {
  const temporary_directory directory;
  using options = sw::training_options;
  const std::vector<std::pair<std::string, std::function<void(options&)>>> of_checkpoints{
      {"saves.save_secs", [](auto& given) { given.saves.save_secs = 60; }},
      {"saves.save_steps", [](auto& given) { given.saves.save_steps = 100; }},
      {"saves.save_overhead", [](auto& given) { given.saves.save_overhead = 0.02; }},
      {"saves.listeners", [](auto& given) { given.saves.listeners = {std::make_shared<sw::checkpoint_saver_listener>()}; }},
      {"saves.checkpoint_dir", [&](auto& given) { given.saves.checkpoint_dir = directory / "other"; }},
      {"saves.summary_dir", [&](auto& given) { given.saves.summary_dir = directory / "other"; }},
      {"saves.log_every_secs", [](auto& given) { given.saves.log_every_secs = 0; }},
      {"saves.save_interval", [](auto& given) { given.saves.save_interval = {.max_interval = 60}; }},
      {"saves.saver.basename", [](auto& given) { given.saves.saver.basename = "other.ckpt"; }},
      {"saves.saver.pad_step_number", [](auto& given) { given.saves.saver.pad_step_number = true; }},
      {"saves.saver.max_to_keep", [](auto& given) { given.saves.saver.max_to_keep = 3; }},
      {"saves.saver.keep_every_n_hours", [](auto& given) { given.saves.saver.keep_every_n_hours = 1; }},
      {"saves.saver.pinned", [](auto& given) { given.saves.saver.pinned = {"model.ckpt-500"}; }},
      {"saves.saver.max_staged_bytes", [](auto& given) { given.saves.saver.max_staged_bytes = 0; }},
      {"saves.saver.when_busy", [](auto& given) { given.saves.saver.when_busy = sw::when_busy::skip; }},
      {"saves.saver.on_error", [](auto& given) { given.saves.saver.on_error = sw::on_save_error::warn(); }},
      {"saves.saver.on_error", [](auto& given) { given.saves.saver.on_error = sw::on_save_error::retry(3); }},
      {"saves.saver.shards", [](auto& given) { given.saves.saver.shards = 3; }},
      {"saves.saver.sync", [](auto& given) { given.saves.saver.sync = false; }},
  };
  const std::vector<std::pair<std::string, std::function<void(options&)>>> of_events{
      {"metrics", [&](auto& given) { given.metrics = {std::make_shared<sw::summary::csv_writer>(directory / "metrics.csv")}; }},
      {"summaries.hparams", [](auto& given) { given.summaries.hparams = sw::format::hparam_map{{"rate", 0.1}}; }},
      {"summaries.save_steps", [](auto& given) { given.summaries.save_steps = 100; }},
      {"summaries.save_secs", [](auto& given) { given.summaries.save_secs = 60; }},
      {"summaries.at_end", [](auto& given) { given.summaries.at_end = true; }},
      {"summaries.check_variables", [](auto& given) { given.summaries.check_variables = true; }},
      {"step_counter.every_n_steps", [](auto& given) { given.step_counter.every_n_steps = 100; }},
      {"step_counter.every_n_secs", [](auto& given) { given.step_counter.every_n_secs = 60; }},
      {"step_counter.log_every_secs", [](auto& given) { given.step_counter.log_every_secs = 0; }},
  };
  const auto path = directory / "run";
  const log_capture log;
  const auto check_refused = [](const std::string& name, const options& given, const std::string& missing) {
    INFO(name);
    CHECK_THROWS_AS(train(given), sw::invalid_argument_error);
    CHECK_THROWS_WITH(train(given), ContainsSubstring(name + " is given, but " + missing));
  };
  for (const auto& [name, give] : of_checkpoints) {
    options given;
    give(given);
    check_refused(name, given, "checkpoint_dir");
    given.summary_dir = path;
    check_refused(name, given, "checkpoint_dir");
  }
  for (const auto& [name, give] : of_events) {
    options given;
    give(given);
    check_refused(name, given, "neither summary_dir nor checkpoint_dir");
    given.summary_dir = path;
    CHECK_NOTHROW(train(given));
  }
  counting_model model;
  const auto values = sw::summaries(sw::summary::scalar("count", &counting_model::count));
  const auto function = sw::summaries([](auto&, const auto&, const auto&, std::int64_t) {});
  CHECK_THROWS_WITH(sw::monitored_training_session(model, {}, values),
                    ContainsSubstring("summaries is given, but neither summary_dir nor"));
  CHECK_THROWS_WITH(sw::monitored_training_session(model, {}, function),
                    ContainsSubstring("summaries is given, but neither summary_dir nor"));
  CHECK_NOTHROW(sw::monitored_training_session(model, {.summary_dir = path}, values, function));
  options off{.saves = {.save_secs = sw::none, .save_steps = 0, .saver = {.max_to_keep = sw::none}},
              .step_counter = {.every_n_steps = sw::none}};
  CHECK_NOTHROW(train(off));
  CHECK_NOTHROW(train({.saves = {.save_overhead = 0, .save_interval = {.min_interval = 30}}, .summaries = {.at_end = false}}));
  off = {.master = "local:a worker without directories", .is_chief = false, .saves = {.save_steps = 100}, .max_wait_secs = 0};
  CHECK_THROWS_AS(train(off), sw::deadline_exceeded_error);  // a worker does not save, so it needs no directory
}

TEST_CASE("saver options that a session without checkpoints uses, too, or whose value is the default, need no directory",
          "[training][senseless_options]") {
  const log_capture log;
  CHECK_NOTHROW(train({.saves = {.saver = {.file_system = sw::io::posix_file_system(),
                                           .pool = std::make_shared<sw::io::pool>(1),
                                           .clock = std::make_shared<sw::manual_clock>()}}}));
  CHECK_NOTHROW(train({.saves = {.save_interval = {.min_interval = 1, .max_interval = 600}, .saver = {.max_to_keep = 5, .shards = 1}}}));
  counting_model model;
  const auto scaffold = sw::scaffold<counting_model>({.saver = sw::saver_options{.basename = "other.ckpt"}});
  CHECK_NOTHROW(sw::monitored_training_session(model, {}, scaffold));
}

TEST_CASE("the bounds of the interval between checkpoints need the share of the time that selects it", "[training][senseless_options]") {
  const temporary_directory directory;
  const log_capture log;
  const sw::interval_bounds bounds{.min_interval = 30};
  const auto path = directory / "run";
  const auto refused = ContainsSubstring("saves.save_interval is given, but saves.save_overhead is not");
  CHECK_THROWS_WITH(train({.checkpoint_dir = path, .saves = {.save_interval = bounds}}), refused);
  CHECK_THROWS_WITH(train({.checkpoint_dir = path, .saves = {.save_steps = 10, .save_interval = bounds}}), refused);
  CHECK_THROWS_WITH(sw::checkpoint_saver_hook({.checkpoint_dir = path, .save_steps = 10, .save_interval = bounds}),
                    ContainsSubstring("save_interval is given, but save_overhead is not"));
  CHECK_NOTHROW(train({.checkpoint_dir = path, .saves = {.save_overhead = 0.1, .save_interval = bounds}}));
  CHECK_NOTHROW(train({.checkpoint_dir = path, .saves = {.save_overhead = 0, .save_interval = bounds}}));  // off
}

TEST_CASE("a value that makes no sense is an error that names the member: evaluations", "[training][senseless_options]") {
  const temporary_directory directory;
  {
    counting_model model;
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}, sw::stop_at_step(1));
    session.run_all();
    session.close();
  }
  const auto newest = sw::latest_checkpoint(directory.path()).value();
  const auto repeat = [&](const sw::repeated_evaluation_options& options) {
    counting_model model;
    for ([[maybe_unused]] const auto& found : sw::evaluate_repeatedly(model, directory.path(), [] { return sw::no_source{}; }, options)) {
      break;
    }
  };
  const auto iterate = [&](const sw::checkpoints_iterator_options& options) {
    for ([[maybe_unused]] const auto& found : sw::checkpoints_iterator(directory.path(), options)) { break; }
  };
  check({
      {"evaluation_options", "num_evals",
       [&] {
         counting_model model;
         static_cast<void>(sw::evaluate_once(model, newest, sw::no_source{}, {.num_evals = -1}));
       }},
      {"repeated_evaluation_options", "eval_interval_secs", [&] { repeat({.eval_interval_secs = -1}); }},
      {"repeated_evaluation_options", "max_number_of_evaluations", [&] { repeat({.max_number_of_evaluations = -1}); }},
      {"repeated_evaluation_options", "timeout", [&] { repeat({.timeout = -1}); }},
      {"repeated_evaluation_options", "seconds_to_sleep", [&] { repeat({.seconds_to_sleep = -1}); }},
      {"repeated_evaluation_options", "num_evals", [&] { repeat({.evaluation = {.num_evals = -1}}); }},
      {"checkpoints_iterator_options", "min_interval_secs", [&] { iterate({.min_interval_secs = -1}); }},
      {"new_checkpoint_options", "seconds_to_sleep", [&] { iterate({.wait = {.seconds_to_sleep = 0}}); }},
      {"new_checkpoint_options", "timeout", [&] { iterate({.wait = {.timeout = -1}}); }},
  });
}

TEST_CASE("a period in seconds and one in steps: the seconds are used, with a warning that names both members",
          "[training][senseless_options]") {
  const temporary_directory directory;
  const auto path = directory / "run";
  const auto warns = [](const std::string& warning, const std::function<void()>& use) {
    INFO(warning);
    const log_capture log;
    use();
    CHECK(log.contains(sw::log_level::warning, warning));
  };
  warns("both saves.save_secs and saves.save_steps are given; saves.save_secs (2 s) is used",
        [&] { train({.checkpoint_dir = path, .saves = {.save_secs = 2, .save_steps = 3}}); });
  warns("both summaries.save_secs and summaries.save_steps are given; summaries.save_secs (2 s) is used",
        [&] { train({.checkpoint_dir = path, .summaries = {.save_steps = 3, .save_secs = 2}}); });
  warns("both save_secs and save_steps are given; save_secs (2 s) is used",
        [&] { sw::checkpoint_saver_hook hook({.checkpoint_dir = path, .save_secs = 2, .save_steps = 3}); });
  warns("both save_secs and save_steps are given; save_secs (2 s) is used",
        [] { sw::summary_saver_hook{{.save_steps = 3, .save_secs = 2}, sw::summary::scalar("loss", &result::loss)}; });
  warns("both save_secs and save_steps are given; save_secs (2 s) is used",
        [] { sw::profiler_hook hook({.save_steps = 3, .save_secs = 2}); });
  warns("both every_n_secs and every_n_steps are given; every_n_secs (2 s) is used",
        [] { sw::step_counter_hook hook({.every_n_steps = 3, .every_n_secs = 2}); });
}
