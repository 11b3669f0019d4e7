// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/stored_checkpoint.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/table.hpp"
#include "stepwell/io/read_file.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 30;
constexpr std::size_t max_parts = 8192;  // of one tensor: the check that they cover it once is quadratic
constexpr std::string_view object_graph_name = "_CHECKPOINTABLE_OBJECT_GRAPH";

[[noreturn]] void fail(errc code, std::string message, const std::string& place) { throw_status({code, std::move(message), place}); }

std::string read_index_file(io::file_system& files, const std::string& prefix) {
  auto text = io::read_text_file(files, format::index_name(prefix), max_index_bytes);
  if (text) { return std::move(text).value(); }
  if (text.error().code != errc::not_found) { throw_status(text.error()); }
  const auto v1 = files.exists(prefix);
  const bool is_v1 = v1 && *v1;
  fail(errc::not_found,
       is_v1 ? "The passed save_path is not a valid checkpoint of version 2; a file of this very name may be one of version 1, "
               "which is not read"
             : "The passed save_path is not a valid checkpoint: it has no index; give the prefix, without \".index\" or "
               "\".data-...\"",
       prefix);
}

/// The value, or its failure with the place added; what a table or an entry says wrongly is damage.
template<class T>
T sound(result<T>&& decoded, std::string_view what, const std::string& place) {
  if (decoded) { return std::move(decoded).value(); }
  const auto code = decoded.error().code == errc::unimplemented ? errc::unimplemented : errc::data_loss;
  fail(code, fmt::format("{}: {}", what, decoded.error().message), place);
}

using parts_by_key = std::map<std::string, format::bundle_entry, std::less<>>;

void gather_parts(stored_tensor& tensor, const parts_by_key& parts, const std::string& place) {
  const auto& [entry, where, gathered] = tensor;
  const auto refuse = [&](std::string_view why) { fail(errc::data_loss, fmt::format("tensor \"{}\": {}", entry.name, why), place); };
  if (where.slices.size() > max_parts) {
    fail(errc::unimplemented, fmt::format("tensor \"{}\" is stored in more than 8192 slices", entry.name), place);
  }
  if (!covers_once(where.slices, where.shape)) { refuse("its slices do not cover it exactly once"); }
  for (const auto& slice : where.slices) {
    const auto found = parts.find(format::slice_key(entry.name, slice));
    if (found == parts.end()) { refuse("one of its slices is missing"); }
    const auto& part = found->second;  // one that is itself in slices has a size nobody has checked
    if (part.dtype != where.dtype || part.shape != part_shape(slice, where.shape) || !part.slices.empty()) {
      refuse("one of its slices does not fit");
    }
    tensor.entry.size_bytes += static_cast<std::uint64_t>(part.size);
    tensor.parts.push_back(part);
  }
}

stored_tensor describe(std::string name, format::bundle_entry where) {
  stored_tensor made{.entry = {.name = std::move(name), .dtype = where.dtype, .shape = where.shape}, .where = {}, .parts = {}};
  made.entry.is_object_graph = made.entry.name == object_graph_name;
  made.entry.is_partitioned = !where.slices.empty();
  made.entry.size_bytes = made.entry.is_partitioned ? 0 : static_cast<std::uint64_t>(where.size);
  made.entry.crc32c = made.entry.is_partitioned ? 0 : where.crc32c;
  made.where = std::move(where);
  return made;
}

void check_place(const format::bundle_entry& where, const std::vector<data_file>& data, const std::string& name, const std::string& place) {
  const auto shard = static_cast<std::size_t>(where.shard_id);
  if (shard >= data.size()) {
    fail(errc::data_loss, fmt::format("tensor \"{}\" is said to be in shard {} of {}", name, shard, data.size()), place);
  }
  if (const auto end = static_cast<std::uint64_t>(where.offset + where.size); end > data[shard].size) {
    fail(errc::data_loss, fmt::format("tensor \"{}\" lies outside its data file: it ends at byte {} of {}", name, end, data[shard].size),
         data[shard].file->path());
  }
}

}  // namespace

bool is_damage(const error& failure) noexcept {
  switch (failure.kind()) {
    case errc::data_loss:
    case errc::truncated:
    case errc::not_found:
    case errc::unimplemented:
    case errc::invalid_argument: return true;
    default: return false;
  }
}

stored_index load_index(io::file_system& files, const std::string& prefix) {
  const auto place = format::index_name(prefix);
  auto entries = sound(format::read_table(read_index_file(files, prefix)), "the index is damaged", place);
  if (entries.empty() || !entries.front().key.empty()) { fail(errc::data_loss, "the index has no header", place); }
  stored_index index{sound(format::decode_bundle_header(entries.front().value), "the index is damaged", place), {}};
  parts_by_key parts;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    auto& [key, value] = entries[i];
    auto where = sound(format::decode_bundle_entry(value), "the index is damaged", place);
    if (format::is_slice_key(key)) {
      parts.emplace(std::move(key), std::move(where));
    } else {
      index.tensors.push_back(describe(std::move(key), std::move(where)));
    }
  }
  for (auto& tensor : index.tensors) {
    if (tensor.entry.is_partitioned) { gather_parts(tensor, parts, place); }
  }
  return index;
}

std::vector<data_file> open_data_files(io::file_system& files, const std::string& prefix, std::int32_t shards) {
  std::vector<data_file> opened;
  for (std::int32_t shard = 0; shard < shards; ++shard) {
    auto file = files.open(format::data_name(prefix, shard, shards), io::open_mode::read);
    if (!file && file.error().code == errc::not_found) {
      fail(errc::data_loss, "a data file of the checkpoint is missing", file.error().place);
    }
    auto made = value_or_throw(std::move(file));
    const auto size = value_or_throw(made->size());
    opened.push_back({std::move(made), size});
  }
  return opened;
}

void check_places(const stored_index& index, const std::vector<data_file>& data, const std::string& place) {
  std::uint64_t total = 0;
  for (const auto& file : data) { total += file.size; }
  for (const auto& tensor : index.tensors) {
    if (!tensor.entry.is_partitioned) { check_place(tensor.where, data, tensor.entry.name, place); }
    for (const auto& part : tensor.parts) { check_place(part, data, tensor.entry.name, place); }
    if (tensor.entry.size_bytes > total) {  // parts that lie on top of each other
      fail(errc::data_loss, fmt::format("tensor \"{}\" is larger than all data files", tensor.entry.name), place);
    }
  }
}

}  // namespace stepwell::detail
