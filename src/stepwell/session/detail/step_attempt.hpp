// SPDX-License-Identifier: Apache-2.0
//
// One step of a loop, or one run, as the session protocol sees it.
#pragma once

#include <cstdint>
#include <optional>

namespace stepwell::detail {

/// How far a step came. `not_taken`: it has to be tried. `done`: up to its boundary.
enum class step_outcome : std::uint8_t { not_taken, done, out_of_data, to_recover };

/// Where a loop stands: which attempt comes next, and the step that it was thrown back from.
struct loop_place {
  int attempt = 1;
  std::optional<std::int64_t> rolled_back_from = std::nullopt;
};

/// A step of a loop (`is_loop`), or a single run, which may be attempted several times.
class step_attempt {
public:
  /// `repeats`: it may be attempted again with the same arguments.
  step_attempt(bool is_loop, bool repeats) noexcept : is_loop_(is_loop), repeats_(repeats) {}
  step_attempt(const step_attempt&) = delete;
  step_attempt& operator=(const step_attempt&) = delete;

  [[nodiscard]] bool is_loop() const noexcept { return is_loop_; }
  [[nodiscard]] bool repeats() const noexcept { return repeats_; }

  /// Registers the source; does nothing the second time. @errors What seeking it throws.
  virtual void attach() {}
  /// Takes one step, without its boundary, and sets `outcome`. @errors Failures that are neither the end of the data nor to be recovered from.
  virtual void take() = 0;
  /// Leaves the present batch out when it comes again. Returns false if that is not possible.
  virtual bool skip_batch() { return false; }
  /// The loop is over: releases the source.
  virtual void detach() noexcept {}

  loop_place place;
  step_outcome outcome = step_outcome::not_taken;

protected:
  ~step_attempt() = default;

private:
  bool is_loop_;
  bool repeats_;
};

}  // namespace stepwell::detail
