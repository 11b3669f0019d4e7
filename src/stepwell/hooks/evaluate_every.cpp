// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/evaluate_every.hpp"

#include "stepwell/base/detail/locks.hpp"
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

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <set>
#include <stop_token>

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

/// The part that the evaluations in the loop and those beside the training share: when one is due, and where its values go.
class evaluations::state : public boundary_work, public std::enable_shared_from_this<evaluations::state> {
public:
  state(evaluate_every_options given, std::vector<std::string> names) : options(std::move(given)), history_(names, options.name + "/") {
    check(options, names);
    board->values.assign(names.size(), unset_number);
    board->names = std::move(names);
  }

  const evaluate_every_options options;
  const std::shared_ptr<evaluation_board> board = std::make_shared<evaluation_board>();
  /// The step of the evaluation whose values are not in effect yet; -1: none. A part of the saved state.
  std::int64_t pending_step = -1;

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

  void write_ending(const run_ending& /*ending*/) override { log_.finish(session_->name()); }
  void add_history(std::vector<history_value>& all) const override { history_.add_to(all); }

  [[nodiscard]] virtual variable_list variables() {
    variable_list all{{"step", board->step}, {"count", board->count}};
    for (std::size_t i = 0; i < board->names.size(); ++i) { all.emplace_back("value/" + board->names[i], board->values[i]); }
    history_.add_variables(all);
    all.emplace_back("pending/step", pending_step);
    return all;
  }

  void begin(const session_requests& session, std::int64_t step) {
    session_ = session;
    time_ = session.time();
    first_step_ = step + 1;
    reached_ = step;
    last_ = options.every.steps() ? step / *options.every.steps() : 0;
    if (options.every.time()) {
      timer_ = second_or_step_timer({.every_secs = options.every.time()->duration()}, session.time());
      timer_.update_last_triggered_step(step);
    }
    if (options.summaries && !session.event_directory().empty()) {
      if (!summaries_) { summaries_ = std::make_unique<summary_work>(summary_saver_options{.save_steps = 1}); }
      summaries_->begin_session(session);
    }
    session.add_work(shared_from_this());
    history_.start(session, board->values, board->step);
  }

  /// Makes the values of `step` the newest ones, for hooks and for readers on other threads.
  void publish(const std::vector<double>& values, std::int64_t step, bool is_of_snapshot) {
    board->values = values;
    board->step = step;
    board->is_of_snapshot = is_of_snapshot;
    ++board->count;
    history_.add(values, step);
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
  void warn_unfinished(std::int64_t step) const {
    session_->log(log_level::warning,
                  fmt::format("{}: the evaluation of step {} takes too long, and the session must go on; {}", options.name, step,
                              reached_ == step ? "a run that continues from this step evaluates it again" : "its values are lost"));
  }

  [[nodiscard]] const session_requests& session() const noexcept { return *session_; }
  [[nodiscard]] clock& time() const noexcept { return *time_; }
  [[nodiscard]] clock::time_point now() const { return time_->now(); }
  /// Returns the global step after the last run.
  [[nodiscard]] std::int64_t reached() const noexcept { return reached_; }

private:
  std::optional<session_requests> session_;
  std::shared_ptr<clock> time_;
  std::int64_t first_step_ = 0;  // the first step of the session since its last creation
  std::int64_t reached_ = -1;
  std::int64_t last_ = 0;  // number of the last period of steps
  second_or_step_timer timer_;
  std::unique_ptr<summary_work> summaries_;  // null: no summaries
  rare_log log_{options.log_every_secs};
  value_history history_;
};

evaluations::evaluations(std::shared_ptr<state> made) : state_(std::move(made)) {}

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
void evaluations::begin() noexcept { state_->board->has_session = true; }
bool evaluations::take_due(const session_requests& session, std::int64_t step) { return state_->take_due(session, step); }
void evaluations::finish() noexcept { state_->board->has_session = false; }

// ---- in the loop

loop_evaluations::loop_evaluations(evaluate_every_options options, std::vector<std::string> names)
    : evaluations(std::make_shared<state>(std::move(options), std::move(names))) {}

bool loop_evaluations::start(const session_requests& session, std::int64_t step) {
  auto& all = of<state>();
  // A chief may evaluate alone. Other processes of a group evaluate in the loop only if all processes do.
  if (all.options.every.time() && session.group() && session.group()->rank() != 0) {
    throw failed_precondition_error(
        "evaluate_every: the processes of a group must evaluate after the same steps; give a period in steps or epochs, or give the hook to the "
        "chief only, see chief_only");
  }
  all.begin(session, step);
  all.board->is_repeated = all.pending_step == step;
  if (!all.board->is_repeated) { all.pending_step = -1; }
  return all.board->is_repeated;
}

void loop_evaluations::evaluate(const session_requests& session, std::int64_t step, evaluate_function evaluate) {
  auto& all = of<state>();
  bool is_stopped = false;
  const auto begin = all.now();
  const bool is_shared = session.group() && session.group()->size() > 1;  // the others could wait for sums of this evaluation
  const auto evaluation = evaluate([&] {
    is_stopped = !is_shared && session.signals()->end_of_process() && session.end_of_waits().remaining() == clock::duration::zero();
    return is_stopped;
  });
  all.pending_step = is_stopped ? step : -1;
  if (is_stopped) { return all.warn_unfinished(step); }
  all.show(evaluation, step, all.now() - begin);
  all.publish(evaluation.values, step, false);
}

// ---- beside the training

namespace {

/// The evaluation of a snapshot on a thread of its own.
class evaluation_thread {
public:
  /// Calls `evaluate` on the thread. `name` is that of the hook.
  /// @errors `resource_exhausted_error` if there is no thread.
  evaluation_thread(snapshot taken, const beside_evaluations::evaluate_function& evaluate, const std::string& name,
                    const std::string& session, std::shared_ptr<clock> time)
      : taken_(std::move(taken)), time_(std::move(time)) {
    thread_ = value_or_throw(start_thread("evaluation", [this, &evaluate, &name, session] {
      const log_scope named(session);
      set_thread_name(name);
      const auto begin = time_->now();
      try {
        found_ = evaluate(taken_, cancel_.get_token());
      } catch (...) { failure_ = std::current_exception(); }
      took_ = time_->now() - begin;
      {
        const mutex_lock lock(mutex_);
        has_ended_ = true;
      }
      ended_.notify_all();
    }));
  }
  evaluation_thread(const evaluation_thread&) = delete;
  evaluation_thread& operator=(const evaluation_thread&) = delete;
  /// Waits until the current batch is evaluated.
  ~evaluation_thread() {
    cancel();
    thread_.join();
  }

