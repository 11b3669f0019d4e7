// SPDX-License-Identifier: Apache-2.0
//
// A group: the processes that train one model together, one rank each.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/group/detail/collective.hpp"
#include "stepwell/group/engine.hpp"
#include "stepwell/metrics/metrics.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
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

/// Options of a group.
struct group_options {
  /// The smallest number of processes with which training continues after a loss. 0: all processes; a lost process must be replaced.
  int min_size = 0;
  /// After a loss, the group waits for a replacement of the lost process. After this time, it continues without a replacement if at least
  /// `min_size` processes are present.
  seconds_value patience_secs = 30;
  /// Number of fixed parts into which `parts_of` divides each batch. With `part_sums`, the results then have the same bits for each number
  /// of processes up to `parts`. 0: one part for each process.
  int parts = 0;
};

/// The processes that train one model. Each process holds one object. The model calls `sum` in its step; the session gets the group as
/// `training_options::group`.
///
/// Rules for the step of a model in a group of several processes:
/// * Each step calls `sum`. The first sum of a step has the same type and the same number of elements in all steps and in all processes.
/// * A step changes variables only after its first call of `sum`. If another process has ended the training, this call throws, and the
///   session discards the step.
/// * All processes call `sum` and `broadcast` equally often and in the same order.
///
/// @threads The session's thread, except `rank`, `size`, `launched`, `is_chief`, `generation` and `parts`, which any thread may call.
class group {
public:
  /// @errors `invalid_argument_error` if an option is negative, or if `min_size` is larger than the group.
  explicit group(std::unique_ptr<engine> with, group_options options = {});
  ~group();
  group(const group&) = delete;
  group& operator=(const group&) = delete;

  /// `rank()` returns the index of this process among the processes that train now, from 0. `size()` returns the number of these processes.
  /// After a loss without a replacement, both may be smaller than in the launcher.
  [[nodiscard]] int rank() const noexcept { return place_.load(std::memory_order_relaxed).rank; }
  [[nodiscard]] int size() const noexcept { return place_.load(std::memory_order_relaxed).size; }
  /// Returns true for the process that restores and saves the model: rank 0.
  [[nodiscard]] bool is_chief() const noexcept { return engine_->rank() == 0; }
  /// Returns the number of parts of a batch: the option `parts`, or `size()` if that option is 0.
  [[nodiscard]] int parts() const noexcept { return options_.parts > 0 ? options_.parts : size(); }
  /// Returns the generation, a number that increases each time the group is formed. Returns 0 before the first formation.
  [[nodiscard]] std::int64_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  /// Returns the number of processes that the launcher has started.
  [[nodiscard]] int launched() const noexcept { return engine_->size(); }
  /// Returns the launcher's ranks of the processes that train now, in ascending order. A rank is missing if its process is lost and was not
  /// replaced. @pre The group is formed.
  [[nodiscard]] const std::vector<int>& members() const noexcept { return collective_->members(); }
  [[nodiscard]] const group_options& options() const noexcept { return options_; }
  /// Returns a text with the generation and the ranks of its processes: "generation 3 with the ranks 0, 1, 3 of 4, connected by MPI".
  /// @pre The group is formed.
  [[nodiscard]] std::string description() const;
  /// Returns the name of the engine.
  [[nodiscard]] std::string_view engine_name() const noexcept { return engine_->name(); }

  /// Replaces each element of `values` by its sum over all processes: a number, a range of numbers, a tensor, or a type with an adapter. All
  /// processes get the same bits. Does nothing if there is one process.
  /// @errors   `unavailable_error` if a process is lost: the session then forms the group again and restores the model.
  ///           `out_of_range_error` in a step of a session if another process has ended the training: the session discards the step and ends.
  ///           `invalid_argument_error` if the first sum of the step has another type or number of elements than those of earlier steps.
  ///           `failed_precondition_error` before the session is created, and after it is closed.
  ///           `unimplemented_error` if the engine cannot add this type.
  template<variable_like T>
  void sum(T& values) {
    static_assert(detail::has_writable_elements<T>(), "stepwell: the elements of a sum must be writable");
    const auto elements = detail::elements_of(values);
    sum_elements(elements.dtype, {const_cast<std::byte*>(elements.bytes.data()), elements.bytes.size()});
  }
  template<variable_like T>
    requires(!std::is_reference_v<T> && detail::refers_to_elements<T>)
  void sum(T&& elements) {
    sum(elements);
  }
  /// Copies the elements of rank 0 to all other processes. Does nothing if there is one process.
  /// @errors Those of `sum`, except `out_of_range_error`.
  template<variable_like T>
  void broadcast(T& values) {
    static_assert(detail::has_writable_elements<T>(), "stepwell: the elements of a broadcast must be writable");
    const auto elements = detail::elements_of(values);
    broadcast_bytes({const_cast<std::byte*>(elements.bytes.data()), elements.bytes.size()});
  }
  /// Returns the metrics of all processes, merged in the order of the ranks. In a step, call `sum` before `merged`.
  /// @errors Those of `sum`. `invalid_argument_error` if a variable of the metric holds strings.
  template<metrics::streaming_metric Metric>
  [[nodiscard]] Metric merged(Metric mine) {
    if (size() == 1) { return mine; }
    const auto bytes = bytes_of_all(mine.variables());
    const auto each = bytes.size() / static_cast<std::size_t>(size());
    std::optional<Metric> merged_metric;
    for (int other = 0; other < size(); ++other) {
      Metric other_metric = mine;
      assign(other_metric.variables(), std::span(bytes).subspan(static_cast<std::size_t>(other) * each, each));
      merged_metric ? merged_metric->merge(other_metric) : static_cast<void>(merged_metric.emplace(std::move(other_metric)));
    }
    return *std::move(merged_metric);
  }
  void sum_elements(dtype type, std::span<std::byte> elements);
  /// Like `sum`, for elements in the memory of a CUDA device. If this is the first sum of a step, a sum of one integer for each process precedes it.
  /// Returns false, without a sum, if the engine adds elements of the host only.
  /// @errors Those of `sum`.
  [[nodiscard]] bool sum_on_gpu(dtype type, std::span<std::byte> elements);
  void broadcast_bytes(std::span<std::byte> bytes);

