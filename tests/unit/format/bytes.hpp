// SPDX-License-Identifier: Apache-2.0
//
// Conversions for the format tests: bytes of texts, records of streams.
#pragma once

#include "support/catch.hpp"

#include <stepwell/format/events/record.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

inline std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// The records of a stream, and the error that ended it.
struct read_records {
  std::vector<std::string> data;
  errc ended_by = errc::unknown;
  std::size_t pending = 0;
};

inline read_records records_of(std::string_view stream) {
  format::record_decoder decoder;
  decoder.feed(bytes_of(stream));
  read_records read;
  for (;;) {
    auto next = decoder.next();
    if (!next) {
      read.ended_by = next.error().code;
      read.pending = decoder.pending();
      return read;
    }
    read.data.push_back(text_of(*next));
  }
}

}  // namespace stepwell::test
