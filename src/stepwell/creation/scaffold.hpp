// SPDX-License-Identifier: Apache-2.0
//
// A scaffold has three parts: the functions with which a session initialises a model and checks that the model is ready, the function that
// writes summaries, and the options for saving checkpoints. This header also has `init_from_checkpoint`, which initialises a model from the
// checkpoint of another model (warm start).
// @see contract SCAF
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

namespace io {
class file_system;
}

/// Types that depend on the subject of a session. The subject is the object that is trained, such as a model.
template<class Subject>
struct scaffold_traits {
  using summary_op = std::function<void(summary::writer&, const Subject&, std::int64_t)>;
};

template<class Subject>
class scaffold;

/// Options of a scaffold. An "op" is a callable that takes the subject. If `init_op`, `ready_op`, `ready_for_local_init_op` or
/// `local_init_op` is not set, `scaffold::finalize` sets its default.
template<class Subject>
struct scaffold_options {
  using op = std::function<void(Subject&)>;
  using ready = std::function<std::vector<std::string>(const Subject&)>;
  using init_with = std::function<void(const scaffold<Subject>&, Subject&)>;

  /// Initialises the variables that checkpoints contain. Called only if no checkpoint was restored.
  op init_op = nullptr;
  /// Like `init_op`, but also receives this scaffold. Called after `init_op`, and also only if no checkpoint was restored.
  init_with init_fn = nullptr;
  /// Returns the names of variables that are not initialised. The session is ready if there are no such names.
  ready ready_op = nullptr;
  /// Returns the names of variables that are not initialised. `local_init_op` is called only if there are no such names. If
  /// `ready_for_local_init_op` is set, there must be a `local_init_op`, given or by default.
  ready ready_for_local_init_op = nullptr;
  /// Initialises the state that belongs to one session only. Called after every creation of the raw session, whether a checkpoint was
  /// restored or not. Replaces the default function.
  /// @see `scaffold::default_local_init_op`
  op local_init_op = nullptr;
  /// Writes the summaries of a due step.
  typename scaffold_traits<Subject>::summary_op summary_op = {};
  /// Options for saving checkpoints. If empty, the options of the session are used.
  std::optional<saver_options> saver = std::nullopt;
  /// Another scaffold. The constructor of `scaffold` copies from it the members that are not set here.
  const scaffold<Subject>* copy_from_scaffold = nullptr;
};

/// The functions with which a session initialises its subject and checks that the subject is ready. The functions cannot be changed after
/// the construction. `finalize` adds the defaults, once.
///
/// The defaults call functions of the model: `init_op` calls `init_variables()`, `local_init_op` calls `init_local_variables()`,
/// `ready_for_local_init_op` calls `uninitialized_variables()`, and `ready_op` calls `uninitialized_variables()` and
/// `uninitialized_local_variables()`. `ready_for_local_init_op` gets its default only if there is a `local_init_op`. If the model lacks the
/// function that a default calls, this default stays empty. A model without any of these functions counts as initialised and ready with its
/// current values. A restore writes the variables without calling the model. `uninitialized_variables()` must therefore examine the values
/// of the variables, and not a flag that `init_variables()` sets. Such a flag would stay unset after a restore.
template<class Subject>
class scaffold {
public:
  using options = scaffold_options<Subject>;
  using op = typename options::op;
  using ready = typename options::ready;

  scaffold() = default;
  /// Stores the options. Does not call the functions of the options, and does not access a subject.
  /// @see contract SCAF-2
  explicit scaffold(options given) : given_(std::move(given)) {
    if (const auto* other = std::exchange(given_.copy_from_scaffold, nullptr)) { take_missing(other->given_); }
  }

  /// Sets the defaults of members that were not given. Only the first call has an effect.
  /// @see contract SCAF-5, SCAF-6
  scaffold& finalize() {
    if (std::exchange(is_finalized_, true)) { return *this; }
    if (!given_.init_op) { given_.init_op = default_init_op(); }
    if (!given_.ready_op) { given_.ready_op = default_ready_op(); }
    if (!given_.local_init_op) { given_.local_init_op = default_local_init_op(); }
    if (!given_.ready_for_local_init_op && given_.local_init_op) { given_.ready_for_local_init_op = default_ready_for_local_init_op(); }
    return *this;
  }
  [[nodiscard]] bool is_finalized() const noexcept { return is_finalized_; }

  /// Return the function that was given. If none was given, return the default after `finalize`. The returned function is empty if there is
  /// neither.
  [[nodiscard]] const op& init_op() const noexcept { return given_.init_op; }
  [[nodiscard]] const ready& ready_op() const noexcept { return given_.ready_op; }
  [[nodiscard]] const ready& ready_for_local_init_op() const noexcept { return given_.ready_for_local_init_op; }
  [[nodiscard]] const op& local_init_op() const noexcept { return given_.local_init_op; }
  [[nodiscard]] const auto& summary_op() const noexcept { return given_.summary_op; }
  [[nodiscard]] const std::optional<saver_options>& saver() const noexcept { return given_.saver; }
  /// Returns the given `init_fn`, bound to this scaffold. Empty if none was given.
  /// @lifetime The scaffold must outlive the returned function.
  /// @see contract SCAF-8
  [[nodiscard]] op init_fn() const {
    if (!given_.init_fn) { return nullptr; }
    return [this](Subject& subject) { given_.init_fn(*this, subject); };
  }

