// SPDX-License-Identifier: Apache-2.0
//
// Where a byte_queue's bytes end: anything that takes them in order.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/io/file.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace stepwell::io {

/// @threads Called by one thread at a time, not always the same.
class byte_sink {
public:
  byte_sink() = default;
  byte_sink(const byte_sink&) = delete;
  byte_sink& operator=(const byte_sink&) = delete;
  virtual ~byte_sink() = default;

  /// Adds all of `bytes` after what was written before. After an error nothing more is written.
  virtual result<void> write(std::span<const std::byte> bytes) = 0;
  /// Makes what was written durable.
  virtual result<void> sync() = 0;
  virtual result<void> close() = 0;
};

/// Writes into `target` from `offset` on.
[[nodiscard]] std::unique_ptr<byte_sink> sink_into(std::unique_ptr<file> target, std::uint64_t offset = 0);

}  // namespace stepwell::io
