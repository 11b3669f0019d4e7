// SPDX-License-Identifier: Apache-2.0
//
// Reads the events of a file one by one, even while the file is being written.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/format/events/detail/summary_values.hpp"
#include "stepwell/format/events/event.hpp"
#include "stepwell/format/events/record.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::summary {

/// Returns true if this is the name of an event file: viewers read all files whose names contain this word.
[[nodiscard]] inline bool is_event_file(std::string_view name) noexcept { return name.find("tfevents") != std::string_view::npos; }

/// The report of records that are too large to be decoded.
enum class large_records {
  warned,  ///< A warning for each of them.
  silent,
};

/// The events of one file.
class event_stream {
public:
  /// Opens the file.
  /// @errors Failures to open it.
  event_stream(io::file_system& files, const std::string& path, large_records large = large_records::warned);

  /// Returns the next event. Empty at the end of the file; after the file has grown, returns events again. Records of more than 8 MiB are
  /// checked and counted, but skipped.
  /// @errors `data_loss_error` with the offset of a damaged record, or of one that cannot be decoded. The next call skips this record,
  ///         unless `is_lost()`.
  /// @cost Memory: at most 64 MiB, independent of the sizes stored in the file.
  [[nodiscard]] std::optional<format::event> next() { return next(nullptr); }
  /// Like `next()`, but puts the values of an event that has only scalars of the simple style into `scalars` instead of the result, which is
  /// several times faster. `scalars` is empty if the event is another one.
  /// @lifetime The tags are valid until the next call.
  [[nodiscard]] std::optional<format::event> next(std::vector<format::scalar_event>& scalars) { return next(&scalars); }

  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  /// Returns true if the length of a record is damaged. No later record can be found then.
  [[nodiscard]] bool is_lost() const noexcept { return is_lost_; }
  /// Returns the number of events so far, including skipped ones.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Returns the number of bytes read so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return read_; }
  /// Returns the number of bytes of an incomplete last record. Valid at the end of the file.
  [[nodiscard]] std::size_t cut_short() const noexcept { return decoder_.pending(); }

private:
  [[nodiscard]] std::optional<format::event> next(std::vector<format::scalar_event>* scalars);
  [[nodiscard]] bool read_more();
  [[nodiscard]] bool pass_over(std::uint64_t length);

  std::unique_ptr<io::file> file_;
  large_records large_;
  format::record_decoder decoder_;
  std::vector<std::byte> chunk_;
  std::uint64_t read_ = 0;
  std::uint64_t records_ = 0;
  bool is_lost_ = false;
};

}  // namespace stepwell::summary