  [[nodiscard]] const snapshot& taken() const noexcept { return taken_; }
  /// Makes the evaluation end after its current batch. Returns false if this was done before.
  bool cancel() noexcept { return cancel_.request_stop(); }
  [[nodiscard]] bool is_cancelled() const noexcept { return cancel_.stop_requested(); }
  [[nodiscard]] bool has_ended() {
    const mutex_lock lock(mutex_);
    return has_ended_;
  }
  /// Waits until the evaluation has ended. Returns false if it has not ended at `until`, or when a stop is requested.
  [[nodiscard]] bool wait(clock::time_point until, const std::stop_token& stop) {
    return wait_or_stop(*time_, mutex_, ended_, until, stop, [this]() STEPWELL_HOLDS(mutex_) { return has_ended_; });
  }

  // The results. @pre `has_ended()`.
  [[nodiscard]] const evaluations::outcome& found() const noexcept { return found_; }
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  [[nodiscard]] clock::duration took() const noexcept { return took_; }

private:
  const snapshot taken_;
  std::shared_ptr<clock> time_;
  std::stop_source cancel_;
  evaluations::outcome found_;
  std::exception_ptr failure_;
  clock::duration took_ = {};
  checked_mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ STEPWELL_GUARDED_BY(mutex_) = false;
  owned_thread thread_;  // last member: it uses the others
};

}  // namespace

class beside_evaluations::work final : public evaluations::state {
public:
  work(evaluate_every_options given, std::vector<std::string> names, evaluate_function evaluate)
      : state(std::move(given), std::move(names)), evaluate_(std::move(evaluate)), pending_values_(board->names.size(), unset_number) {}
  work(const work&) = delete;
  work& operator=(const work&) = delete;
  ~work() override { join(); }

  void start(const session_requests& session, std::int64_t step) {
    begin(session, step);
    collect();  // an evaluation that a recovery did not wait for
    dropped_step_.reset();
    keep_found();
    if (pending_step < 0 || is_pending_done_ != 0) { return; }
    if (pending_step != step) {
      pending_step = -1;
    } else {  // the checkpoint was saved when the evaluation of this state was due
      found_.reset();
      session.request_save(*this);
    }
  }

  /// Puts the values of the previous evaluation into effect, and requests the next one.
  void publish_and_request(const session_requests& session, std::int64_t step) {
    collect();
    keep_found();
    if (pending_step >= 0 && is_pending_done_ != 0) { publish(pending_values_, pending_step, true); }
    pending_step = step;
    is_pending_done_ = 0;
    found_.reset();
    session.request_save(*this);
  }

  /// Copies the state, and starts its evaluation. If the process is about to end, leaves the evaluation to the run that continues.
  bool try_save(const boundary_state& at) override {
    if (pending_step != at.global_step || running_ || session().signals()->end_of_process()) { return true; }
    if (!buffers_) { buffers_ = snapshot_pool::on_demand(1, session().time()); }
    auto memory = buffers_->try_acquire();
    if (!memory) { return true; }  // not reached: `collect` has freed the only one
    running_ =
        std::make_unique<evaluation_thread>(at.capture(std::move(*memory)), evaluate_, options.name, session().name(), session().time());
    return true;
  }

