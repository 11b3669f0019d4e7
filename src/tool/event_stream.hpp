// SPDX-License-Identifier: Apache-2.0
//
// The events of a file, one by one, also while somebody writes it.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "stepwell/format/events/record.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::tool {

class event_stream {
public:
  /// @errors Those of opening the file.
  event_stream(io::file_system& files, const std::string& path);

  /// The next event; nothing at the end, and something again once the file has grown.
  /// Records of more than 8 MiB are checked and counted, but passed over with a warning.
  /// @errors `data_loss_error` with the offset; nothing behind it can be found. @cost Memory: 64 MiB, whatever the file claims.
  [[nodiscard]] std::optional<format::event> next();

  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  /// Events given so far.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Bytes read so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return read_; }
  /// At the end: bytes of a record whose rest is missing.
  [[nodiscard]] std::size_t cut_short() const noexcept { return decoder_.pending(); }

private:
  [[nodiscard]] bool read_more();
  [[nodiscard]] bool pass_over(std::uint64_t length);

  std::unique_ptr<io::file> file_;
  format::record_decoder decoder_;
  std::vector<std::byte> chunk_;
  std::uint64_t read_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace stepwell::tool
