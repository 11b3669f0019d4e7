// SPDX-License-Identifier: Apache-2.0
//
// A warm start: some variables begin as they stand in the checkpoint of another model, by other names if need be.
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

/// Their name -> our name. Both ending in "/": everything below the one as everything below the other, "/" alone being all
/// there is. Of several that fit one of our variables the first counts.
using checkpoint_name_map = std::vector<std::pair<std::string, std::string>>;

struct init_from_checkpoint_options {
  /// Variables the checkpoint lacks keep their value instead of being an error.
  bool allow_missing = false;
  /// Null: those of the machine.
  std::shared_ptr<io::file_system> files = nullptr;
};

/// Fills a model's variables from a checkpoint each time it is called: an `init_fn`, called only where nothing was restored.
///
///     scaffold<my_model> warm({.init_fn = init_from_checkpoint("pretrained", {{"encoder/", "backbone/"}})});
///
/// Variables that no entry of the map names keep their value, and so does the global step.
class init_from_checkpoint {
public:
  /// `prefix_or_directory` is "run/model.ckpt-500", or "run": then its newest whole checkpoint. Opened when called.
  /// @errors `invalid_argument_error` for a map that is empty, that maps a name to a prefix, or to the global step.
  init_from_checkpoint(std::string prefix_or_directory, checkpoint_name_map names, init_from_checkpoint_options options = {});

  /// @errors As `apply`.
  template<class Subject>
  void operator()(const scaffold<Subject>& /*owner*/, Subject& subject) const {
    apply(subject.variables());
  }

  /// The same for any variables. Everything is checked before anything is written.
  /// @errors `not_found_error` without a checkpoint, and for variables it lacks; `invalid_argument_error` for an entry of the
  ///         map that names none of `variables`; those of `restore`.
  restore_report apply(const variable_list& variables) const;

private:
  std::string from_;
  checkpoint_name_map names_;
  init_from_checkpoint_options options_;
};

}  // namespace stepwell
