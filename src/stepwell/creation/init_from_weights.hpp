// SPDX-License-Identifier: Apache-2.0
//
// Initialises a model from weights that a Python program saved.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/creation/scaffold.hpp"

#include <optional>
#include <string>
#include <utility>

namespace stepwell {

/// Rules that map the names of the arrays of a file to names of variables. With the defaults, "conv1.weight" is "conv1/weight".
struct weight_names {
  /// Only arrays whose names begin with this text are used, and the text is removed: "module." makes "conv1/weight" from
  /// "module.conv1.weight".
  std::string prefix_in_file = {};
  /// Only variables whose names begin with this text are filled. The text precedes each mapped name: "backbone/" makes
  /// "backbone/conv1/weight".
  std::string prefix = {};
  /// If true, each dot in the name of an array becomes a slash, as in the names of `libtorch::variables`.
  bool dots_to_slashes = true;
  /// Explicit pairs: the name of an array, and the name of the variable that it fills. The other rules do not apply to these arrays.
  checkpoint_name_map pairs = {};
};

/// A function object that fills variables of a model from a file of weights. Use it as the option `init_fn`, which is called only if no
/// checkpoint of the session was restored.
///
///     scaffold<my_model> warm({.init_fn = init_from_safetensors("resnet.safetensors", {.prefix = "backbone/"})});
///
/// The global step and the session's own variables are never filled.
/// @see `checkpoint_reader` for the formats.
class init_from_weights {
public:
  /// Stores the arguments and does not open the file. Each call of this object opens the file. If `expected` is empty, the file may have
  /// any format that `checkpoint_reader` reads. Otherwise it must have the format `expected`.
  /// @errors `invalid_argument_error` if `names.pairs` contains an empty name, a name that is reserved for the session, or two arrays for the
  ///   same variable.
  explicit init_from_weights(const std::string& file, weight_names names = {}, init_from_checkpoint_options options = {},
                             std::optional<checkpoint_format> expected = std::nullopt);

  /// Calls `apply` with the variables of `subject`.
  /// @errors The errors of `apply`.
  template<class Subject>
  void operator()(const scaffold<Subject>& /*owner*/, Subject& subject) const {
    detail::initialise_variables(subject, [this](const variable_list& variables) { apply(variables); });
  }

  /// Fills `variables` from the file. Checks everything before it writes anything. In the returned report, `unused` lists the arrays that
  /// fill no variable. If the names of some of these arrays begin with `weight_names::prefix_in_file`, logs a warning with these names. A
  /// pair takes precedence over an array that the other rules map.
  /// @errors `not_found_error` if there is no such file, if a pair names an array that the file lacks, or if the file lacks the array of a
  ///   variable and `allow_missing` is false. `invalid_argument_error` if a dtype or a shape differs, if a pair names a variable that does
  ///   not exist, if the rules without `pairs` map two arrays to one variable, or if the file has another format than expected.
  ///   `unimplemented_error` if an array cannot be read. The other errors of `restore`. An error about missing arrays, dtypes or shapes
  ///   lists all variables that have such an error.
  restore_report apply(const variable_list& variables) const;

private:
  std::string from_;
  weight_names names_;
  init_from_checkpoint_options options_;
  std::optional<checkpoint_format> expected_;
};

/// Returns an `init_from_weights` for a file of safetensors, or for the index of several ones ("model.safetensors.index.json").
[[nodiscard]] inline init_from_weights init_from_safetensors(const std::string& file, weight_names names = {},
                                                             init_from_checkpoint_options options = {}) {
  return init_from_weights(file, std::move(names), std::move(options), checkpoint_format::safetensors);
}

/// Returns an `init_from_weights` for an archive, which `numpy.savez`, `numpy.savez_compressed` and `stepwell export --npz` write.
[[nodiscard]] inline init_from_weights init_from_npz(const std::string& file, weight_names names = {},
                                                     init_from_checkpoint_options options = {}) {
  return init_from_weights(file, std::move(names), std::move(options), checkpoint_format::npz);
}

/// Returns an `init_from_weights` for a state dictionary of PyTorch: `torch.save(model.state_dict(), FILE)`; or for a file of `torch::save` of
/// LibTorch. The keys of nested dictionaries are joined with dots. For a file that `torch.save({"model": model.state_dict()}, FILE)` wrote,
/// set `prefix_in_file` to "model.".
[[nodiscard]] inline init_from_weights init_from_state_dict(const std::string& file, weight_names names = {},
                                                            init_from_checkpoint_options options = {}) {
  return init_from_weights(file, std::move(names), std::move(options), checkpoint_format::state_dict);
}

}  // namespace stepwell
