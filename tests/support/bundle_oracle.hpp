// SPDX-License-Identifier: Apache-2.0
//
// Reads a checkpoint independently of the library under test: LevelDB reads the table, protobuf's classes read the
// entries, and a bitwise CRC-32C verifies the checksums.
#pragma once

#include "support/file_text.hpp"
#include "support/leveldb_table.hpp"

#include "stepwell/format/proto/tensor_bundle.pb.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

struct oracle_tensor {
  int dtype = 0;
  std::vector<std::int64_t> shape;
  std::string bytes;  ///< As stored in the file.
  int slices = 0;
  std::int64_t offset = 0;  ///< Position in its data file.
};

inline std::uint32_t slow_crc32c(std::string_view bytes, std::uint32_t crc = 0) {
  crc = ~crc;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) { crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0u); }
  }
  return ~crc;
}

inline std::uint32_t slow_masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

/// Returns every entry of the index except the header, including slice keys. Verifies the checksums of numbers.
inline std::map<std::string, oracle_tensor> read_with_oracle(const std::string& prefix) {
  const auto index = file_text(prefix + ".index");
  const auto entries = read_with_leveldb(index);
  ::tensorflow::BundleHeaderProto header;
  if (entries.empty() || !entries[0].first.empty() || !header.ParseFromString(entries[0].second)) { throw std::runtime_error("no header"); }
  std::map<std::string, oracle_tensor> tensors;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    ::tensorflow::BundleEntryProto entry;
    if (!entry.ParseFromString(entries[i].second)) { throw std::runtime_error("an entry does not parse"); }
    auto& made = tensors[entries[i].first];
    made.dtype = entry.dtype();
    for (const auto& dim : entry.shape().dim()) { made.shape.push_back(dim.size()); }
    made.slices = entry.slices_size();
    made.offset = entry.offset();
    if (made.slices > 0) { continue; }
    char suffix[64];
    std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", entry.shard_id(), header.num_shards());
    made.bytes = file_text(prefix + suffix).substr(static_cast<std::size_t>(entry.offset()), static_cast<std::size_t>(entry.size()));
    if (made.bytes.size() != static_cast<std::size_t>(entry.size())) { throw std::runtime_error("a data file is too short"); }
    if (made.dtype != ::tensorflow::DT_STRING && slow_masked(slow_crc32c(made.bytes)) != entry.crc32c()) {
      throw std::runtime_error("a checksum does not match");
    }
  }
  return tensors;
}

}  // namespace stepwell::test
