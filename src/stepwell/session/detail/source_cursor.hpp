// SPDX-License-Identifier: Apache-2.0
//
// The cursor of a loop over a source: seeks the source to its restored position, and provides its position to each save.
#pragma once

#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/protocol/detail/session_facts.hpp"
#include "stepwell/session/training_options.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace stepwell {

namespace detail {

/// Warns if the source `name`, which is not seekable, cannot continue where an earlier run or the restored checkpoint ended.
void warn_of_unseekable(detail::source_positions& positions, const std::string& name, std::int64_t global_step);

/// Compares the fingerprint of the source `name` with that of the restored position, if there are both, and registers it. Also detects a
/// source that had another name in the checkpoint.
/// @errors `failed_precondition_error` if they differ and `policy` is `fail`. Otherwise a warning is logged.
void check_fingerprint(source_positions& positions, const std::string& name, std::string fingerprint, other_data_policy policy);

/// A restore to an earlier state that the source cannot follow.
struct missed_rewind {
  const std::string& source;
  std::int64_t from;
  std::int64_t to;
  bool can_seek;  ///< True: the source is seekable, but its position at step `to` is unknown.
};
/// Reports `missed` according to `policy`.
/// @errors `failed_precondition_error` ("cannot rewind") for `unseekable_policy::fail`. For `skip`, a warning is logged instead.
void refuse_rewind(unseekable_policy policy, const missed_rewind& missed);

}  // namespace detail

/// Shows the epoch of the batch at which `source` stands, during a run.
/// @lifetime `facts` and `source` must outlive it.
class epoch_scope {
public:
  template<data::epoch_source Source>
  epoch_scope(session_facts& facts, const Source& source) noexcept : facts_(facts) {
    constexpr auto read = [](const void* given) {
      const auto& from = *static_cast<const Source*>(given);
      return data::epoch_position{from.epoch(), from.is_last_of_epoch(), data::epochs_of(from)};
    };
    facts_.epoch_of_run = {&source, read};
  }
  epoch_scope(const epoch_scope&) = delete;
  epoch_scope& operator=(const epoch_scope&) = delete;
  ~epoch_scope() { facts_.epoch_of_run = {}; }

private:
  session_facts& facts_;
};

/// A registered source, with the position at which a loop reads.
/// @lifetime `positions` and `source` must outlive it.
template<data::batch_source Source>
class source_cursor {
public:
  /// Registers the source, after seeking it to its restored position if there is one. A source that is not seekable stays where it is; see
  /// `warn_of_unseekable`.
  /// @errors Exceptions of `seek`; `invalid_argument_error` if a source of the same name is in use; those of `check_fingerprint`.
  source_cursor(detail::source_positions& positions, Source& source, std::int64_t global_step, other_data_policy on_other_data)
      : positions_(positions), source_(source), name_(data::name_of(source)), stands_at_(global_step), rewinds_(positions.rewind_count()) {
    if constexpr (data::seekable_source<Source>) {
      detail::check_fingerprint(positions_, name_, data::fingerprint_of(source), on_other_data);
      if (const auto restored = positions_.restored(name_)) { source.seek(*restored); }
      positions_.attach(name_, [this] { return is_kept_ ? kept_ : std::as_const(source_).position(); }, global_step);
      is_attached_ = true;
    } else {
      detail::warn_of_unseekable(positions_, name_, global_step);
    }
    positions_.mark_positioned(name_);
    skips_ = positions_.skips(name_);
  }
  source_cursor(const source_cursor&) = delete;
  source_cursor& operator=(const source_cursor&) = delete;
  ~source_cursor() { detach(); }

  /// Returns the current batch, after passing over batches to be skipped. Null at the end.
  auto* peek() {
    if (skips_) [[unlikely]] { pass_over_skipped(); }
    return source_.peek();
  }
  /// Advances the source, after the run to the step `global_step`. `Counts`: each run increases the global step.
  template<bool Counts>
  void advance(std::int64_t global_step) {
    source_.advance();
    if constexpr (!Counts) { has_moved_ = global_step == stands_at_; }
    stands_at_ = global_step;
  }

