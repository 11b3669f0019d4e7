// SPDX-License-Identifier: Apache-2.0
//
// A dataset over memory-mapped files of fixed-size records.
#pragma once

#include "stepwell/data/shuffled_batches.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepwell::data {

/// Options of `mapped_records`. `paths` and `record_size` are required.
struct mapped_records_options {
  std::vector<std::string> paths = {};
  std::size_t record_size = 0;  ///< Size of each record in bytes, above zero.
  std::size_t header_size = 0;  ///< Number of bytes at the beginning of each file, before the first record.
};

/// The records of one or more files. The files are mapped into memory and not copied. The system reads a page when it is first used, and
/// may release the page when memory is short. The class is a `dataset`: pass it to `shuffled_batches` for batches in random order, or to
/// `batches_in_order` for batches in the order of the files. A batch is a vector of spans, one for each record.
/// @lifetime Copies of this object share the mapping. A record is valid as long as one of the copies exists. The files must not become
///           shorter: if a process reads a mapped part that the file no longer has, the system ends the process (SIGBUS).
/// @threads  Any number of threads may read.
class mapped_records {
public:
  using record = std::span<const std::byte>;

  /// Maps the files.
  /// @errors `invalid_argument_error` if there is no path, if `record_size` is 0, or if a path is not a regular file. `data_loss_error` if
  ///   a file is shorter than its header or ends inside a record. Errors of the system, for example if a file cannot be opened.
  explicit mapped_records(mapped_records_options options);

  /// Returns the number of records in all files.
  [[nodiscard]] std::uint64_t size() const noexcept { return ends_->back(); }
  /// Returns record number `index`. @pre `index < size()`. @cost A binary search over the files.
  [[nodiscard]] record operator[](std::uint64_t index) const;

  [[nodiscard]] std::vector<record> batch(example_indices indices) const;
  void gather(example_indices indices, std::vector<record>& into) const;

  /// Returns a text that identifies the data, for example "train.bin, 60000 records of 785 bytes". For several files, the text has only the
  /// name of the first file, and the number of the others.
  [[nodiscard]] const std::string& fingerprint() const noexcept { return *fingerprint_; }

private:
  struct mapping;

  std::size_t record_size_;
  std::shared_ptr<const std::vector<mapping>> files_;
  std::shared_ptr<const std::vector<std::uint64_t>> ends_;  // for each file: number of records in this file and all files before it
  std::shared_ptr<const std::string> fingerprint_;
};

}  // namespace stepwell::data
