// SPDX-License-Identifier: Apache-2.0
//
// An owned, immutable copy of variables at one step, and the buffers such copies live in.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {

class trace_recorder;

namespace detail {
struct snapshot_memory;
struct snapshot_pool_state;
}  // namespace detail

/// A few big buffers, made and touched at construction, so that taking a snapshot costs one copy and no page fault.
/// Whoever holds a buffer or a snapshot keeps what it needs of the pool alive.
/// @threads All functions may be called from any thread.
class snapshot_pool {
public:
  /// One buffer on loan; goes back to its pool when destroyed.
  class buffer {
  public:
    buffer() noexcept;
    buffer(buffer&&) noexcept;
    buffer& operator=(buffer&&) noexcept;
    ~buffer();

    /// Bytes it holds without growing.
    [[nodiscard]] std::size_t capacity() const noexcept;

  private:
    friend class snapshot_pool;
    friend class snapshot;
    buffer(std::shared_ptr<detail::snapshot_pool_state> pool, std::unique_ptr<detail::snapshot_memory> memory) noexcept;
    void give_back() noexcept;

    std::shared_ptr<detail::snapshot_pool_state> pool_;
    std::unique_ptr<detail::snapshot_memory> memory_;
  };

  /// `buffers` buffers of `bytes` bytes each. They grow by themselves if the model grew.
  /// @errors `invalid_argument_error` for no buffers, `resource_exhausted_error` when there is no such memory.
  /// @cost   Touches every page once.
  explicit snapshot_pool(std::size_t bytes, std::size_t buffers = 2);

  /// A buffer, if one is free now.
  [[nodiscard]] std::optional<buffer> try_acquire();
  /// A buffer; waits until one is free.
  [[nodiscard]] buffer acquire();
  /// A buffer, or none if `when` came before one was free.
  [[nodiscard]] std::optional<buffer> acquire_until(clock& source, clock::time_point when);
  /// Calls `wake` once, as soon as a buffer is free: at once when one is, else on the thread that gives one back.
  /// The awaited twin of `acquire`: try again in `wake`. It must be short and must not throw.
  void when_available(std::function<void()> wake);

  [[nodiscard]] std::size_t buffers() const noexcept;
  [[nodiscard]] std::size_t available() const;

private:
  std::shared_ptr<detail::snapshot_pool_state> state_;
};

/// Bytes a snapshot of these variables takes, alignment included: what to size a pool by.
[[nodiscard]] std::size_t snapshot_size(const variable_list& variables);

/// One variable in a snapshot.
struct snapshot_entry {
  std::string name;
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::span<const std::byte> bytes;  ///< Inside the snapshot; 64-byte aligned, from 1 MiB on at a page.
};

/// An owned, immutable copy of variables at a step boundary: the only thing a saver takes. Can be moved, not copied.
/// @threads Immutable, so reading is free for all.
class snapshot {
public:
  /// Copies `variables`, which should hold the step too, into `memory`.
  /// @errors `invalid_argument_error` for two variables of one name, or one without a name;
  ///         `resource_exhausted_error` when the buffer must grow and cannot.
  /// @cost   One memcpy a variable; no allocation when names, dtypes and shapes are those of the capture before in
  ///         this buffer, and nothing is traced.
  [[nodiscard]] static snapshot capture(snapshot_pool::buffer memory, const variable_list& variables, std::int64_t step);

  /// One of nothing, of step 0.
  snapshot() noexcept = default;
  snapshot(snapshot&&) noexcept = default;
  snapshot& operator=(snapshot&&) noexcept = default;
  ~snapshot() = default;

  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  /// In the order of the variables. @lifetime As long as this snapshot is neither moved nor destroyed.
  [[nodiscard]] std::span<const snapshot_entry> entries() const noexcept;
  /// The entry of that name, or null.
  [[nodiscard]] const snapshot_entry* find(std::string_view name) const noexcept;
  /// Bytes of all variables together.
  [[nodiscard]] std::size_t size_bytes() const noexcept;
  /// The trace that was in force where it was captured, or null: what becomes of it is recorded there.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return trace_; }

private:
  friend class saver;
  snapshot(snapshot_pool::buffer memory, std::int64_t step, std::shared_ptr<trace_recorder> trace) noexcept;
  [[nodiscard]] snapshot_pool::buffer release() && noexcept { return std::move(memory_); }

  snapshot_pool::buffer memory_;
  std::int64_t step_ = 0;
  std::shared_ptr<trace_recorder> trace_;
};

}  // namespace stepwell
