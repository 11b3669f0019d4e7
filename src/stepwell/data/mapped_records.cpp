// SPDX-License-Identifier: Apache-2.0
#include "stepwell/data/mapped_records.hpp"

#include "stepwell/io/detail/mapped_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace stepwell::data {

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
