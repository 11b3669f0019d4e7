// SPDX-License-Identifier: Apache-2.0
//
// The pieces that make a session ready: how to initialise, when it is ready, what to sum up, how to save (contract SCAF).
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/saver_options.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// What differs between the subjects of sessions: the model of a model session, the graph of a graph session.
template<class Subject>
struct scaffold_traits {
  using summary_op = std::function<void(summary::writer&, const Subject&, std::int64_t)>;
};

template<class Subject>
class scaffold;

/// An "op" is a callable on the subject. Everything has a default, made by `finalize`.
template<class Subject>
struct scaffold_options {
  using op = std::function<void(Subject&)>;
  using ready = std::function<std::vector<std::string>(const Subject&)>;
  using init_with = std::function<void(const scaffold<Subject>&, Subject&)>;

  /// Initialises what a checkpoint would hold; run only where nothing was restored.
  op init_op = nullptr;
  /// Called after `init_op`, with the scaffold it belongs to.
  init_with init_fn = nullptr;
  /// Names what is not initialised yet; empty: ready.
  ready ready_op = nullptr;
  /// The same of what `local_init_op` needs.
  ready ready_for_local_init_op = nullptr;
  /// Initialises what is local to one session, restored or not. Takes the place of the default, see
  /// `scaffold::default_local_init_op`.
  op local_init_op = nullptr;
  /// What to write at each due summary.
  typename scaffold_traits<Subject>::summary_op summary_op = nullptr;
  /// How checkpoints are saved; nothing: as the session's options say.
  std::optional<saver_options> saver = std::nullopt;
  /// Whatever is not given here is taken from that one, as it is now.
  const scaffold<Subject>* copy_from_scaffold = nullptr;
};

/// Everything is read only; `finalize` makes the defaults, once.
///
/// The defaults of a model: `init_op` calls its `init_variables()`, `local_init_op` its `init_local_variables()`,
/// `ready_for_local_init_op` asks its `uninitialized_variables()`, `ready_op` that and its
/// `uninitialized_local_variables()`. What a model does not have stays empty: it is what it holds, initialised and ready.
/// A restore writes values and says nothing, so a model that is asked must tell from what its variables hold.
template<class Subject>
class scaffold {
public:
  using options = scaffold_options<Subject>;
  using op = typename options::op;
  using ready = typename options::ready;

  scaffold() = default;
  /// Calls nothing, asks nothing of the subject (SCAF-2).
  explicit scaffold(options given) : given_(std::move(given)) {
    if (const auto* other = std::exchange(given_.copy_from_scaffold, nullptr)) { take_missing(other->given_); }
  }

  /// Makes the defaults of what was not given (SCAF-5). The second time it does nothing (SCAF-6).
  scaffold& finalize() {
    if (std::exchange(is_finalized_, true)) { return *this; }
    if (!given_.init_op) { given_.init_op = default_init_op(); }
    if (!given_.ready_op) { given_.ready_op = default_ready_op(); }
    if (!given_.local_init_op) { given_.local_init_op = default_local_init_op(); }
    if (!given_.ready_for_local_init_op && given_.local_init_op) { given_.ready_for_local_init_op = default_ready_for_local_init_op(); }
    return *this;
  }
  [[nodiscard]] bool is_finalized() const noexcept { return is_finalized_; }

  /// Empty until given or made.
  [[nodiscard]] const op& init_op() const noexcept { return given_.init_op; }
  [[nodiscard]] const ready& ready_op() const noexcept { return given_.ready_op; }
  [[nodiscard]] const ready& ready_for_local_init_op() const noexcept { return given_.ready_for_local_init_op; }
  [[nodiscard]] const op& local_init_op() const noexcept { return given_.local_init_op; }
  [[nodiscard]] const auto& summary_op() const noexcept { return given_.summary_op; }
  [[nodiscard]] const std::optional<saver_options>& saver() const noexcept { return given_.saver; }
  /// What the user gave, bound to this scaffold; empty if nothing was given (SCAF-8).
  [[nodiscard]] op init_fn() const {
    if (!given_.init_fn) { return nullptr; }
    return [this](Subject& subject) { given_.init_fn(*this, subject); };
  }

  [[nodiscard]] static op default_init_op() {
    if constexpr (requires(Subject& subject) { subject.init_variables(); }) {
      return [](Subject& subject) { subject.init_variables(); };
    } else {
      return nullptr;
    }
  }
  /// To group with one's own (SCAF-11).
  [[nodiscard]] static op default_local_init_op() {
    if constexpr (requires(Subject& subject) { subject.init_local_variables(); }) {
      return [](Subject& subject) { subject.init_local_variables(); };
    } else {
      return nullptr;
    }
  }

private:
  static constexpr bool tells_uninitialized = requires(const Subject& subject) { subject.uninitialized_variables(); };
  static constexpr bool tells_uninitialized_local = requires(const Subject& subject) { subject.uninitialized_local_variables(); };

  static ready default_ready_for_local_init_op() {
    if constexpr (tells_uninitialized) {
      return [](const Subject& subject) -> std::vector<std::string> { return subject.uninitialized_variables(); };
    } else {
      return nullptr;
    }
  }
  static ready default_ready_op() {
    if constexpr (!tells_uninitialized && !tells_uninitialized_local) { return nullptr; }
    return [](const Subject& subject) {
      std::vector<std::string> names;
      if constexpr (tells_uninitialized) { names = subject.uninitialized_variables(); }
      if constexpr (tells_uninitialized_local) {
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

}  // namespace stepwell
