// SPDX-License-Identifier: Apache-2.0
//
// A copy of large variables of a snapshot, made in pieces by any number of threads, and of variables that devices copy.
#pragma once

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// Pieces of memory to copy. Each thread that calls `complete` copies pieces until none is left, so that the copy needs no thread of its own.
/// Copies by a device have begun when they are added.
/// @lifetime The memory must stay valid, and the sources unchanged, until `complete` or `cancel` has returned. Sources with an owner stay valid.
///           Sources on a device may change after `hold_back_updates`. Copies by a device write to their destinations until `wait_for_devices`
///           or `cancel` has returned.
/// @threads  The functions that add, `clear` and `release_owners` may be called only while no other thread uses the object. The other functions
///           may be called on any thread.
class pending_copy {
public:
  /// Size of the pieces of one variable: short enough that a waiting thread gets a part of a large variable.
  static constexpr std::size_t piece_size = std::size_t{1} << 20;

  /// Removes all variables. `checks`: each variable is copied when it is added, and its checksum is computed, to compare it later.
  void clear(bool checks) noexcept;
  /// Adds a variable. `owner` keeps `from` in memory; null: the caller does. @pre Both spans have the same size.
  void add(std::string_view name, std::span<const std::byte> from, std::span<std::byte> to, std::shared_ptr<const void> owner = nullptr);
  [[nodiscard]] bool has_checks() const noexcept { return checks_; }
  /// Adds a copy that a device makes. `is_held_back`: `hold_back_updates` was called for it.
  void add(std::string_view name, std::shared_ptr<device_copy> copy, bool is_held_back);
  /// Releases the owners. `changed_source` may not be called afterwards. @pre `complete` or `cancel` has returned.
  void release_owners() noexcept { owners_.clear(); }

  /// Copies pieces until none is left, and blocks until all pieces of other threads are copied. Does not wait for devices.
  void complete() noexcept;
  /// Calls `hold_back_updates` of each copy by a device for which that was not done. The host does not wait.
  /// @errors  The first error of a device, with the name of the variable, after all copies were treated. Copies that fail are waited for.
  /// @threads The thread that runs the steps.
  void hold_back_updates();
  /// Blocks until the devices have made all copies. @errors The first error of a device, with the name of the variable, after all ended.
  void wait_for_devices() const;
  /// Prevents further pieces, and blocks until the pieces of other threads and of devices are copied. The destinations are then no longer used.
  void cancel() noexcept;

  /// Returns the name of the first variable whose source is not the memory of the variable of this name in `now`. Sources with an owner are
  /// not compared. Empty if there is none, or without checks.
  [[nodiscard]] std::optional<std::string> moved_source(const variable_list& now) const;
  /// Returns the name of the first variable whose source has another checksum than when it was added. Empty if there is none, or without
  /// checks.
  /// @pre `moved_source` has returned nothing for the variables of this moment.
  [[nodiscard]] std::optional<std::string> changed_source() const;

private:
  struct variable {
    std::string name;
    std::span<const std::byte> from;
    std::uint32_t crc32c;
    bool has_owner;
  };
  struct piece {
    const std::byte* from;
    std::byte* to;
    std::size_t size;
  };

  struct copied_by_device {
    std::string name;
    std::shared_ptr<device_copy> copy;
    bool is_held_back;  // used by the thread that runs the steps
  };

  std::vector<variable> variables_;  // empty without checks
  std::vector<piece> pieces_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<copied_by_device> devices_;
  bool checks_ = false;
  checked_mutex mutex_;  // held between pieces only
  std::condition_variable done_;
  std::size_t next_ STEPWELL_GUARDED_BY(mutex_) = 0;    // index of the first piece that no thread has taken
  std::size_t copied_ STEPWELL_GUARDED_BY(mutex_) = 0;  // number of pieces that are copied
};

}  // namespace stepwell::detail
