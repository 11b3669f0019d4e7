// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/best_checkpoint_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/hook/boundary.hpp"
#include "stepwell/hook/session_signals.hpp"
#include "stepwell/hooks/detail/rare_log.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"

#include <fmt/format.h>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <vector>

namespace stepwell {
namespace detail {

/// A tensor of a snapshot. As a variable it can only be read.
struct snapshot_element {
  tensor_view view;
};

}  // namespace detail

template<>
struct tensor_adapter<detail::snapshot_element> {
  static constexpr bool is_writable = true;  // required of variables; a capture only reads them
  static constexpr bool is_borrowed = true;

  static tensor_view view(const detail::snapshot_element& value) { return value.view; }
};

namespace detail {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw invalid_argument_error("best_checkpoint_hook: " + why); }

void check(const best_checkpoint_options& options) {
  if (options.keep < 1) { refuse(fmt::format("invalid keep={}; it must be above zero", options.keep)); }
  if (!(options.min_delta >= 0)) { refuse(fmt::format("invalid min_delta={}; it must not be negative", options.min_delta)); }
  if (options.every_n_steps < 1) { refuse(fmt::format("invalid every_n_steps={}; it must be above zero", options.every_n_steps)); }
  if (options.name.empty() || options.name.find('/') != std::string::npos || options.name.starts_with('.')) {
    refuse("invalid name=\"" + options.name + "\"; it must be the name of a directory, without slashes and not beginning with a dot");
  }
  refuse_negative("log_every_secs", options.log_every_secs);
  if (options.saver.pool) { refuse("saver.pool is given; the hook has its own thread, on which other saves can wait for its saves"); }
  check_saver_options(options.saver);
}

saver_options completed(saver_options given, int keep, const std::shared_ptr<clock>& time) {
  given.basename = default_checkpoint_basename;
  given.max_to_keep = keep;
  given.max_staged_bytes = 0;
  given.when_busy = when_busy::wait;
  given.pool = std::make_shared<io::pool>(1);
  if (!given.clock) { given.clock = time; }
  return given;
}

/// References to the variables of a snapshot, with which it can be copied.
struct snapshot_variables {
  explicit snapshot_variables(const snapshot& taken) {
    const auto entries = taken.entries();
    strings.reserve(entries.size());
    for (const auto& entry : entries) {
      if (entry.dtype == dtype::string) {
        strings.push_back(entry.strings);
        all.emplace_back(std::string(entry.name), std::span(strings.back()), tensor_shape(entry.shape));
      } else {
        all.emplace_back(std::string(entry.name), snapshot_element{{entry.dtype, entry.shape, entry.bytes}});
      }
    }
  }
  std::vector<std::vector<std::string>> strings;
  variable_list all;
};

}  // namespace

/// The saver of the best checkpoints.
class best_work final : public boundary_work {
public:
  best_work(std::string what, const best_checkpoint_options& options) : what_(std::move(what)), options_(options) {}

  /// Locks the directory, unless this object has locked it already.
  void open(const session_requests& session) {
    if (saver_) { return; }
    const auto& directory = options_.directory.empty() ? session.directory() : options_.directory;
    if (directory.empty()) {
      throw failed_precondition_error(
          "best_checkpoint_hook: this session has no directory; give it a checkpoint_dir, or give the hook a directory. A worker has none: "
          "give the hook to the chief, see chief_only");
    }
    {
      const std::lock_guard lock(reported_mutex_);
      saver_.emplace(io::join_path(directory, options_.name), completed(options_.saver, options_.keep, session.time()));
      buffers_ = snapshot_pool::on_demand(1, saver_->options().clock);
    }
    durable_ = best_checkpoint(directory, options_.name, saver_->options().file_system);
    best_ = durable_;
    if (durable_ && !session.restored_from()) {
      log_warning(
          fmt::format("{}: this training begins anew, but the directory holds a checkpoint of an earlier one, with {} = {} at step "
                      "{}; only a better state is saved. Remove the directory to begin anew",
                      saver_->directory(), what_, number_text(durable_->value), durable_->step));
    }
  }

  void attach(const session_requests& session) {
    session_ = session;
    signals_ = session.signals();
    saver_->on_failure([this](const std::exception_ptr&) { signals_->notify(); });
  }

  [[nodiscard]] const std::optional<scored_checkpoint>& best() const noexcept { return best_; }
  [[nodiscard]] bool has_value() const noexcept { return has_value_; }
  [[nodiscard]] const std::string& what() const noexcept { return what_; }

  /// Adds a value. Returns true if the state of `step` should be saved.
  [[nodiscard]] bool add(double value, std::int64_t step) {
    has_value_ = true;
    if (!is_better(value)) { return false; }
    wanted_ = candidate{step, value};
    return true;
  }
  /// Adds a value of a state that is no longer the current one, and saves the state if it is the best. Blocks while an earlier state is
  /// written.
  void add_snapshot(double value, const snapshot& evaluated) {
    if (!add(value, evaluated.step())) { return; }
    save(snapshot_variables(evaluated).all, evaluated.step(), buffers_->acquire(), nullptr);
  }

