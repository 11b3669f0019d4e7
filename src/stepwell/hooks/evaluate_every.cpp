// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/evaluate_every.hpp"

#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/detail/unset.hpp"
#include "stepwell/base/detail/wait_or_stop.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/hooks/detail/rare_log.hpp"
#include "stepwell/hooks/detail/value_history.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/protocol/detail/boundary_work.hpp"
#include "stepwell/protocol/watched_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <set>
#include <stop_token>
#include <thread>

namespace stepwell::detail {
namespace {

void check(const evaluate_every_options& options, const std::vector<std::string>& names) {
  const auto refuse = [](std::string why) { throw invalid_argument_error("evaluate_every: " + std::move(why)); };
  const auto check_above_zero = [&](const auto& value, std::string_view unit) {
    if (value && !(*value > 0)) { refuse(fmt::format("invalid every={} {}; it must be above zero", *value, unit)); }
  };
  check_above_zero(options.every.steps(), "steps");
  check_above_zero(options.every.epochs(), "epochs");
  if (options.every.time()) { check_above_zero(std::optional(options.every.time()->count()), "seconds"); }
  refuse_negative("log_every_secs", options.log_every_secs);
  if (options.name.empty()) { refuse("the name is empty; the state of the hook is saved under this name"); }
  std::set<std::string> seen;
  for (const auto& name : names) {
    if (name.empty()) { refuse("a metric has an empty name"); }
    if (!seen.insert(name).second) { refuse("two metrics are named \"" + name + "\""); }
  }
}

}  // namespace

/// The values, and the evaluation beside the training.
class evaluations::state final : public boundary_work, public std::enable_shared_from_this<evaluations::state> {
public:
  state(evaluate_every_options given, std::vector<std::string> names) : options(std::move(given)), history_(names) {
    check(options, names);
    board->values.resize(names.size());
    pending_values_.resize(names.size());
    board->names = std::move(names);
    reset();
  }
  ~state() override { join(); }

  const evaluate_every_options options;
  const std::shared_ptr<evaluation_board> board = std::make_shared<evaluation_board>();
  evaluate_snapshot_function evaluate_snapshot = nullptr;

  /// A chief may evaluate alone. Other processes of a group evaluate in the loop only if all processes do.
  void check_period_in_group(const session_requests& session) const {
    if (!options.every.time() || evaluate_snapshot || !session.group() || session.group()->rank() == 0) { return; }
    throw failed_precondition_error(
        "evaluate_every: the processes of a group must evaluate after the same steps; give a period in steps or epochs, or give the hook to the "
        "chief only, see chief_only");
  }

  [[nodiscard]] bool start(const session_requests& session, std::int64_t step) {
    check_period_in_group(session);
    session_ = session;
    time_ = session.time();
    first_step_ = step + 1;
    last_ = options.every.steps() ? step / *options.every.steps() : 0;
    if (options.every.time()) {
      timer_ = second_or_step_timer({.every_secs = options.every.time()->duration()}, session.time());
      timer_.update_last_triggered_step(step);
    }
    open_summaries(session);
    session.add_work(shared_from_this());
    std::vector<std::string> names;
    for (const auto& name : board->names) { names.push_back(options.name + "/" + name); }
    publisher_.start(session.watched(), names);
    publish_newest();
    collect();  // an evaluation that a recovery did not wait for
    dropped_step_ = -1;
    reached_ = step;
    keep_found();
    if (pending_step_ >= 0 && is_pending_done_ == 0) {
      if (pending_step_ != step) {
        pending_step_ = -1;
      } else if (evaluate_snapshot) {  // the checkpoint was saved when the evaluation of this state was due
        found_step_ = -1;
        session.request_save(*this);
      }
    }
    board->is_repeated = !evaluate_snapshot && pending_step_ == step;
    return board->is_repeated;
  }

