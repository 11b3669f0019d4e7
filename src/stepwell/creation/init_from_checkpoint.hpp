// SPDX-License-Identifier: Apache-2.0
//
// Warm start: initialises some variables from the checkpoint of another model, where they may have other names.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/creation/scaffold.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

namespace io {
class file_system;
}

/// Maps names in the checkpoint to names in the model. If both names end in "/", the entry maps all variables below the first prefix to
/// those below the second; "/" alone stands for all variables. If several entries match a variable of the model, the first one is used.
using checkpoint_name_map = std::vector<std::pair<std::string, std::string>>;

/// Options of `init_from_checkpoint`.
struct init_from_checkpoint_options {
  /// If true, variables that the checkpoint lacks keep their value; if false, they are an error.
  bool allow_missing = false;
  /// The file system of the checkpoint. Null: the file system of the machine.
  std::shared_ptr<io::file_system> files = nullptr;
};

/// Fills a model's variables from a checkpoint at each call. Used as `init_fn`, which is called only if nothing was restored.
///
///     scaffold<my_model> warm({.init_fn = init_from_checkpoint("pretrained", {{"encoder/", "backbone/"}})});
///
/// Variables that match no entry of the map keep their value. So does the global step.
class init_from_checkpoint {
public:
  /// Stores the arguments; the checkpoint is opened at the call. `prefix_or_directory` is a prefix such as "run/model.ckpt-500", or a
  /// directory such as "run": its newest complete checkpoint is used.
  /// @errors `invalid_argument_error` if the map is empty, contains an empty name, maps a name to a prefix or a prefix to a name, or maps
  ///   to the global step or to a variable of the library.
  init_from_checkpoint(std::string prefix_or_directory, checkpoint_name_map names, init_from_checkpoint_options options = {});

  /// Calls `apply` with the variables of `subject`.
  /// @errors Those of `apply`.
  template<class Subject>
  void operator()(const scaffold<Subject>& /*owner*/, Subject& subject) const {
    apply(subject.variables());
  }

  /// Fills `variables`. Checks everything before it writes anything.
  /// @errors `not_found_error` if there is no checkpoint, or if it lacks a variable; `invalid_argument_error` if an entry of the map
  ///   matches none of `variables`; those of `restore`.
  restore_report apply(const variable_list& variables) const;

private:
  std::string from_;
  checkpoint_name_map names_;
  init_from_checkpoint_options options_;
};

}  // namespace stepwell
