// SPDX-License-Identifier: Apache-2.0
//
// What TensorBoard's hyperparameter dashboard reads: the settings of a trial, how it ended, and, once for many trials,
// which settings and metrics there are.
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

/// Written in each trial's run, at its start.
struct hparams_start {
  hparam_map hparams;
  std::string model_uri;
  std::string monitor_url;
  std::string group_name;  ///< Trials of one group show as one row; empty: a row of its own.
  double start_time_secs = 0;
};

/// Written in each trial's run, at its end.
struct hparams_end {
  hparams_status status = hparams_status::unknown;
  double end_time_secs = 0;
};

enum class hparam_type : std::int32_t { unset = 0, string = 1, boolean = 2, float64 = 3 };

/// One column of settings.
struct hparam_info {
  std::string name;
  std::string display_name;
  std::string description;
  hparam_type type = hparam_type::unset;
  std::vector<hparam_value> discrete;                 ///< The values it may take, or:
  std::optional<std::pair<double, double>> interval;  ///< least and greatest.
};

/// One column of results: the last scalar of `tag` in the trial's run (in its sub-run `group`).
struct metric_info {
  std::string group;
  std::string tag;
  std::string display_name;
  std::string description;
  std::int32_t dataset_type = 0;  ///< 1 training, 2 validation.
};

/// Written once, usually in the log directory itself. Without it the columns follow from the trials.
struct hparams_experiment {
  std::string name;
  std::string description;
  std::string user;
  double time_created_secs = 0;
  std::vector<hparam_info> hparams;
  std::vector<metric_info> metrics;
};

/// What one hparams value can be.
using hparams_record = std::variant<hparams_experiment, hparams_start, hparams_end>;

/// The bytes of an HParamsPluginData; the same record always gives the same bytes.
[[nodiscard]] std::string encode_hparams(const hparams_record& record);

/// The other way. Settings that are neither number, text nor truth value are passed over.
/// @errors `data_loss`: not an HParamsPluginData, or an empty one.
[[nodiscard]] result<hparams_record> decode_hparams(std::span<const std::byte> bytes);

/// The value to write at step 0, with its tag, metadata and empty tensor.
[[nodiscard]] summary_value make_hparams_value(const hparams_record& record);

}  // namespace stepwell::format
