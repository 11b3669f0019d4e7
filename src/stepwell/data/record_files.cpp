// SPDX-License-Identifier: Apache-2.0
#include "stepwell/data/record_files.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/data/detail/inflated_file.hpp"
#include "stepwell/data/shuffled_batches.hpp"
#include "stepwell/io/detail/mapped_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace stepwell::data {
namespace {

void check(const record_files_options& options) {
  if (options.paths.empty()) { throw invalid_argument_error("record_files: paths is empty; give it at least one file"); }
  if (options.max_record_size == 0) { throw invalid_argument_error("record_files: max_record_size is 0; give it at least 1"); }
  if (options.read_size == 0) { throw invalid_argument_error("record_files: read_size is 0; give it at least 1"); }
}

std::unique_ptr<io::file> open(const record_files_options& options, std::size_t number) {
  auto file = value_or_throw(options.file_system->open(options.paths[number], io::open_mode::read));
  return value_or_throw(detail::inflate_if_compressed(std::move(file)));
}

}  // namespace

record_files::record_files(record_files_options options) : options_(std::move(options)), decoder_(options_.max_record_size) {
  check(options_);
  if (!options_.file_system) { options_.file_system = io::posix_file_system(); }
  std::uint64_t total_size = 0;
  for (auto& path : options_.paths) { path = value_or_throw(io::absolute_path(path)); }
  std::string empty;
  for (std::size_t i = 0; i < options_.paths.size(); ++i) {
    const auto size = value_or_throw(open(options_, i)->size());
    if (size == 0) { empty += (empty.empty() ? "" : ", ") + options_.paths[i]; }
    ends_.push_back(total_size += size);
  }
  if (total_size == 0) { throw data_loss_error("record_files: the files have no records; check how they were written or copied", empty); }
  if (!empty.empty()) { log_warning("record_files: these files are empty and have no records: " + empty); }
  end_ = detail::end_after(options_.epochs, total_size);
}

const record_files::batch* record_files::peek() {
  if (is_present_) { return &batch_; }
  if (position_ >= end_ || total() == 0) { return nullptr; }
  if (!reads_on_) { open_at_position(); }
  reads_on_ = false;  // a call after a failure reads this record from its first byte again
  stepwell::detail::with_memory("could not read a record", options_.paths[file_number_], [this] {
    while (!read_record()) {
      if (!read_more()) { fail("the file ends inside a record, or has become shorter"); }
    }
  });
  reads_on_ = true;
  return &batch_;
}

void record_files::advance() {
  if (peek() == nullptr) { return; }
  is_present_ = false;
  position_ = next_;
  const auto in_pass = position_ % total();
  reads_on_ = in_pass != 0 && in_pass < ends_[file_number_];  // else the next record is in another file
}

void record_files::seek(std::uint64_t position) noexcept {
  position_ = position;
  is_present_ = reads_on_ = false;
}

std::uint64_t record_files::position_of(std::size_t file, std::uint64_t offset) const {
  const auto first = file == 0 || file >= ends_.size() ? 0 : ends_[file - 1];
  if (file < ends_.size() && offset <= ends_[file] - first) { return first + offset; }
  throw out_of_range_error(fmt::format("there is no offset {} in file {} of {}", offset, file, ends_.size()));
}

std::string record_files::fingerprint() const {
  const auto others = options_.paths.size() > 1 ? fmt::format(" and {} more", options_.paths.size() - 1) : "";
  return fmt::format("{}{}, {} bytes", io::base_name(options_.paths.front()), others, total());
}

/// Opens the file of the current position, unless it is open, and reads at the current position from now on.
void record_files::open_at_position() {
  const auto in_pass = position_ % total();
  const auto number = static_cast<std::size_t>(std::ranges::upper_bound(ends_, in_pass) - ends_.begin());
  if (!file_ || number != file_number_) {
    file_ = open(options_, number);
    file_number_ = number;
  }
  read_to_ = in_pass - (number == 0 ? 0 : ends_[number - 1]);
  decoder_ = format::record_decoder(options_.max_record_size, read_to_);
  reads_on_ = true;
}