  // ---- Functions for the session.

  /// Functions of the session that the group calls.
  struct session_hooks {
    /// Returns the global step before the running step of the model. Returns nothing if no step of the model runs, for example during
    /// `after_run` of a hook or an evaluation. Only the first sum of a step of the model checks whether a process has ended the training. Throws
    /// `failed_precondition_error` in `before_run` of a hook, where the group cannot be used.
    std::function<std::optional<std::int64_t>()> running_step;
    /// Called when the process `rank` has ended the training with `leave(cause)`.
    std::function<void(int rank, std::int64_t cause)> stop;
    /// Called in rank 0 after a formation without the process `rank`, which has ended the training with `leave(cause)`. The remaining
    /// processes were not informed of that end. They do the rest of the training or, if the cause is a request, end it, too.
    std::function<void(int rank, std::int64_t cause)> finish_without = {};
  };
  /// Options of a formation: the clock, and the limits of the wait for the other processes.
  struct forming {
    std::shared_ptr<clock> time;
    std::stop_token stop;
    clock::time_point until = clock::time_point::max();
    std::function<void()> check = {};  ///< See `formation::check`.
    const void* owner = nullptr;       ///< The session that uses the group until it closes or abandons it.
  };
  /// Forms the group, for the first time or again. @errors Those of `engine::form`. `failed_precondition_error` if another session uses it.
  void form(const forming& how, session_hooks session);
  /// Returns true if the group is formed and can be used.
  [[nodiscard]] bool is_formed() const noexcept { return collective_ != nullptr; }
  /// Compares `text`, which must be equal in all processes.
  /// @errors `failed_precondition_error` that names the ranks whose text differs from that of rank 0.
  void compare(std::string_view what, std::string_view text);
  /// Copies `bytes` of rank 0, with any size, to all other processes.
  void share(std::vector<std::byte>& bytes);
  /// Ends the training of all processes at the same step: the others discard their current step. Does nothing if a process has already
  /// ended the training, or if the group is not formed. `cause` is a number above zero that the other processes get as the reason.
  /// @errors `unavailable_error` if a process is lost.
  void leave(std::int64_t cause);
  /// Ends the collective after a failure of this process. The other processes fail in their next operation.
  void abandon(std::string_view why) noexcept;
  /// Ends the collective without a failure.
  void close() noexcept;

private:
  struct place {
    int rank;
    int size;
  };
  struct payload {
    dtype type = dtype::invalid;
    std::size_t bytes = 0;
    bool operator==(const payload&) const = default;
  };

  void check_formed(std::string_view what) const;
  [[noreturn, gnu::cold]] static void throw_unformed(std::string_view what);
  void check_usable(std::string_view what) const;
  template<class Operation>
  void guarded(std::string_view what, Operation operation);
  [[gnu::cold, gnu::noinline]] void end_after_failure(std::string_view what);
  void add(dtype type, std::span<std::byte> elements);
  void sum_with_vote(dtype type, std::span<std::byte> elements);
  [[gnu::noinline]] void check_first_sum(payload mine);
  void sum_with_lane(dtype type, std::span<std::byte> elements);
  void compare_payloads(const payload& mine);
  [[nodiscard]] std::vector<std::byte> bytes_of_all(const variable_list& variables);
  static void assign(const variable_list& variables, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::int64_t> values_of_all(std::int64_t mine);
  void discard_step_if_ended(const std::vector<std::int64_t>& causes);
  void announce_end(std::int64_t cause);

  std::unique_ptr<engine> engine_;
  group_options options_;
  std::unique_ptr<collective> collective_;
  std::atomic<place> place_;
  std::atomic<std::int64_t> generation_ = 0;
  session_hooks session_;
  const void* owner_ = nullptr;
  std::optional<std::int64_t> voted_step_;
  payload payload_;  // type and size of the first sum of each step; invalid before the first sum of this generation
  bool has_ended_ = false;
  bool is_lost_ = false;  // the last collective has ended with a failure
};

}  // namespace stepwell
