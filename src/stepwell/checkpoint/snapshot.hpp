// SPDX-License-Identifier: Apache-2.0
//
// An owned, immutable copy of variables at one step, the pool of buffers for such copies, and a checksum with which a program can compare two
// states, for example that of a resumed run and that of an uninterrupted one.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

class trace_recorder;
class update_fence;

namespace io {
class pool;
}

/// A pool of large buffers for snapshots. The constructor allocates the buffers and touches their pages, so that taking a snapshot costs
/// one copy and no page fault. `on_demand` makes a pool that allocates memory only when snapshots are taken.
/// @lifetime A buffer or a snapshot keeps alive the part of the pool that it needs.
/// @threads  All functions may be called from any thread.
class snapshot_pool {
  struct memory;
  struct state;

public:
  /// One buffer of a pool. The destructor returns it to the pool.
  class buffer {
  public:
    buffer() noexcept;
    buffer(buffer&&) noexcept;
    buffer& operator=(buffer&&) noexcept;
    ~buffer();

    /// Returns the size of the buffer's memory in bytes. A larger snapshot makes the buffer grow.
    [[nodiscard]] std::size_t capacity() const noexcept;

  private:
    friend class snapshot_pool;
    friend class snapshot;
    buffer(std::shared_ptr<state> pool, std::unique_ptr<memory> taken) noexcept;
    void give_back() noexcept;

    std::shared_ptr<state> pool_;
    std::unique_ptr<memory> memory_;
  };

  /// Allocates `buffers` buffers of `bytes` bytes each. A buffer grows when a larger model is copied into it.
  /// @errors `invalid_argument_error` if `buffers` is 0. `resource_exhausted_error` if memory is short.
  /// @cost   Touches every page once.
  explicit snapshot_pool(std::size_t bytes, std::size_t buffers = 2);
  /// Returns a pool of at most `buffers` buffers, which have no memory yet. `snapshot::capture` allocates the memory of its buffer. A buffer
  /// that is returned to the pool keeps its memory if the last two captures were less than `keep_for` apart on the clock `time`. Otherwise
  /// its memory and the memory of all free buffers is freed.
  /// @errors `invalid_argument_error` if `buffers` is 0.
  [[nodiscard]] static snapshot_pool on_demand(std::size_t buffers, std::shared_ptr<clock> time,
                                               clock::duration keep_for = std::chrono::minutes(1));

  /// Returns a free buffer, or nullopt if all are in use.
  [[nodiscard]] std::optional<buffer> try_acquire();
  /// Blocks until a buffer is free and returns it. Deadlocks if the caller already holds every buffer.
  [[nodiscard]] buffer acquire();
  /// Blocks until a buffer is free and returns it. Returns nullopt if no buffer is free at the time `when` of the clock `source`, or when
  /// a stop is requested for `stop`.
  [[nodiscard]] std::optional<buffer> acquire_until(clock& source, clock::time_point when, const std::stop_token& stop = {});
  /// Calls `wake` once, when a buffer is free: at once on the calling thread, or later on the thread that returns a buffer. This is the
  /// asynchronous form of `acquire`: call `try_acquire` in `wake` or after it. `try_acquire` may still return nullopt, because all
  /// registered callbacks are called for one free buffer, and another caller may take the buffer first. In that case, call this function
  /// again. `wake` must be short and must not throw.
  void when_available(std::function<void()> wake);

  /// Returns the number of free buffers.
  [[nodiscard]] std::size_t available() const;
  /// Returns the size of the memory of all buffers in bytes, including buffers in use, and the lengths of the strings in them.
  [[nodiscard]] std::size_t held_bytes() const noexcept;

private:
  explicit snapshot_pool(std::shared_ptr<state> made) noexcept : state_(std::move(made)) {}

  std::shared_ptr<state> state_;
};

/// Returns the size in bytes of a snapshot of these variables, including alignment. Use it as the buffer size of a pool. Strings are not
/// included, because a snapshot stores them outside of its buffer.
[[nodiscard]] std::size_t snapshot_size(const variable_list& variables);

/// One variable in a snapshot.
/// @lifetime The views are valid as long as the snapshot.
struct snapshot_entry {
  std::string_view name;
  stepwell::dtype dtype = dtype::invalid;
  shape_view shape;
  /// Memory inside the buffer of the snapshot. The offset in the buffer is a multiple of the page size if the variable has 1 MiB or more,
  /// and otherwise a multiple of 64 bytes. If the variable has fewer than 64 bytes, the offset is a multiple of the variable's size,
  /// rounded up to a power of two.
  std::span<const std::byte> bytes;
  std::vector<std::string> strings = {};  ///< The elements if `dtype` is `dtype::string`.
};