/// Takes the record out of the bytes that were read. Returns false if more bytes are needed.
bool record_files::read_record() {
  const auto data = decoder_.next();
  if (!data && data.error().code == errc::truncated) { return false; }
  if (!data) { fail(data.error().message); }
  batch_.assign(data->begin(), data->end());
  next_ = position_ + format::record_overhead + data->size();
  is_present_ = true;
  return true;
}

/// Returns false at the end of the file.
bool record_files::read_more() {
  const auto size = ends_[file_number_] - (file_number_ == 0 ? 0 : ends_[file_number_ - 1]);
  buffer_.resize(options_.read_size);
  const auto wanted = std::min<std::uint64_t>(buffer_.size(), size - read_to_);
  const auto count = value_or_throw(file_->read_at(read_to_, std::span(buffer_).first(static_cast<std::size_t>(wanted))));
  decoder_.feed(std::span(buffer_).first(count));
  read_to_ += count;
  return count > 0;
}

void record_files::fail(std::string why) const {
  const auto offset = decoder_.position();
  throw data_loss_error(
      fmt::format("could not read the record at offset {}: {}; the file is damaged, or no TFRecord file, or the position is "
                  "that of other files",
                  offset, why),
      options_.paths[file_number_]);
}

format::example parse_example(std::span<const std::byte> record) { return value_or_throw(format::decode_example(record)); }

struct mapped_records::mapping {
  io::mapped_file file;
  std::span<const std::byte> records;
};

namespace {

void check(const mapped_records_options& options) {
  if (options.paths.empty()) { throw invalid_argument_error("mapped_records: paths is empty; give it at least one file"); }
  if (options.record_size == 0) { throw invalid_argument_error("mapped_records: record_size is 0; give it at least 1"); }
}

std::span<const std::byte> records_in(std::span<const std::byte> bytes, const std::string& path, const mapped_records_options& options) {
  const auto size = bytes.size();
  if (size < options.header_size) {
    throw data_loss_error(fmt::format("the file has {} bytes, and its header {}; check header_size", size, options.header_size), path);
  }
  const auto rest = (size - options.header_size) % options.record_size;
  if (rest != 0) {
    throw data_loss_error(fmt::format("the file ends with {} bytes of a record of {}; check record_size and header_size, or copy it again",
                                      rest, options.record_size),
                          path);
  }
  return bytes.subspan(options.header_size);
}

}  // namespace

mapped_records::mapped_records(mapped_records_options options) : record_size_(options.record_size) {
  check(options);
  std::vector<mapping> files;
  std::vector<std::uint64_t> ends;
  std::uint64_t count = 0;
  for (const auto& path : options.paths) {
    auto file = value_or_throw(io::mapped_file::open(path));
    const auto records = records_in(file.bytes(), path, options);
    files.push_back({std::move(file), records});
    ends.push_back(count += records.size() / record_size_);
  }
  const auto others = options.paths.size() > 1 ? fmt::format(" and {} more", options.paths.size() - 1) : "";
  fingerprint_ = std::make_shared<const std::string>(
      fmt::format("{}{}, {} records of {} bytes", io::base_name(options.paths.front()), others, count, record_size_));
  files_ = std::make_shared<const std::vector<mapping>>(std::move(files));
  ends_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(ends));
}

mapped_records::record mapped_records::operator[](std::uint64_t index) const {
  const auto file = static_cast<std::size_t>(std::ranges::upper_bound(*ends_, index) - ends_->begin());
  const auto first = file == 0 ? 0 : (*ends_)[file - 1];
  return (*files_)[file].records.subspan(static_cast<std::size_t>(index - first) * record_size_, record_size_);
}

std::vector<mapped_records::record> mapped_records::batch(example_indices indices) const {
  std::vector<record> made;
  gather(indices, made);
  return made;
}

void mapped_records::gather(example_indices indices, std::vector<record>& into) const {
  into.clear();
  into.reserve(indices.size());
  for (const auto index : indices) { into.push_back((*this)[index]); }
}

}  // namespace stepwell::data
