// SPDX-License-Identifier: Apache-2.0
//
// Options and results of evaluations, and their implementation as far as it depends on neither model nor hooks.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/checkpoints_iterator.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/stop.hpp"
#include "stepwell/model/restore_model.hpp"
#include "stepwell/session/session_settings.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace stepwell {

/// Options of an evaluation. Every option has a default.
struct evaluation_options {
  std::optional<std::int64_t> num_evals = std::nullopt;  ///< Number of steps. Empty: until the end of the data.
  bool log_progress = true;
  restore_options restore = {};  ///< For example averages instead of variables: `ema_names`.
  std::stop_token stop_token = {};
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< Null: the clock of the machine.
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< Null: the file system of the machine.
};

/// Options of `evaluate_repeatedly`. Every option has a default.
struct repeated_evaluation_options {
  evaluation_options evaluation = {};
  seconds_value eval_interval_secs = 60;                                 ///< Minimum time between two evaluations.
  std::optional<std::int64_t> max_number_of_evaluations = std::nullopt;  ///< Empty: no limit.
  std::optional<seconds_value> timeout = std::nullopt;                   ///< Limit for waiting for a new checkpoint. Empty: none.
  std::function<bool()> timeout_fn = nullptr;                            ///< See `checkpoints_iterator_options`.
  seconds_value seconds_to_sleep = 1;                                    ///< Interval between two polls of the directory.
  /// Token that signals that no more checkpoints will come. The current evaluation is finished, then the checkpoint found by one last poll
  /// of the directory is evaluated, and the range ends. `evaluation.stop_token` ends all of this at once.
  std::stop_token stop_token = {};
  bool all_listed = false;  ///< Evaluate every listed checkpoint, oldest first; see `checkpoints_iterator_options`.
};

/// Result of an evaluation. `Values` is the tuple of the final ops' values.
template<class Values>
struct evaluation {
  std::string checkpoint_path;
  std::int64_t global_step;     ///< Step of the checkpoint; 0 if unknown.
  std::int64_t evals;           ///< Number of steps made.
  stepwell::stop_reason ended;  ///< Reason for the end.
  std::optional<Values> final_ops_values;
};

namespace detail {

/// The checkpoint that a model was restored from.
struct restored_evaluation {
  std::string checkpoint_path;
  std::int64_t global_step;
};

[[nodiscard]] checkpoint_reader open_checkpoint(const std::string& prefix, const evaluation_options& options);
/// Opens and verifies a checkpoint. If it was deleted or is damaged, writes a log line and returns nothing.
[[nodiscard]] std::optional<checkpoint_reader> open_if_whole(const std::string& prefix, const evaluation_options& options);
[[nodiscard]] session_settings settings_of(const evaluation_options& options);
[[nodiscard]] checkpoints_iterator_options following_of(const repeated_evaluation_options& options);

template<class Model>
[[nodiscard]] restored_evaluation restore_for_evaluation(Model& model, const checkpoint_reader& reader, const evaluation_options& options) {
  stepwell::restore(model, reader, options.restore);
  return {reader.prefix(), reader.step().value_or(0)};
}

/// Hook that prevents saves requested by other hooks.
struct saves_nothing_hook {
  static constexpr auto phase = hook_phase::observe;
  void after_create_session(auto& session, auto& /*threads*/) const { session.reject_state("an evaluation does not save checkpoints"); }
};

/// Logs the begin and the end of an evaluation.
class evaluation_report {
public:
  evaluation_report(const std::string& checkpoint_path, const evaluation_options& options);
  void finish(std::int64_t evals) const;

private:
  const std::string& checkpoint_path_;
  std::shared_ptr<stepwell::clock> clock_;
  stepwell::clock::time_point started_;
};

}  // namespace detail
}  // namespace stepwell
