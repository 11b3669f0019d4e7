// SPDX-License-Identifier: Apache-2.0
//
// A table reader and writer built on Google's LevelDB library, independent of the library under test.
#pragma once

#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::test {

using key_value = std::pair<std::string, std::string>;

class leveldb_bytes final : public leveldb::RandomAccessFile {
public:
  explicit leveldb_bytes(std::string_view bytes) : bytes_(bytes) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result, char* scratch) const override {
    const auto part = offset < bytes_.size() ? bytes_.substr(offset, n) : std::string_view();
    std::memcpy(scratch, part.data(), part.size());
    *result = leveldb::Slice(scratch, part.size());
    return leveldb::Status::OK();
  }

private:
  std::string_view bytes_;
};

class leveldb_sink final : public leveldb::WritableFile {
public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  std::string bytes;
};

/// Returns every entry and verifies all checksums. Throws LevelDB's error message.
inline std::vector<key_value> read_with_leveldb(std::string_view bytes) {
  leveldb_bytes file(bytes);
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Table* raw = nullptr;
  auto status = leveldb::Table::Open(options, &file, bytes.size(), &raw);
  if (!status.ok()) { throw std::runtime_error(status.ToString()); }
  const std::unique_ptr<leveldb::Table> table(raw);
  leveldb::ReadOptions reading;
  reading.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> at(table->NewIterator(reading));
  std::vector<key_value> entries;
  for (at->SeekToFirst(); at->Valid(); at->Next()) { entries.emplace_back(at->key().ToString(), at->value().ToString()); }
  if (!at->status().ok()) { throw std::runtime_error(at->status().ToString()); }
  for (const auto& [key, value] : entries) {  // point look-ups read the index keys and the restart array
    at->Seek(key);
    if (!at->Valid() || at->key() != key || at->value() != value) { throw std::runtime_error("seek misses a key"); }
  }
  return entries;
}

inline std::string write_with_leveldb(const std::vector<key_value>& entries, std::size_t block_size, int restart_interval,
                                      leveldb::CompressionType compression = leveldb::kNoCompression) {
  leveldb_sink file;
  leveldb::Options options;
  options.block_size = block_size;
  options.block_restart_interval = restart_interval;
  options.compression = compression;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) { builder.Add(key, value); }
  if (!builder.Finish().ok()) { throw std::runtime_error(builder.status().ToString()); }
  return file.bytes;
}

}  // namespace stepwell::test
