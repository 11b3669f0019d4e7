// SPDX-License-Identifier: Apache-2.0
//
// Data for TensorBoard's hyperparameter dashboard: the hyperparameters of a trial, its final status, and a description of the
// hyperparameters and metrics of an experiment with many trials.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/format/events/hparam_value.hpp"
#include "stepwell/format/events/summary.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stepwell::format {

/// The start of a trial. Written at the start of its run.
struct hparams_start {
  hparam_map hparams;
  std::string model_uri;
  std::string monitor_url;
  std::string group_name;  ///< Trials of one group are shown as one row. A trial without a group has its own row.
  double start_time_secs = 0;
};

/// The end of a trial. Written at the end of its run.
struct hparams_end {
  hparams_status status = hparams_status::unknown;
  double end_time_secs = 0;
};

enum class hparam_type : std::int32_t { unset = 0, string = 1, boolean = 2, float64 = 3 };

/// The description of one hyperparameter, shown as a column.
struct hparam_info {
  std::string name;
  std::string display_name;
  std::string description;
  hparam_type type = hparam_type::unset;
  std::vector<hparam_value> discrete;                 ///< Permitted values. Used if the domain is discrete.
  std::optional<std::pair<double, double>> interval;  ///< Least and greatest value. Used if the domain is an interval.
};

/// The description of one metric, shown as a column: the last scalar of `tag` in the trial's run, or in its sub-run `group`.
struct metric_info {
  std::string group;
  std::string tag;
  std::string display_name;
  std::string description;
  std::int32_t dataset_type = 0;  ///< 0 unknown, 1 training, 2 validation.
};

/// The description of an experiment. Written once, usually in the log directory itself. It is optional: without it the dashboard derives
/// the columns from the trials.
struct hparams_experiment {
  std::string name;
  std::string description;
  std::string user;
  double time_created_secs = 0;
  std::vector<hparam_info> hparams;
  std::vector<metric_info> metrics;
};

/// One record for the dashboard.
using hparams_record = std::variant<hparams_experiment, hparams_start, hparams_end>;

/// Returns a serialized HParamsPluginData. Equal records give equal bytes.
[[nodiscard]] std::string encode_hparams(const hparams_record& record);

/// Returns the record in a serialized HParamsPluginData. Hyperparameters of types other than number, string and boolean are ignored.
/// @errors `data_loss` if the bytes are not an HParamsPluginData, or if it is empty.
[[nodiscard]] result<hparams_record> decode_hparams(std::span<const std::byte> bytes);

/// Returns the summary value for `record`, with its tag, its metadata and an empty tensor. Write it at step 0.
[[nodiscard]] summary_value make_hparams_value(const hparams_record& record);

}  // namespace stepwell::format