/// An owned, immutable copy of variables between two steps. A saver accepts only snapshots. Can be moved, not copied.
/// @threads Immutable: any number of threads may read it.
class snapshot {
public:
  /// Copies `variables` into `memory`. `variables` should contain the global step too.
  /// @errors `invalid_argument_error` if two variables have the same name or a variable has no name. `resource_exhausted_error` if
  ///         the buffer must grow and memory is short. `failed_precondition_error` if `memory` was moved from.
  /// @threads If the variables have 32 MiB or more in total, idle threads of `helpers` copy variables together with the calling thread.
  ///          This function does not wait for threads that have not begun to copy. Strings and variables on a device are copied by the
  ///          calling thread alone. If `helpers` is null, the calling thread copies everything. A device that copies while the host computes
  ///          (`device_elements::start_copy_to`) is not waited for: it makes later changes of its elements after it has read them.
  /// @cost   One copy of each variable. No allocation if names, dtypes and shapes are the same as in the previous capture into
  ///         this buffer, and tracing is off.
  [[nodiscard]] static snapshot capture(snapshot_pool::buffer memory, const variable_list& variables, std::int64_t step,
                                        io::pool* helpers = nullptr);
  /// Like the function above, but may copy a part of the variables later. This call copies these variables before it returns: variables
  /// marked with `variable_ref::early()`, variables of at most 4 KiB, variables of strings, and variables on a device that copies only while
  /// the host waits. `complete` or `fence.wait()` copies the remaining variables. Until one of these two functions has returned, the
  /// remaining variables must not change; those on a device, until `fence.wait()` has returned. Their memory must stay valid. The snapshot
  /// keeps the memory of a variable that is on a device or has an `owner`, so the model may replace such a tensor by another one.
  [[nodiscard]] static snapshot capture(snapshot_pool::buffer memory, const variable_list& variables, std::int64_t step,
                                        update_fence& fence);

  /// Creates an empty snapshot of step 0.
  snapshot() noexcept = default;

  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  /// Copies the variables that `capture` with a fence has not copied yet. If several threads call this function, they share the work.
  /// Blocks until all variables are copied, also by devices.
  /// @errors  Errors of a device; the message names the variable.
  /// @threads Any; several threads may call it at the same time.
  void complete() const;
  /// Returns the entries in the order of the variables. Blocks like `complete` until all variables are copied, but does not throw if a
  /// variable changed before it was copied.
  /// @errors   Errors of a device; the message names the variable.
  /// @lifetime Valid until this snapshot is moved or destroyed.
  [[nodiscard]] std::span<const snapshot_entry> entries() const;
  /// Returns the entry of this name, or null. @errors Those of `entries`.
  [[nodiscard]] const snapshot_entry* find(std::string_view name) const;
  /// Returns the total size of all variables in bytes. A string counts with its length.
  [[nodiscard]] std::size_t size_bytes() const noexcept;
  /// Returns the trace that was active during the capture, or null. The saver records the further processing of the snapshot in this trace.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return trace_; }
  /// Takes the buffer of this snapshot out of its pool. The pool gets a new buffer without memory instead, which can be acquired at once.
  void leave_pool();
  /// Returns the memory of this snapshot in bytes: that of its buffer, and the lengths of its strings.
  [[nodiscard]] std::size_t held_bytes() const noexcept;

private:
  friend class saver;
  [[nodiscard]] static snapshot capture_with(snapshot_pool::buffer memory, const variable_list& variables, std::int64_t step,
                                             io::pool* helpers, update_fence* fence);
  snapshot(snapshot_pool::buffer memory, std::int64_t step, std::shared_ptr<trace_recorder> trace) noexcept
      : memory_(std::move(memory)), step_(step), trace_(std::move(trace)) {}
  [[nodiscard]] snapshot_pool::buffer release() && noexcept { return std::move(memory_); }

  snapshot_pool::buffer memory_;
  std::int64_t step_ = 0;
  std::shared_ptr<trace_recorder> trace_;
};

/// Returns the CRC-32C of the names, dtypes, shapes and elements of all variables, in the order of the list. Lists with the same names,
/// dtypes, shapes and bits have the same checksum. For example, 0.0 and -0.0 have different bits.
/// @errors Errors of the device, for elements on a device.
/// @threads The elements must not change during the call.
/// @cost Reads all elements once. Elements on a device are copied first, one variable at a time.
[[nodiscard]] std::uint32_t checksum(const variable_list& variables);

}  // namespace stepwell