  /// Evaluates the state of `step` in the loop.
  void evaluate_here(const session_requests& session, std::int64_t step, evaluate_function evaluate) {
    bool is_stopped = false;
    const auto begin = now();
    const bool is_shared = session.group() && session.group()->size() > 1;  // the others could wait for sums of this evaluation
    const auto evaluation = evaluate([&] {
      is_stopped = !is_shared && session.signals()->end_of_process() && session.end_of_waits().remaining() == clock::duration::zero();
      return is_stopped;
    });
    pending_step_ = is_stopped ? step : -1;
    if (is_stopped) { return warn_unfinished(step); }
    show(evaluation, step, now() - begin);
    publish(evaluation.values, step, false);
  }

  [[nodiscard]] bool take_due(const session_requests& session, std::int64_t step) {
    reached_ = step;
    if (options.every.steps()) {
      const auto period = step / *options.every.steps();
      if (period <= last_) [[likely]] { return false; }
      last_ = period;
      return true;
    }
    if (options.every.epochs()) {
      const auto at = session.epoch();
      return at && at->is_last && (at->epoch + 1) % static_cast<std::uint64_t>(*options.every.epochs()) == 0;
    }
    if (!timer_.should_trigger_for_step(step)) { return false; }
    timer_.update_last_triggered_step(step);
    return true;
  }

  /// Makes the values of `step` the newest ones.
  void publish(const std::vector<double>& values, std::int64_t step, bool is_of_snapshot) {
    board->values = values;
    board->step = step;
    board->is_of_snapshot = is_of_snapshot;
    ++board->count;
    history_.add(values, step);
    publish_newest();
  }
  /// Publishes the values in effect for readers on other threads.
  void publish_newest() {
    std::vector<std::optional<double>> newest;
    for (const double value : board->values) { newest.push_back(if_set(value)); }
    publisher_.publish(newest, board->step);
  }

