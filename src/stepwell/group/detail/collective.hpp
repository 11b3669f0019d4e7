// SPDX-License-Identifier: Apache-2.0
//
// Collective operations of the processes that train one model.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace stepwell {

/// A fixed set of processes that call the same operations in the same order. An engine makes collectives. A collective whose operation has
/// thrown is not used again.
/// @threads One thread at a time, except `abandon`.
class collective {
public:
  collective() = default;
  collective(const collective&) = delete;
  collective& operator=(const collective&) = delete;
  /// Leaves the set. Operations of the other processes that have not finished then fail.
  virtual ~collective() = default;

  /// Returns the ranks of the processes of this set, in ascending order. A rank is the number that the launcher gave to a process, from 0.
  /// The set contains fewer ranks than the launcher started if the engine formed it after a loss, without a replacement.
  [[nodiscard]] virtual const std::vector<int>& members() const noexcept = 0;

  /// Replaces each element by the sum of this element over all processes. All processes get the same bits. `elements` contains `bytes / size
  /// of a type` elements of `type`. All processes pass the same type and the same number of elements.
  /// @errors `unavailable_error` if a process is lost, or does not take part within the time limit of the engine. `unimplemented_error` if
  ///   the engine cannot add this type. Every engine adds `float32`, `float64` and `int64`.
  virtual void sum(dtype type, std::span<std::byte> elements) = 0;
  /// Copies `bytes` of rank 0 to all other processes. All processes pass the same size.
  /// @errors `unavailable_error` as above.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// Like `sum`, for elements in the memory of a CUDA device. Only an engine whose `adds_on_gpu` returns true implements it.
  virtual void sum_on_gpu(dtype /*type*/, std::span<std::byte> /*elements*/) {}
  [[nodiscard]] virtual bool adds_on_gpu() const noexcept { return false; }

  /// Ends the set after a failure of this process, before it is destroyed: the operations of the other processes fail. An engine that cannot
  /// form another set ends the job, so that the launcher can start it again. `why` describes the failure.
  /// @threads Any.
  virtual void abandon(std::string_view why) noexcept = 0;
};

}  // namespace stepwell