  bool try_save(const boundary_state& state) override {
    if (!wanted_ || wanted_->step > state.global_step) { return true; }
    auto buffer = buffers_->try_acquire();
    if (!buffer) { return false; }
    // The step is later than that of `wanted_` if workers have stepped the model since the run.
    save(state.variables, state.global_step, std::move(*buffer), state.fence);
    return true;
  }
  void wait_ready(const deadline& until, const std::stop_token& /*stop*/) override {
    auto& time = *saver_->options().clock;
    if (buffers_->acquire_until(time, until.on(time))) { return; }
    throw deadline_exceeded_error(
        "the best state cannot be saved because an earlier save has not ended; the disk is too slow, or does not respond",
        saver_->directory());
  }
  /// Other checkpoints are committed after the best ones that were accepted before.
  std::function<void()> start_flush() override { return saver_->waits_for_accepted(); }

  void process_events() override {
    if (has_failed_->exchange(false)) { best_ = durable_; }
    saver_->throw_if_failed();
  }
  void drain(const deadline& until) override {
    saver_->drain(until.on(*saver_->options().clock));
    process_events();
  }
  void write_ending(const run_ending& /*ending*/) override { log_.finish(*session_); }
  void flush(const deadline& /*until*/) override { close(); }
  void detach() override {
    if (saver_) { saver_->detach(); }
  }
  void hold_until_released(const std::shared_ptr<void>& hold) override {
    if (saver_) { saver_->hold_until_released(hold); }
  }
  void report(session_metrics& all) const override {
    const std::lock_guard lock(reported_mutex_);
    if (!saver_) { return; }
    all.under_way += saver_->backlog();
    all.snapshot_bytes += buffers_->held_bytes();
  }

private:
  /// A value, and the step of the state that has it.
  struct candidate {
    std::int64_t step;
    double value;
  };

  [[nodiscard]] bool is_better(double value) const noexcept {
    if (std::isnan(value)) { return false; }
    if (!best_) { return true; }
    return options_.mode == metric_mode::minimize ? value < best_->value - options_.min_delta : value > best_->value + options_.min_delta;
  }

  void save(variable_list variables, std::int64_t step, snapshot_pool::buffer memory, update_fence* fence) {
    const auto prefix = io::join_path(saver_->directory(), fmt::format("{}-{}", default_checkpoint_basename, step));
    scored_checkpoint made{prefix, step, std::exchange(wanted_, std::nullopt)->value};
    variables.push_back(variable_ref(std::string(best_value_name), made.value).early());
    auto taken = fence != nullptr ? snapshot::capture(std::move(memory), variables, step, *fence)
                                  : snapshot::capture(std::move(memory), variables, step);
    if (!has_failed_->exchange(false)) { durable_ = best_; }  // a free buffer means that the previous save has ended
    saver_->save(std::move(taken), nullptr, [failed = has_failed_](const snapshot&) { *failed = true; });
    announce(made);
    best_ = std::move(made);
  }

  /// Displays and logs the new best value.
  void announce(const scored_checkpoint& made) {
    const auto value = fmt::format("{} {}", what_, number_text(made.value));
    signals_->show(options_.name, value);
    log_.add(*session_, saver_->options().clock->now(), fmt::format("{}: {} at step {}", options_.name, value, made.step));
  }

  /// Releases the directory for the next session, even if this object lives on.
  void close() {
    saver_->close();
    const std::lock_guard lock(reported_mutex_);
    saver_.reset();
    buffers_.reset();
  }

  std::string what_;
  best_checkpoint_options options_;
  std::shared_ptr<session_signals> signals_;
  std::optional<snapshot_pool> buffers_;
  std::optional<scored_checkpoint> best_;     // saved or being saved
  std::optional<scored_checkpoint> durable_;  // the last one known to be saved
  std::optional<candidate> wanted_;           // better than `best_`; saved at the next boundary
  bool has_value_ = false;
  // True if the save of `best_` has failed. Shared with the saver, which may outlive this object.
  std::shared_ptr<std::atomic<bool>> has_failed_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<session_requests> session_;
  rare_log log_{options_.log_every_secs};
  mutable std::mutex reported_mutex_;     // held while `saver_` and `buffers_` are replaced, because `report` runs on any thread
  std::optional<stepwell::saver> saver_;  // last member, because its thread uses the members above
};

best_checkpoints::best_checkpoints(std::string what, best_checkpoint_options options) : options_(std::move(options)) {
  check(options_);
  work_ = std::make_shared<best_work>(std::move(what), options_);
}

std::optional<scored_checkpoint> best_checkpoints::best() const { return work_->best(); }

void best_checkpoints::start(const session_requests& session, std::int64_t step) {
  looked_at_ = step / options_.every_n_steps;
  work_->open(session);
  work_->attach(session);
  session.add_work(work_);
}

void best_checkpoints::take(const session_requests& session, double value, std::int64_t step) {
  looked_at_ = step / options_.every_n_steps;
  if (work_->add(value, step)) { session.request_save(*work_); }
}

std::function<void(double, const snapshot&)> best_checkpoints::taker_of_snapshots() const {
  return [work = std::weak_ptr(work_)](double value, const snapshot& evaluated) {
    if (const auto held = work.lock()) { held->add_snapshot(value, evaluated); }
  };
}

void best_checkpoints::finish(const session_requests& session) const {
  const auto why = session.signals()->why().cause;
  const bool was_interrupted = ending_after(why) == session_ending::interrupted;
  if (!has_run_ || was_interrupted || work_->has_value() || work_->best()) { return; }
  throw failed_precondition_error(fmt::format(
      "best_checkpoint_hook: {} never had a value, so no checkpoint was saved as the best; train until the first evaluation, or check that "
      "the watched value is not always empty",
      work_->what()));
}

}  // namespace detail
}  // namespace stepwell
