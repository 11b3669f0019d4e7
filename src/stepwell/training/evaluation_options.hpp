// SPDX-License-Identifier: Apache-2.0
//
// What an evaluation is told, what it answers, and the part of it that depends on neither model nor hooks.
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

/// Everything has a default.
struct evaluation_options {
  std::optional<std::int64_t> num_evals = std::nullopt;  ///< Steps; not said: until the data ends.
  bool log_progress = true;
  restore_options restore = {};  ///< E.g. averages in the place of variables: `ema_names`.
  std::stop_token stop_token = {};
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< Null: the machine's.
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< Null: the machine's.
};

/// Everything has a default.
struct repeated_evaluation_options {
  evaluation_options evaluation = {};
  seconds_value eval_interval_secs = 60;                                 ///< At least, from one to the next.
  std::optional<std::int64_t> max_number_of_evaluations = std::nullopt;  ///< Not said: as long as new ones come.
  std::optional<seconds_value> timeout = std::nullopt;                   ///< For a new checkpoint; not said: for ever.
  std::function<bool()> timeout_fn = nullptr;                            ///< As of `checkpoints_iterator_options`.
  seconds_value seconds_to_sleep = 1;                                    ///< Between two looks at the directory.
  /// No more checkpoints will come: the evaluation under way is finished, then what one last look at the directory finds is
  /// evaluated, and the range ends. `evaluation.stop_token` ends all of this at once.
  std::stop_token stop_token = {};
  bool all_listed = false;  ///< As of `checkpoints_iterator_options`: every listed checkpoint, oldest first.
};

/// What an evaluation found. `Values` is the tuple of the final ops' values.
template<class Values>
struct evaluation {
  std::string checkpoint_path;
  std::int64_t global_step;     ///< Of the checkpoint; 0 if it does not say.
  std::int64_t evals;           ///< Steps made.
  stepwell::stop_reason ended;  ///< Why no more.
  std::optional<Values> final_ops_values;
};

namespace detail {

/// A model that is restored, and from what.
struct restored_evaluation {
  std::string checkpoint_path;
  std::int64_t global_step;
};

[[nodiscard]] checkpoint_reader open_checkpoint(const std::string& prefix, const evaluation_options& options);
/// Nothing, and a line in the log, where it is gone or damaged.
[[nodiscard]] std::optional<checkpoint_reader> open_if_whole(const std::string& prefix, const evaluation_options& options);
[[nodiscard]] session_settings settings_of(const evaluation_options& options);
[[nodiscard]] checkpoints_iterator_options following_of(const repeated_evaluation_options& options);

template<class Model>
[[nodiscard]] restored_evaluation restore_for_evaluation(Model& model, const checkpoint_reader& reader, const evaluation_options& options) {
  stepwell::restore(model, reader, options.restore);
  return {reader.prefix(), reader.step().value_or(0)};
}

/// Sees to it that what a hook asks to be saved is not.
struct saves_nothing_hook {
  static constexpr auto phase = hook_phase::observe;
  void after_create_session(auto& session, auto& /*threads*/) const {
    session.reject_state("it is that of an evaluation, which saves nothing");
  }
};

/// Says when an evaluation begins and ends.
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