  /// Makes the epoch of the current batch visible to hooks, as long as the result exists. Generates no code for a source without epochs.
  [[nodiscard, gnu::always_inline]] auto show_epoch([[maybe_unused]] session_facts& facts) const noexcept {
    if constexpr (data::epoch_source<Source>) {
      return epoch_scope(facts, source_);
    } else {
      return 0;
    }
  }

  /// Returns true if the state was restored since the source was last moved, by this loop, a nested loop, or a single run.
  [[nodiscard]] bool is_ahead() const noexcept { return rewinds_ != positions_.rewind_count(); }

  /// Moves the source to its restored position, after the state of step `to` was restored.
  /// @errors Exceptions of `seek`: the call can then be repeated. `failed_precondition_error` ("cannot rewind") if the source cannot
  /// follow, unless `policy` is to skip.
  void rewind(std::int64_t to, unseekable_policy policy) {
    const auto restored = positions_.restored(name_);
    if constexpr (data::seekable_source<Source>) {
      if (restored) { source_.seek(*restored); }
    }
    const auto from = std::exchange(stands_at_, to);
    rewinds_ = positions_.rewind_count();
    positions_.mark_positioned(name_);
    if (restored && data::seekable_source<Source>) { return; }
    if (from == to && !std::exchange(has_moved_, false)) { return; }  // no step was lost: the same batch is next
    detail::refuse_rewind(policy, {name_, from, to, data::seekable_source<Source>});
  }

  /// Keeps the current position for saves: until `follow_source`, the source is not used, and may be destroyed.
  void keep_position() noexcept {
    if constexpr (data::seekable_source<Source>) {
      detail::log_failure("while reading the position of a source", [this] {
        kept_ = std::as_const(source_).position();
        is_kept_ = true;
      });
    }
  }
  void follow_source() noexcept { is_kept_ = false; }

  /// Marks the current batch to be skipped when it is reached again. Returns false if the source has no positions.
  bool skip_present() {
    if constexpr (data::seekable_source<Source>) {
      positions_.skip(name_, std::as_const(source_).position());
      skips_ = true;
      return true;
    } else {
      return false;
    }
  }

private:
  [[gnu::noinline]] void detach() noexcept {  // inlined, g++ 12 warns that a cursor in an optional may be uninitialised
    if (is_attached_) { positions_.detach(name_); }
  }
  void pass_over_skipped() {
    if constexpr (data::seekable_source<Source>) {
      while (positions_.is_skipped(name_, std::as_const(source_).position()) && source_.peek() != nullptr) { source_.advance(); }
    }
  }

  detail::source_positions& positions_;
  Source& source_;
  std::string name_;
  std::int64_t stands_at_;  // the step before the current batch
  bool has_moved_ = false;  // the last advance was after a run that has not changed the global step
  std::uint64_t rewinds_;   // number of the rewinds that this cursor has followed
  std::uint64_t kept_ = 0;  // the position for saves if `is_kept_` is true
  bool is_kept_ = false;
  bool is_attached_ = false;
  bool skips_ = false;
};

/// The source of a model that needs no data. It is endless, and its batches are not passed to the model.
struct no_data {
  struct batch {};
  [[nodiscard]] const batch* peek() const noexcept { return &only; }
  void advance() noexcept {}
  batch only;
};

template<>
class source_cursor<no_data> {
public:
  source_cursor(detail::source_positions& /*positions*/, no_data& source, std::int64_t /*global_step*/,
                other_data_policy /*policy*/) noexcept
      : source_(source) {}
  source_cursor(const source_cursor&) = delete;
  source_cursor& operator=(const source_cursor&) = delete;

  [[nodiscard]] const no_data::batch* peek() const noexcept { return source_.peek(); }
  template<bool Counts>
  void advance(std::int64_t /*global_step*/) noexcept {}
  [[nodiscard]] static constexpr int show_epoch(const session_facts& /*facts*/) noexcept { return 0; }
  [[nodiscard]] static constexpr bool is_ahead() noexcept { return false; }
  void rewind(std::int64_t /*to*/, unseekable_policy /*policy*/) noexcept {}
  /// Returns false: there is no batch to skip.
  [[nodiscard]] static constexpr bool skip_present() noexcept { return false; }

private:
  no_data& source_;
};

}  // namespace stepwell
