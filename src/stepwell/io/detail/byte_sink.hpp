// SPDX-License-Identifier: Apache-2.0
//
// The destination of the bytes of a byte_queue.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/io/file.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace stepwell::io {

/// An interface that accepts bytes in order.
/// @threads The functions are called by one thread at a time. The thread may change between calls.
class byte_sink {
public:
  byte_sink() = default;
  byte_sink(const byte_sink&) = delete;
  byte_sink& operator=(const byte_sink&) = delete;
  virtual ~byte_sink() = default;

  /// Appends all of `bytes`. The queue does not call it again after an error.
  virtual result<void> write(std::span<const std::byte> bytes) = 0;
  /// Makes all written bytes durable.
  virtual result<void> sync() = 0;
  virtual result<void> close() = 0;
};

/// Returns a sink that writes to `target`, beginning at `offset`.
[[nodiscard]] std::unique_ptr<byte_sink> sink_into(std::unique_ptr<file> target, std::uint64_t offset = 0);

}  // namespace stepwell::io