  /// Logs the values, displays them in the progress, and writes the summaries.
  void show(const outcome& evaluation, std::int64_t step, clock::duration took) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < evaluation.values.size(); ++i) {
      parts.push_back(board->names[i] + " = " + number_text(evaluation.values[i]));
    }
    const auto values = fmt::format("{}", fmt::join(parts, ", "));
    session_->show(options.name, fmt::format("{} at {}", values, step));
    if (options.log) {
      log_.add(session_->name(), now(),
               fmt::format("{} at step {}: {} ({} {}, {:.3f} s)", options.name, step, values, evaluation.batches,
                           evaluation.batches == 1 ? "call" : "calls", std::chrono::duration<double>(took).count()));
    }
    if (!summaries_) { return; }
    // The evaluation may have begun before the restored checkpoint was saved. The events up to its step remain valid.
    summaries_->note_start(std::max(step, first_step_));
    for (std::size_t i = 0; i < evaluation.values.size(); ++i) {
      summaries_->writer()->add_scalar(options.name + "/" + board->names[i], evaluation.values[i], step);
    }
  }
  [[nodiscard]] clock::time_point now() const { return time_->now(); }

  // ---- beside the training

  /// Puts the values of the previous evaluation into effect, and requests the next one.
  void publish_and_request(const session_requests& session, std::int64_t step) {
    collect();
    keep_found();
    if (pending_step_ >= 0 && is_pending_done_ != 0) { publish(pending_values_, pending_step_, true); }
    pending_step_ = step;
    is_pending_done_ = 0;
    found_step_ = -1;
    session.request_save(*this);
  }

  /// Copies the state, and starts its evaluation. If the process is about to end, leaves the evaluation to the run that continues.
  bool try_save(const boundary_state& at) override {
    if (pending_step_ != at.global_step || thread_.joinable() || session_->signals()->end_of_process()) { return true; }
    if (!buffers_) { buffers_ = snapshot_pool::on_demand(1, time_); }
    auto memory = buffers_->try_acquire();
    if (!memory) { return true; }  // not reached: `collect` has freed the only one
    taken_ = std::make_shared<const snapshot>(at.capture(std::move(*memory)));
    cancel_ = std::stop_source();
    {
      const mutex_lock lock(mutex_);
      has_ended_ = false;
    }
    auto started = start_thread("evaluation", [this, cancelled = cancel_.get_token(), name = session_->name()] {
      const log_scope named(name);
      set_thread_name(options.name);
      const auto begin = now();
      try {
        found_ = evaluate_snapshot(*taken_, cancelled);
      } catch (...) { failure_ = std::current_exception(); }
      took_ = now() - begin;
      {
        const mutex_lock lock(mutex_);
        has_ended_ = true;
      }
      ended_.notify_all();
    });
    thread_ = value_or_throw(std::move(started));
    return true;
  }

  /// Waits for the evaluation, if there is one, and shows its values. If the wait must end earlier, `until` or because the session or the
  /// process is about to end, drops the evaluation.
  /// @errors The failure of the evaluation. It is thrown once.
  void collect() {
    if (thread_.joinable()) { collect(deadline::never(*time_)); }
  }
  void collect(const deadline& until) {
    if (!thread_.joinable()) { return; }
    const auto end = [&] { return session_->end_of_waits(until).on(*time_); };
    const auto wait = [&](clock::time_point when, const std::stop_token& stop) {
      return wait_or_stop(*time_, mutex_, ended_, when, stop, [this]() STEPWELL_HOLDS(mutex_) { return has_ended_; });
    };
    if (!session_->signals()->wait_with_stop(end, wait)) { return drop(); }
    thread_.join();
    const auto evaluated = std::exchange(taken_, nullptr);
    if (cancel_.stop_requested()) { return static_cast<void>(failure_ = nullptr); }
    if (auto failure = std::exchange(failure_, nullptr)) {
      pending_step_ = -1;
      std::rethrow_exception(failure);
    }
    found_step_ = pending_step_;
    show(found_, pending_step_, took_);
    for (const auto& [owner, react] : board->on_evaluated_snapshot) { react(found_.values, *evaluated); }
  }
  /// Makes the collected values part of the saved state, if the step after them has been done. A checkpoint of the evaluated step itself never
  /// has them, whether the evaluation ended before it was written or later: a resumed session evaluates that state again.
  void keep_found() {
    if (is_pending_done_ != 0 || found_step_ < 0 || found_step_ != pending_step_ || reached_ <= found_step_) { return; }
    pending_values_ = found_.values;
    is_pending_done_ = 1;
  }

  /// Waits for the evaluation before the close. @errors `deadline_exceeded_error` if the evaluation takes too long, unless the process ends.
  void finish() {
    collect();
    if (dropped_step_ < 0 || session_->signals()->end_of_process()) { return; }
    throw deadline_exceeded_error(
        fmt::format("{}: the evaluation of step {} has not ended in time, so its values are missing; give the session a longer "
                    "stop_grace_period_secs",
                    options.name, dropped_step_));
  }
  void drain(const deadline& until) override {
    if (!cancel_.stop_requested()) { collect(until); }
  }
  /// Waits until the current batch is evaluated, because the model and the data need not outlive the session. The values are dropped.
  void detach() override { join(); }
  void write_ending(const run_ending& /*ending*/) override { log_.finish(session_->name()); }

  void add_history(std::vector<history_value>& all) const override { history_.add_to(all, options.name + "/"); }

  [[nodiscard]] variable_list variables() {
    collect();
    keep_found();
    variable_list all{{"step", board->step}, {"count", board->count}};
    for (std::size_t i = 0; i < board->names.size(); ++i) { all.emplace_back("value/" + board->names[i], board->values[i]); }
    history_.add_variables(all);
    all.emplace_back("pending/step", pending_step_);
    if (!evaluate_snapshot) { return all; }
    all.emplace_back("pending/done", is_pending_done_);
    for (std::size_t i = 0; i < board->names.size(); ++i) { all.emplace_back("pending/value/" + board->names[i], pending_values_[i]); }
    return all;
  }

