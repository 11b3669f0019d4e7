// SPDX-License-Identifier: Apache-2.0
//
// The phases of a saver, and the transitions between them.
#pragma once

#include <cassert>
#include <cstdint>

namespace stepwell::detail {

/// The phases of a saver. From `closing` on, the saver accepts no snapshots.
enum class saver_phase : std::uint8_t {
  open,       ///< Accepts snapshots.
  late,       ///< Like `open`, but the last drain has reached its deadline. A close does not wait.
  closing,    ///< Waits until all saves have ended.
  detached,   ///< Closed without waiting. The last save releases the directory.
  releasing,  ///< Idle. The directory is being released.
  released,   ///< The directory is released.
};

/// Returns true if a saver may go from `from` to `to`.
[[nodiscard]] constexpr bool is_allowed(saver_phase from, saver_phase to) noexcept {
  using enum saver_phase;
  switch (from) {
    case open: return to == late || to == closing || to == detached;
    case late: return to == open || to == closing || to == detached;
    case closing: return to == detached || to == releasing;
    case detached: return to == releasing;
    case releasing: return to == released;
    case released: return false;
  }
  return false;
}

/// The phase of one saver.
class saver_state {
public:
  [[nodiscard]] saver_phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool is_closed() const noexcept { return phase_ >= saver_phase::closing; }

  /// Goes to `next`. In a build with assertions a transition that is not allowed ends the program.
  void to(saver_phase next) noexcept {
    assert(is_allowed(phase_, next));
    phase_ = next;
  }
  /// Records the end of a drain. `is_idle`: all saves had ended by then. Has no effect on a closed saver.
  void note_drain(bool is_idle) noexcept {
    const auto next = is_idle ? saver_phase::open : saver_phase::late;
    if (!is_closed() && phase_ != next) { to(next); }
  }

private:
  saver_phase phase_ = saver_phase::open;
};

}  // namespace stepwell::detail