  [[nodiscard]] static op default_init_op() {
    if constexpr (detail::has_init_variables<Subject>) {
      return [](Subject& subject) { subject.init_variables(); };
    }
    return nullptr;
  }
  /// Returns the default `local_init_op`, so that a user's `local_init_op` can call it.
  /// @see contract SCAF-11
  [[nodiscard]] static op default_local_init_op() {
    if constexpr (detail::has_init_local_variables<Subject>) {
      return [](Subject& subject) { subject.init_local_variables(); };
    }
    return nullptr;
  }

private:
  static ready default_ready_for_local_init_op() {
    if constexpr (detail::has_uninitialized_variables<Subject>) {
      return [](const Subject& subject) { return subject.uninitialized_variables(); };
    }
    return nullptr;
  }
  static ready default_ready_op() {
    constexpr bool has_names = detail::has_uninitialized_variables<Subject>;
    constexpr bool has_local_names = detail::has_uninitialized_local_variables<Subject>;
    if constexpr (!has_names && !has_local_names) { return nullptr; }
    return [](const Subject& subject) {
      std::vector<std::string> names;
      if constexpr (has_names) { names = subject.uninitialized_variables(); }
      if constexpr (has_local_names) {
        for (auto& name : subject.uninitialized_local_variables()) { names.push_back(std::move(name)); }
      }
      return names;
    };
  }

  void take_missing(const options& other) {
    const auto take = [](auto& mine, const auto& theirs) {
      if (!mine) { mine = theirs; }
    };
    take(given_.init_op, other.init_op);
    take(given_.init_fn, other.init_fn);
    take(given_.ready_op, other.ready_op);
    take(given_.ready_for_local_init_op, other.ready_for_local_init_op);
    take(given_.local_init_op, other.local_init_op);
    take(given_.summary_op, other.summary_op);
    take(given_.saver, other.saver);
  }

  options given_;
  bool is_finalized_ = false;
};

/// A list of pairs. Each pair has a name in the checkpoint, and a name in the model. If both names end in "/", they are prefixes: the
/// variables of the model below the second prefix are filled from the variables of the checkpoint below the first prefix. The name "/" is
/// the prefix of all variables. If several pairs match a variable of the model, the first pair is used.
using checkpoint_name_map = std::vector<std::pair<std::string, std::string>>;

/// Options of `init_from_checkpoint`.
struct init_from_checkpoint_options {
  /// If true, a selected variable that the checkpoint lacks keeps its value. If false, a `not_found_error` is thrown.
  bool allow_missing = false;
  /// The file system of the checkpoint. If null, the file system of the machine is used.
  std::shared_ptr<io::file_system> file_system = nullptr;
};

namespace detail {
/// Calls `apply` with the variables of `subject`. If `subject` is a raw session, then sends the values of the variables to it.
template<class Subject, class Apply>
void initialise_variables(Subject& subject, const Apply& apply) {
  if constexpr (raw_session<Subject>) {
    // `push_variables` sends all variables. So the variables that are not restored must have their current values before.
    [[maybe_unused]] const auto values = pull_variables(subject);
    apply(subject.variables());
    push_variables(subject);
  } else {
    apply(subject.variables());
  }
}
}  // namespace detail

/// A function object that fills variables of a model from a checkpoint (warm start). Use it as the option `init_fn`, which is called only
/// if no checkpoint of the session was restored.
///
///     scaffold<my_model> warm({.init_fn = init_from_checkpoint("pretrained", {{"encoder/", "backbone/"}})});
///
/// Variables that match no pair of the map keep their values. The global step keeps its value in any case.
class init_from_checkpoint {
public:
  /// Stores the arguments. Each call of this object opens the checkpoint. `prefix_or_directory` is the prefix of a checkpoint, such as
  /// "run/model.ckpt-500", or a directory, such as "run". In a directory, the newest complete checkpoint is used.
  /// @errors `invalid_argument_error` if the map is empty, contains an empty name, maps a name to a prefix or a prefix to a name, or has
  ///   the global step or a name that is reserved for stepwell as a name in the model.
  init_from_checkpoint(const std::string& prefix_or_directory, checkpoint_name_map names, init_from_checkpoint_options options = {});

  /// Calls `apply` with the variables of `subject`.
  /// @errors The errors of `apply`.
  template<class Subject>
  void operator()(const scaffold<Subject>& /*owner*/, Subject& subject) const {
    detail::initialise_variables(subject, [this](const variable_list& variables) { apply(variables); });
  }

  /// Fills `variables` from the checkpoint. Checks everything before it writes anything.
  /// @errors `not_found_error` if there is no checkpoint, if a prefix of the map matches none of its tensors, or if the checkpoint lacks a
  ///   selected variable and `allow_missing` is false.
  ///   `invalid_argument_error` if a pair of the map matches none of `variables`. The errors of `restore`.
  restore_report apply(const variable_list& variables) const;

private:
  std::string from_;
  checkpoint_name_map names_;
  init_from_checkpoint_options options_;
};

}  // namespace stepwell
