// SPDX-License-Identifier: Apache-2.0
//
// One step of a loop, or one run, as the session protocol sees it.
#pragma once

#include <cstdint>
#include <optional>

namespace stepwell::detail {

/// The progress of a step. `not_taken`: the step has to be attempted. `done`: the step is complete except for its boundary.
enum class step_outcome : std::uint8_t { not_taken, done, out_of_data, to_recover };

/// The position of a loop: the number of the next attempt, and the step that was reached before a recovery.
struct loop_place {
  int attempt = 1;
  std::optional<std::int64_t> rolled_back_from = std::nullopt;
};

/// A step of a loop (`is_loop`), or a single run, which may be attempted several times.
class step_attempt {
public:
  /// Creates an attempt. `repeats`: it may be attempted again with the same arguments.
  step_attempt(bool is_loop, bool repeats) noexcept : is_loop_(is_loop), repeats_(repeats) {}
  step_attempt(const step_attempt&) = delete;
  step_attempt& operator=(const step_attempt&) = delete;

  [[nodiscard]] bool is_loop() const noexcept { return is_loop_; }
  [[nodiscard]] bool repeats() const noexcept { return repeats_; }

  /// Registers the source. Does nothing if it is registered. @errors Exceptions of seeking the source.
  virtual void attach() {}
  /// Does one step, without its boundary, and sets `outcome`.
  /// @errors Failures that are not the end of the data and cannot be recovered from.
  virtual void take() = 0;
  /// Marks the current batch to be skipped when it is reached again. Returns false if that is not possible.
  virtual bool skip_batch() { return false; }
  /// Releases the source, at the end of the loop.
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
