// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/early_stopping_hook.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/state_names.hpp"

#include <fmt/format.h>
#include <cmath>
#include <memory>
#include <utility>

namespace stepwell::detail {
namespace {

/// Restores the best state when the session ends, after all checkpoints are durable.
class restore_work final : public boundary_work {
public:
  restore_work(std::string directory, std::shared_ptr<io::file_system> files,
               std::function<void(function_ref<void(const variable_list&)>)> with_variables)
      : directory_(std::move(directory)), files_(std::move(files)), with_variables_(std::move(with_variables)) {}

  void write_ending(const run_ending& ending) override {
    if (ending.how != session_ending::finished) { return; }
    const auto best = latest_whole_checkpoint(directory_, default_checkpoint_basename, files_);
    if (!best) {
      throw not_found_error(
          "early_stopping_hook: restore_best is set, but no best state was saved, because the value that the best_checkpoint_hook watches "
          "was never a number; check the learning rate and the data",
          directory_);
    }
    if (const auto newest = latest_checkpoint(directory_, files_); newest != best->prefix()) {
      throw data_loss_error(
          "early_stopping_hook: the best state is lost: its checkpoint is missing or damaged, and all others have worse states; nothing is "
          "restored",
          newest.value_or(directory_));
    }
    with_variables_([&](const variable_list& all) {
      variable_list model;
      for (const auto& variable : all) {
        if (variable.name() != global_step_name) { model.push_back(variable); }
      }
      stepwell::restore(model, *best);
    });
    log_info("restored the best state, " + best->prefix());
  }

private:
  std::string directory_;
  std::shared_ptr<io::file_system> files_;
  std::function<void(function_ref<void(const variable_list&)>)> with_variables_;
};

}  // namespace

early_stopping::early_stopping(std::string what, early_stopping_options options)
    : what_(std::move(what)), options_(std::move(options)), loss_name_(options_.name + ": generalization loss") {
  const auto refuse = [](std::string why) { throw invalid_argument_error("early_stopping_hook: " + std::move(why)); };
  if (!options_.patience && !options_.generalization_loss) { refuse("one of patience and generalization_loss must be given"); }
  if (options_.patience && *options_.patience < 1) {
    refuse(fmt::format("invalid patience={}; it must be above zero", *options_.patience));
  }
  if (!(options_.min_delta >= 0)) { refuse(fmt::format("invalid min_delta={}; it must not be negative", options_.min_delta)); }
  if (options_.every_n_steps < 1) { refuse(fmt::format("invalid every_n_steps={}; it must be above zero", options_.every_n_steps)); }
  if (options_.name.empty()) { refuse("the name is empty; the state of the hook is saved under this name"); }
  options_.best_directory = value_or_throw(io::absolute_path(options_.best_directory));
  if (!options_.generalization_loss) { return; }
  if (!(*options_.generalization_loss >= 0)) {
    refuse(fmt::format("invalid generalization_loss={}; it must not be negative", *options_.generalization_loss));
  }
  if (options_.mode == early_stopping_mode::maximize) { refuse("generalization_loss cannot be used with mode maximize"); }
}

void early_stopping::begin() noexcept {
  best_ = lowest_ = last_ = 0;
  best_step_ = -1;
  waited_ = 0;
}

bool early_stopping::is_improvement(double value) const noexcept {
  if (std::isnan(value)) { return false; }
  if (best_step_ < 0) { return true; }
  return options_.mode == early_stopping_mode::minimize ? value < best_ - options_.min_delta : value > best_ + options_.min_delta;
}

void early_stopping::start(const session_requests& session) {
  if (options_.patience) {
    session.note_stop_condition({.name = options_.name,
                                 .text = fmt::format("ends when {} values of {} in a row are not better", *options_.patience, what_),
                                 .unit = "values",
                                 .limit = static_cast<double>(*options_.patience)});
  }
  if (options_.generalization_loss) {
    session.note_stop_condition({.name = loss_name_,
                                 .text = fmt::format("ends when {} is {:g} % above its lowest value", what_, *options_.generalization_loss),
                                 .unit = "%",
                                 .limit = *options_.generalization_loss});
  }
  stop_if_over(session);
}

std::string early_stopping::best_directory(const session_requests& session) const {
  return io::join_path(options_.best_directory.empty() ? session.directory() : options_.best_directory, options_.best_name);
}

/// Returns the file system that a `best_checkpoint_hook` without options uses for this directory.
std::shared_ptr<io::file_system> early_stopping::best_files(const session_requests& session) const {
  const bool is_of_session = options_.best_directory.empty() || options_.best_directory == session.directory();
  return is_of_session && session.file_system() ? session.file_system() : io::posix_file_system();
}

/// Checks that a `best_checkpoint_hook` has created the directory of the best checkpoints.
void early_stopping::check_best_directory(const session_requests& session) {
  if (!options_.restore_best || std::exchange(is_checked_, true)) { return; }
  const auto directory = best_directory(session);
  if (best_files(session)->stat(directory)) { return; }
  throw failed_precondition_error(
      "early_stopping_hook: restore_best is set, but nothing saves best checkpoints in this directory; add a best_checkpoint_hook to the "
      "session, and give both hooks the same name and directory",
      directory);
}

void early_stopping::take(const session_requests& session, const number_of_step& taken) {
  const auto [value, step] = taken;
  check_best_directory(session);
  if (options_.generalization_loss && value < 0) {
    throw invalid_argument_error(
        fmt::format("early_stopping_hook: {} is {} at step {}; generalization_loss compares by "
                    "division and needs values that are not negative; use patience",
                    what_, number_text(value), step));
  }
  last_ = value;
  if (!std::isnan(value) && (best_step_ < 0 || value < lowest_)) { lowest_ = value; }
  if (is_improvement(value)) {
    best_ = value;
    best_step_ = step;
    waited_ = 0;
  } else {
    ++waited_;
  }
  stop_if_over(session);
}

/// Returns the generalization loss in per cent. Infinite if the lowest value is zero, NaN if the last value is NaN.
double early_stopping::loss_now() const noexcept {
  if (best_step_ < 0 || last_ == lowest_) { return 0; }
  return 100 * (last_ / lowest_ - 1);
}

void early_stopping::stop_if_over(const session_requests& session) const {
  session.note_stop_progress(options_.name, static_cast<double>(waited_));
  if (options_.generalization_loss) { session.note_stop_progress(loss_name_, loss_now()); }
  const bool is_patience_over = options_.patience && waited_ >= *options_.patience;
  const bool is_loss_reached = options_.generalization_loss && loss_now() > *options_.generalization_loss;
  if (!is_patience_over && !is_loss_reached) { return; }
  const auto best = best_step_ < 0 ? what_ + " was never a number"
                                   : fmt::format("the best value of {} was {} at step {}", what_, number_text(best_), best_step_);
  const auto why = is_patience_over
                       ? fmt::format("none of the {} values since then is better{}", waited_,
                                     options_.min_delta > 0 ? fmt::format(" by more than {:g}", options_.min_delta) : "")
                       : fmt::format("now it is {}, a generalization loss of {} %", number_text(last_), number_text(loss_now()));
  session.request_stop({stop_cause::no_progress, fmt::format("early stopping: {}; {}", best, why)});
}

void early_stopping::restore_at_end(const session_requests& session, std::function<void(variables_user)> with_variables) const {
  session.add_work(std::make_shared<restore_work>(best_directory(session), best_files(session), std::move(with_variables)));
}

variable_list early_stopping::variables() {
  return stepwell::variables({{"best", best_}, {"best_step", best_step_}, {"lowest", lowest_}, {"last", last_}, {"waited", waited_}});
}

}  // namespace stepwell::detail