  /// Waits for the evaluation before the close. @errors `deadline_exceeded_error` if the evaluation takes too long, unless the process ends.
  void finish() {
    collect();
    if (!dropped_step_ || session().signals()->end_of_process()) { return; }
    throw deadline_exceeded_error(
        fmt::format("{}: the evaluation of step {} has not ended in time, so its values are missing; give the session a longer "
                    "stop_grace_period_secs",
                    options.name, *dropped_step_));
  }
  void drain(const deadline& until) override {
    if (running_ && !running_->is_cancelled()) { collect(until); }
  }
  /// Waits until the current batch is evaluated, because the model and the data need not outlive the session. The values are dropped.
  void detach() override { join(); }

  [[nodiscard]] variable_list variables() override {
    collect();
    keep_found();
    auto all = state::variables();
    all.emplace_back("pending/done", is_pending_done_);
    for (std::size_t i = 0; i < board->names.size(); ++i) { all.emplace_back("pending/value/" + board->names[i], pending_values_[i]); }
    return all;
  }

private:
  struct found_values {
    std::vector<double> values;
    std::int64_t step;
  };

  /// Waits for the evaluation, if there is one, and shows its values. If the wait must end earlier, `until` or because the session or the
  /// process is about to end, drops the evaluation.
  /// @errors The failure of the evaluation. It is thrown once.
  void collect() {
    if (running_) { collect(deadline::never(time())); }
  }
  void collect(const deadline& until) {
    const auto end = [&] { return session().end_of_waits(until).on(time()); };
    const auto wait = [&](clock::time_point when, const std::stop_token& stop) { return running_->wait(when, stop); };
    if (!session().signals()->wait_with_stop(end, wait)) { return drop(); }
    const auto ended = std::exchange(running_, nullptr);
    if (ended->is_cancelled()) { return; }
    if (ended->failure()) {
      pending_step = -1;
      std::rethrow_exception(ended->failure());
    }
    found_ = found_values{ended->found().values, pending_step};
    show(ended->found(), pending_step, ended->took());
    for (const auto& [owner, react] : board->on_evaluated_snapshot) { react(found_->values, ended->taken()); }
  }
  /// Makes the collected values part of the saved state, if the step after them has been done. A checkpoint of the evaluated step itself never
  /// has them, whether the evaluation ended before it was written or later: a resumed session evaluates that state again.
  void keep_found() {
    if (is_pending_done_ != 0 || !found_ || found_->step != pending_step || reached() <= found_->step) { return; }
    pending_values_ = found_->values;
    is_pending_done_ = 1;
  }
  /// Ends the evaluation after its current batch. The values are lost, unless a run continues from the evaluated state, and evaluates it.
  void drop() {
    if (!running_->cancel()) { return; }
    dropped_step_ = running_->taken().step();
    warn_unfinished(*dropped_step_);
    if (reached() != *dropped_step_) { pending_step = -1; }
  }
  void join() {
    if (!running_) { return; }
    running_->cancel();
    if (!running_->has_ended()) {
      log_warning(
          fmt::format("{}: the session waits until a batch of the evaluation of step {} ends, because the evaluated model and its "
                      "data may not outlive the session; smaller batches end sooner",
                      options.name, running_->taken().step()));
    }
    running_.reset();
  }

  const evaluate_function evaluate_;
  // The saved state: whether the values of `pending_step` are known, and these values. These members and `pending_step` change only while
  // no snapshot of the session is being taken.
  std::int64_t is_pending_done_ = 0;
  std::vector<double> pending_values_;

  std::optional<found_values> found_;         // of the last evaluation that has ended
  std::optional<std::int64_t> dropped_step_;  // of an evaluation that was dropped since the creation of the session
  std::optional<snapshot_pool> buffers_;
  std::unique_ptr<evaluation_thread> running_;  // null: no evaluation runs
};

beside_evaluations::beside_evaluations(evaluate_every_options options, std::vector<std::string> names, evaluate_function evaluate)
    : evaluations(std::make_shared<work>(std::move(options), std::move(names), std::move(evaluate))) {}
void beside_evaluations::check_is_other(const void* other, const void* trained) {
  if (other != trained) { return; }
  throw invalid_argument_error(
      "evaluate_every: beside(...) was given the model that the session trains; the evaluation would overwrite its variables; give it a "
      "second object of the same type");
}
void beside_evaluations::start(const session_requests& session, std::int64_t step) { of<work>().start(session, step); }
void beside_evaluations::evaluate(const session_requests& session, std::int64_t step) { of<work>().publish_and_request(session, step); }
void beside_evaluations::finish() {
  evaluations::finish();
  of<work>().finish();
}

}  // namespace stepwell::detail
