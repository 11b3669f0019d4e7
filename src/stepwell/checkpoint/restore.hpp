// SPDX-License-Identifier: Apache-2.0
//
// Restoring of variables from a checkpoint or a snapshot. Works without a session.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/snapshot.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

/// Options for matching variables with the tensors of a checkpoint.
struct restore_options {
  /// Map from the name of a variable to its name in the checkpoint, for names that differ. Each of the variables must exist.
  std::map<std::string, std::string, std::less<>> names = {};
  /// If true, variables that are missing in the checkpoint keep their values. If false, a missing variable is an error.
  bool allow_missing = false;
  /// If true, all checksums of the checkpoint are checked before a variable is written. If false, the tensors of most variables are read
  /// only once. First the checksums of two kinds of tensors are checked: those that belong to no variable, and those of variables that are
  /// `optional()`. Then all tensors are read into their variables, and the remaining checksums are checked there. If one of these is wrong,
  /// the variables may hold a mixture of old and restored values, but variables that are `optional()` are unchanged.
  /// Has no effect if the checkpoint is verified already, and for snapshots.
  bool verify_first = true;
};

/// Result of a restore. `restored` and `missing` contain names of variables, in the order of the variables. `unused` contains the names
/// of tensors of the checkpoint that belong to no variable, except TensorFlow's object graph and the tensors that a saver adds for itself.
struct restore_report {
  std::vector<std::string> restored;
  std::vector<std::string> missing;
  std::vector<std::string> unused;
};

/// Copies the values of `source` to `variables`. Checks the names, dtypes, shapes and checksums of all variables before it writes
/// to any of them. (If `verify_first` is false, some checksums are checked later.) A variable that is `optional()` keeps its value if the
/// checkpoint lacks it.
/// @errors `not_found_error` listing the variables that are missing in the checkpoint, unless `allow_missing` is true.
///         `invalid_argument_error` naming a variable of `options.names` that does not exist. `invalid_argument_error` listing every dtype
///         and shape that differs. If variables are also missing, and `allow_missing` is false, this error lists them, too.
///         `data_loss_error` naming the damaged tensor. If variables were written before the failure, the message says so.
/// @cost   Reads each tensor once, or twice if `source` was not verified before and `verify_first` is true. Variables in memory are read in
///         place. Strings and variables on a device are copied through temporary memory, one variable at a time.
restore_report restore(const variable_list& variables, const checkpoint_reader& source, const restore_options& options = {});

/// Copies the values of a snapshot to `variables`, like the overload for checkpoints. A snapshot has no checksums.
restore_report restore(const variable_list& variables, const snapshot& source, const restore_options& options = {});

}  // namespace stepwell
