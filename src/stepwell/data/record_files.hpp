// SPDX-License-Identifier: Apache-2.0
//
// Data in files of records: a seekable source over TFRecord files, with the parser of the tf.Example messages in them, and a dataset over
// memory-mapped files of fixed-size records.
#pragma once

#include "stepwell/data/shuffled_batches.hpp"
#include "stepwell/format/events/record.hpp"
#include "stepwell/format/examples/example.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stepwell::data {

/// Options of `record_files`. `paths` is required.
struct record_files_options {
  std::vector<std::string> paths = {};                           ///< The files, in the order in which they are read.
  std::optional<std::uint64_t> epochs = 1;                       ///< Number of passes over all files. If empty, the source is endless.
  std::string name = {};                                         ///< Name of this source in checkpoints, see `data::name_of`.
  std::uint64_t max_record_size = format::default_record_limit;  ///< In bytes. A longer record is an error. Must be above zero.
  std::size_t read_size = std::size_t{1} << 18;                  ///< Number of bytes that are read at once. Must be above zero.
  std::shared_ptr<io::file_system> file_system = nullptr;        ///< If null, the file system of the machine is used.
};

/// A source of the records of TFRecord files, one by one. Both checksums of each record are verified. The position of the source is the
/// number of bytes before the current record, in all files and passes. `peek` after a `seek` therefore costs only one additional read.
///
/// A file that begins with a header of gzip or zlib (the compression types "GZIP" and "ZLIB" of TensorFlow's `TFRecordOptions`) and not
/// with a record is recognised as compressed. It is read as if it had been decompressed: positions and sizes are those of the
/// decompressed bytes.
///
/// The files must not change: their sizes are read only once, and the fingerprint (a description of the data that a session saves with the
/// position, and compares when it resumes) contains their total size.
/// @errors `peek` and `advance` throw a `data_loss_error` that names the file and the offset if a record is damaged, or if a file is
///         not a TFRecord file, and a `resource_exhausted_error` if there is not enough memory for a record. They throw any error of the
///         system. They can be called again after an error.
/// @cost   Memory for the longest record and for `read_size` bytes. One file is open at a time. The constructor decompresses each
///         compressed file once, to find its size, and a `seek` in such a file decompresses it up to the position.
class record_files {
public:
  using batch = std::vector<std::byte>;

  /// Reads the sizes of the files.
  /// @errors `invalid_argument_error` that names the option, or a path that is no regular file, such as a pipe or a device;
  ///         `not_found_error` for a missing file; `data_loss_error` if all files are empty, or if compressed data are damaged; any error
  ///         of the system. An empty file beside others is a warning.
  explicit record_files(record_files_options options);

  /// Returns the data of the current record, or null at the end.
  [[nodiscard]] const batch* peek();
  /// Moves to the next record. @cost Reads the current record if `peek` has not read it.
  void advance();

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Sets the position, which must be the beginning of a record. Reads nothing; the next `peek` reads this record.
  void seek(std::uint64_t position) noexcept;
  /// Returns the position of the record that begins at byte `offset` of the file `paths[file]`, in the first pass.
  /// @errors `out_of_range_error` if there is no such file, or if `offset` is greater than its size.
  [[nodiscard]] std::uint64_t position_of(std::size_t file, std::uint64_t offset) const;

  /// Returns the number of the pass to which the current record belongs, counted from 0.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return total() == 0 ? 0 : position_ / total(); }
  /// Returns true if the current record is the last record of the last file. Returns false until `peek` was called for this record.
  [[nodiscard]] bool is_last_of_epoch() const noexcept { return is_present_ && next_ % total() == 0; }
  /// Returns true if the current record is the first record of the first file. Also returns true at the end of the data.
  [[nodiscard]] bool is_at_epoch_start() const noexcept { return total() == 0 || position_ % total() == 0; }
  /// Returns the number of passes after which the data ends. Empty: endless.
  [[nodiscard]] std::optional<std::uint64_t> epochs() const noexcept { return options_.epochs; }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  /// Returns the names and the total size of the files, for example "train-0.tfrecord and 7 more, 123456 bytes".
  [[nodiscard]] std::string fingerprint() const;

private:
  [[nodiscard]] std::uint64_t total() const noexcept { return ends_.back(); }
  void open_at_position();
  bool read_record();
  bool read_more();
  [[noreturn]] void fail(std::string why) const;

  record_files_options options_;
  std::vector<std::uint64_t> ends_;  // for each file: number of bytes in this file and all files before it
  std::uint64_t end_;                // position after the last pass
  std::uint64_t position_ = 0;
  std::uint64_t next_ = 0;  // position of the next record; valid if `is_present_` is true
  batch batch_;
  bool is_present_ = false;  // true if `batch_` is the record at `position_`

  // `decoder_` continues at `position_` if `is_present_` or `reads_on_` is true.
  bool reads_on_ = false;
  std::size_t file_number_ = 0;
  std::unique_ptr<io::file> file_;
  std::uint64_t read_to_ = 0;  // offset in the file of the next byte to read
  format::record_decoder decoder_;
  std::vector<std::byte> buffer_;
};

/// Returns the example in a record. Use it with `transform(record_files({.paths = paths}), parse_example)`, or on several threads with
/// `parallel_map(record_files({.paths = paths}), parse_example, {.threads = 4})`.
/// @errors `data_loss_error` if the record is not a tf.Example, or if the example would need more memory than 24 MiB plus twice the size of
///         the record.
[[nodiscard]] format::example parse_example(std::span<const std::byte> record);

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