private:
  [[nodiscard]] bool has_ended() {
    const mutex_lock lock(mutex_);
    return has_ended_;
  }
  void join() {
    cancel_.request_stop();
    if (!thread_.joinable()) { return; }
    if (!has_ended()) {
      log_warning(
          fmt::format("{}: the session waits until a batch of the evaluation of step {} ends, because the evaluated model and its "
                      "data may not outlive the session; smaller batches end sooner",
                      options.name, taken_->step()));
    }
    thread_.join();
  }
  /// Ends the evaluation after its current batch. The values are lost, unless a run continues from the evaluated state, and evaluates it.
  void drop() {
    if (!cancel_.request_stop()) { return; }
    dropped_step_ = taken_->step();
    warn_unfinished(dropped_step_);
    if (reached_ != dropped_step_) { pending_step_ = -1; }
  }
  void warn_unfinished(std::int64_t step) const {
    session_->log(log_level::warning,
                  fmt::format("{}: the evaluation of step {} takes too long, and the session must go on; {}", options.name, step,
                              reached_ == step ? "a run that continues from this step evaluates it again" : "its values are lost"));
  }
  void reset() {
    std::ranges::fill(board->values, unset_number);
    std::ranges::fill(pending_values_, unset_number);
  }
  void open_summaries(const session_requests& session) {
    if (!options.summaries || session.event_directory().empty()) { return; }
    if (!summaries_) { summaries_ = std::make_unique<summary_work>(summary_saver_options{.save_steps = 1}); }
    summaries_->begin_session(session);
  }

  std::optional<session_requests> session_;
  std::shared_ptr<clock> time_;
  std::int64_t first_step_ = 0;  // the first step of the session since its last creation
  std::int64_t last_ = 0;        // number of the last period of steps
  second_or_step_timer timer_;
  std::unique_ptr<summary_work> summaries_;  // null: no summaries
  rare_log log_{options.log_every_secs};
  value_publisher publisher_;
  value_history history_;

  std::int64_t reached_ = -1;     // the global step after the last run
  std::int64_t found_step_ = -1;  // the step of `found_` after the thread was joined; -1: there is none
  // The evaluation whose values are not in effect yet. `pending_step_` is -1 if there is none. These members change only while no
  // snapshot of the session is being taken.
  std::int64_t pending_step_ = -1;
  std::int64_t is_pending_done_ = 0;
  std::vector<double> pending_values_;

  std::optional<snapshot_pool> buffers_;
  std::shared_ptr<const snapshot> taken_;
  std::stop_source cancel_;         // a stop is requested if the values are dropped
  std::int64_t dropped_step_ = -1;  // the step of an evaluation that was dropped since the creation of the session; -1: none
  outcome found_;                   // written by the thread, like the two members below; read after it was joined
  std::exception_ptr failure_;
  clock::duration took_ = {};
  checked_mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ STEPWELL_GUARDED_BY(mutex_) = false;
  owned_thread thread_;
};

evaluations::evaluations(evaluate_every_options options, std::vector<std::string> names)
    : state_(std::make_shared<state>(std::move(options), std::move(names))) {}

evaluated_value evaluations::value(std::string_view name) const {
  const auto& names = state_->board->names;
  const auto position = std::ranges::find(names, name);
  if (position == names.end()) {
    throw invalid_argument_error(
        fmt::format("evaluate_every: there is no metric \"{}\"; the metrics are {}", name, fmt::join(names, ", ")));
  }
  return {state_->board, static_cast<std::size_t>(position - names.begin())};
}

std::vector<history_value> evaluations::history() const {
  std::vector<history_value> all;
  state_->add_history(all);
  return all;
}

variable_list evaluations::variables() { return state_->variables(); }
const std::string& evaluations::state_name() const noexcept { return state_->options.name; }
void evaluations::begin_session() noexcept { state_->board->has_session = true; }
void evaluations::check_is_other(const void* other, const void* trained) {
  if (other != trained) { return; }
  throw invalid_argument_error(
      "evaluate_every: beside(...) was given the model that the session trains; the evaluation would overwrite its variables; give it a "
      "second object of the same type");
}
bool evaluations::start(const session_requests& session, std::int64_t step) { return state_->start(session, step); }
bool evaluations::take_due(const session_requests& session, std::int64_t step) { return state_->take_due(session, step); }

void evaluations::evaluate_here(const session_requests& session, std::int64_t step, evaluate_function evaluate) {
  state_->evaluate_here(session, step, evaluate);
}

void evaluations::evaluate_beside(const session_requests& session, std::int64_t step) { state_->publish_and_request(session, step); }
void evaluations::set_evaluation_of_snapshots(evaluate_snapshot_function evaluate) { state_->evaluate_snapshot = std::move(evaluate); }
void evaluations::finish() {
  state_->board->has_session = false;
  state_->finish();
}

}  // namespace stepwell::detail
