// SPDX-License-Identifier: Apache-2.0
//
// The options of the hooks that a training session has by default. They are members of `training_options`, and each hook may also be given to
// a session. This header also has the interface of listeners, which are notified of each save.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/format/events/event.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

namespace summary {
class metric_writer;
}

/// A listener is notified of each save. Override the functions that you need. If a listener throws, the other listeners are notified
/// nevertheless. Then the session throws the exception, between two steps or in `close`.
/// @threads The session's thread.
class checkpoint_saver_listener {
public:
  virtual ~checkpoint_saver_listener() = default;

  /// Called once for each session, before the raw session (the object that runs the model) is created.
  virtual void begin() {}
  /// Called before the state of `step` is copied. Not called for a save that is skipped. The function may read the state, but must not
  /// change it. If the save fails or is replaced by a newer save, `after_save` is not called for this save.
  virtual void before_save(std::int64_t /*step*/) {}
  /// Called when the checkpoint is durable: at the next place between two steps, or in `close`. Return true to request a stop of the
  /// session. The request is ignored for the checkpoint at the start of a fresh run, and for checkpoints that become durable while the
  /// session closes.
  virtual bool after_save(const saved_checkpoint& /*saved*/) { return false; }
  /// Called at the close, when the last save has ended. Not called if an exception ends the session. `step` is the last step.
  virtual void end(std::int64_t /*step*/) {}
};

/// Options of `checkpoint_saver_hook`, also of the default hook of a training session (`training_options::saves`). A hook that is given to a
/// session needs `checkpoint_dir` and one of `save_secs`, `save_steps` and `save_overhead`.
struct checkpoint_saver_options {
  std::string checkpoint_dir = {};  ///< Empty in a default hook, which uses that of the session.
  /// Periods between checkpoints, in seconds and in steps. If both are above zero, the seconds are used, and a warning is logged. In a default
  /// hook, the period is 600 s if neither of them nor `save_overhead` is set.
  /// @see decisions D-8, D-35
  setting<seconds_value> save_secs = {};
  setting<std::int64_t> save_steps = {};
  /// Share of the training time that saving may cost, for example 0.02. The hook measures the two parts of the cost of each save. The first
  /// part is the time for which the save stops training. The second part is the extra time of the steps until the save has ended: their time,
  /// with all time between them, minus the time of as many steps without a save. From the mean cost, the hook chooses the interval to the
  /// next save within the bounds `save_interval`. The hook logs the interval if it has changed by more than a fifth, at most once in 10 s.
  /// The interval is never longer than `save_interval.max_interval`, even if saving then costs more than this share. Only a save that itself
  /// lasts longer makes it longer, because the hook begins no save before its previous save has ended. A process that resumes the training
  /// measures the cost again, and begins with `save_interval.min_interval`. After a recovery, the hook uses the earlier measurements.
  setting<double> save_overhead = {};
  interval_bounds save_interval = {};  ///< Bounds of the interval that `save_overhead` chooses. They need a `save_overhead`.
  /// All other options for saving: retention, shards, and the policies for a slow disk and for failures. `max_staged_bytes` limits the
  /// memory for copies of the variables.
  saver_options saver = {};
  std::vector<std::shared_ptr<checkpoint_saver_listener>> listeners = {};  ///< Listeners that are notified of each checkpoint.
  /// The directory of the event file to which CHECKPOINT events are written. Empty: `checkpoint_dir`.
  std::string summary_dir = {};
  summary::writer_options events = {};  ///< Options of the event file in `summary_dir`.
  /// Minimum time between two log lines such as "saved run/model.ckpt-500, 18.3 MB in 42 ms". The last checkpoint of a session is always
  /// logged. 0: every checkpoint is logged.
  seconds_value log_every_secs = 10;
};

/// Options of `summary_saver_hook`. If none of `output_dir`, `writer` and `metrics` is given, the hook writes to the event file of its
/// session. That file is in the session's `summary_dir` or, if this option is empty, in its `checkpoint_dir`.
struct summary_saver_options {
  std::string output_dir = {};                        ///< Directory of the event file.
  std::shared_ptr<summary::writer> writer = nullptr;  ///< Used instead of `output_dir`.
  summary::writer_options events = {};                ///< Options of the event file in `output_dir`.
  /// Metric writers, which also receive the scalars: `{std::make_shared<summary::csv_writer>("run/metrics.csv")}`. Metric writers need no
  /// event file. If the event writer already forwards its scalars to a metric writer (`writer_options::metrics`), do not list that metric
  /// writer here. Histograms, texts and images are written to event files only.
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  /// Periods between summaries. Default if neither is set: 100 steps.
  setting<std::int64_t> save_steps = {};
  setting<seconds_value> save_secs = {};
  /// Whether the values of the last step are written if they were not due after it. They are due in a run that is known to be the last one
  /// (`run_context::is_last_run`). At any other end, the close writes the values, if none were written for this step. Not set: the close writes
  /// only numbers that are members of the result or of the model, for example `&result::loss`; each run copies them. True: the close writes all
  /// values. Each run then copies the result of the step, which must be copyable (`can_keep_result`). References and views in the result
  /// must be valid until the close. False: the last step has no special treatment. Over a graph of TensorFlow, true is an error, and the
  /// default is false, as in Python: TensorFlow executes what is fetched, and this may change variables.
  std::optional<bool> at_end = std::nullopt;
  /// If true, the hook throws `failed_precondition_error` if a variable of the model changes while the values are read, for example because a
  /// projection runs a module in training mode. A resumed run would otherwise differ. Costs two checksums of all variables for each summary.
  bool check_variables = false;
  /// The hyper-parameters of this run, for TensorBoard's HParams dashboard. They are written once, when the session begins. If the hook has
  /// only metric writers and no event file, they are not written.
  std::optional<format::hparam_map> hparams = std::nullopt;
};

/// Options of `step_counter_hook`.
struct step_counter_options {
  /// Periods between measurements. Default if neither is set: 100 steps.
  setting<std::int64_t> every_n_steps = {};
  setting<seconds_value> every_n_secs = {};
  std::string output_dir = {};                        ///< Directory of the event file. Empty: only logs, unless `writer` is set.
  std::shared_ptr<summary::writer> writer = nullptr;  ///< Writer of the event file, used instead of `output_dir`.
  summary::writer_options events = {};                ///< Options of the event file in `output_dir`.
  seconds_value log_every_secs = 10;                  ///< Minimum time between two log lines; 0: each measurement is logged.
};

namespace detail {

/// The name of an option, and whether it is given, that is, whether it is not off and differs from the default.
using named_option = std::pair<std::string_view, bool>;
[[nodiscard]] std::vector<named_option> named_options(const checkpoint_saver_options& saves);
[[nodiscard]] std::vector<named_option> named_options(const summary_saver_options& summaries);
[[nodiscard]] std::vector<named_option> named_options(const step_counter_options& step_counter);

}  // namespace detail
}  // namespace stepwell
