// SPDX-License-Identifier: Apache-2.0
//
// A source while a loop draws from it: put where a restored checkpoint left it, its position known to every save.
#pragma once

#include "stepwell/creation/detail/source_positions.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/session/unseekable_policy.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace stepwell {

namespace detail {

/// Says so where a run goes on after an earlier one and the source `name`, which cannot seek, does not.
void warn_of_unseekable(source_positions& positions, const std::string& name, std::int64_t global_step);

/// The state went back, and the source does not.
struct missed_rewind {
  const std::string& source;
  std::int64_t from;
  std::int64_t to;
  bool can_seek;  ///< But nobody knows where to.
};
/// @errors `failed_precondition_error` that says "cannot rewind", unless the policy is to skip: then that is a warning.
void refuse_rewind(unseekable_policy policy, const missed_rewind& missed);

}  // namespace detail

/// @lifetime `positions` and `source` must outlive it.
template<data::batch_source Source>
class source_cursor {
public:
  /// @errors What seeking throws; `invalid_argument_error` when a source of that name is in use.
  source_cursor(source_positions& positions, Source& source, std::int64_t global_step)
      : positions_(positions), source_(source), name_(data::name_of(source)), stands_at_(global_step), rewinds_(positions.rewind_count()) {
    if constexpr (data::seekable_source<Source>) {
      if (const auto restored = positions_.restored(name_)) { source.seek(*restored); }
      positions_.attach(name_, [&source] { return std::as_const(source).position(); }, global_step);
      is_attached_ = true;
    } else {
      detail::warn_of_unseekable(positions_, name_, global_step);
    }
    positions_.mark_positioned(name_);
    skips_ = positions_.skips(name_);
  }
  source_cursor(const source_cursor&) = delete;
  source_cursor& operator=(const source_cursor&) = delete;
  ~source_cursor() {
    if (is_attached_) { positions_.detach(name_); }
  }

  /// The batch at hand, those left out being passed over; null at the end.
  auto* peek() {
    if (skips_) [[unlikely]] { pass_over_skipped(); }
    return source_.peek();
  }
  /// After the step that makes `global_step`.
  void advance(std::int64_t global_step) {
    source_.advance();
    stands_at_ = global_step;
  }

  /// Whether the state went back since the source was last moved: in this loop, in one inside it, or in a single run.
  [[nodiscard]] bool is_ahead() const noexcept { return rewinds_ != positions_.rewind_count(); }

  /// The state is that of step `to`: the source goes there too.
  /// @errors What seeking throws, then it can be tried again; `failed_precondition_error` that says "cannot rewind", unless
  ///         the policy is to skip.
  void rewind(std::int64_t to, unseekable_policy policy) {
    const auto restored = positions_.restored(name_);
    if constexpr (data::seekable_source<Source>) {
      if (restored) { source_.seek(*restored); }
    }
    const auto from = std::exchange(stands_at_, to);
    rewinds_ = positions_.rewind_count();
    positions_.mark_positioned(name_);
    if (restored && data::seekable_source<Source>) { return; }
    if (from == to) { return; }  // nothing is lost: the same batch again
    detail::refuse_rewind(policy, {name_, from, to, data::seekable_source<Source>});
  }

  /// Leaves out the batch at hand when it comes again; false where the source has no positions.
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
  void pass_over_skipped() {
    if constexpr (data::seekable_source<Source>) {
      while (positions_.is_skipped(name_, std::as_const(source_).position()) && source_.peek() != nullptr) { source_.advance(); }
    }
  }

  source_positions& positions_;
  Source& source_;
  std::string name_;
  std::int64_t stands_at_;  // the step after which the batch at hand comes
  std::uint64_t rewinds_;   // those it has followed
  bool is_attached_ = false;
  bool skips_ = false;
};

/// Stands for the source of a model that needs no data: it never ends, and its batches are not passed on.
struct no_data {
  struct batch {};
  [[nodiscard]] const batch* peek() const noexcept { return &only; }
  void advance() noexcept {}
  batch only;
};

template<>
class source_cursor<no_data> {
public:
  source_cursor(source_positions& /*positions*/, no_data& source, std::int64_t /*global_step*/) noexcept : source_(source) {}
  source_cursor(const source_cursor&) = delete;
  source_cursor& operator=(const source_cursor&) = delete;

  [[nodiscard]] const no_data::batch* peek() const noexcept { return source_.peek(); }
  void advance(std::int64_t /*global_step*/) noexcept {}
  [[nodiscard]] static constexpr bool is_ahead() noexcept { return false; }
  void rewind(std::int64_t /*to*/, unseekable_policy /*policy*/) noexcept {}
  /// There is no batch to leave out.
  [[nodiscard]] static constexpr bool skip_present() noexcept { return false; }

private:
  no_data& source_;
};

}  // namespace stepwell
