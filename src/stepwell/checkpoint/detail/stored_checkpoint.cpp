// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"

#include "stepwell/base/detail/memory_shortage.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/format/checkpoint/table.hpp"
#include "stepwell/io/detail/read_file.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t memory_besides = std::uint64_t{24} << 20;  // memory for an index, in addition to three times its size
constexpr std::size_t max_entry_bytes = std::size_t{512} << 10;    // a parsed entry takes up to 30 times as much memory
constexpr std::size_t max_parts = 8192;                            // slices of one tensor
constexpr std::uint64_t max_comparisons = std::uint64_t{1} << 28;  // comparisons of slices in one index; they take about a second
constexpr std::string_view object_graph_name = "_CHECKPOINTABLE_OBJECT_GRAPH";

[[noreturn]] void fail(errc code, std::string message, const std::string& place) { throw_status({code, std::move(message), place}); }

std::string read_index_file(io::file_system& files, const std::string& prefix) {
  auto text = io::read_text_file(files, format::index_name(prefix), max_index_bytes);
  if (text) { return std::move(text).value(); }
  if (text.error().code != errc::not_found) { throw_status(text.error()); }
  const auto v1 = files.exists(prefix);
  const bool is_v1 = v1 && *v1;
  fail(errc::not_found,
       is_v1 ? "The passed save_path is not a valid checkpoint of version 2; the file with this name may be a checkpoint of version 1, "
               "which is not supported"
             : "The passed save_path is not a valid checkpoint: it has no index; give the prefix, without \".index\" or "
               "\".data-...\"",
       prefix);
}

/// Returns the value, or throws its failure with the place added. Invalid content of a table or an entry becomes `data_loss`.
template<class T>
T sound(result<T>&& decoded, std::string_view what, const std::string& place) {
  if (decoded) {
    if constexpr (std::is_void_v<T>) {
      return;
    } else {
      return std::move(decoded).value();
    }
  }
  const auto code = decoded.error().code == errc::unimplemented ? errc::unimplemented : errc::data_loss;
  fail(code, fmt::format("{}: {}", what, decoded.error().message), place);
}

/// Collects the content of an index within a memory limit.
class index_loader {
public:
  index_loader(std::string place, std::uint64_t index_bytes) : place_(std::move(place)), memory_(3 * index_bytes + memory_besides) {}

  /// Counts an entry. Called for all entries before the first call of `add`. Keys share prefixes in the file, so a small file can
  /// contain long keys. The total length of the keys is limited like the memory, because comparing keys takes time proportional to
  /// their full length.
  void count(std::string_view key) {
    tensors_ += !key.empty() && !format::is_slice_key(key);
    key_bytes_ += key.size();
    if (key_bytes_ > memory_) { charge(key_bytes_); }
  }

  void reserve() {
    charge(tensors_ * (sizeof(checkpoint_entry) + sizeof(stored_place)));
    made_.entries.reserve(tensors_);
    made_.places.reserve(tensors_);
  }

  void add(std::string_view key, std::string_view value) {
    if (!has_header_) { return add_header(key, value); }
    if (value.size() > max_entry_bytes) { damaged(fmt::format("an entry has {} bytes", value.size())); }
    auto where = sound(format::decode_bundle_entry(value), "the index is damaged", place_);
    charge(cost_of(key, where));
    if (format::is_slice_key(key)) {
      parts_.emplace(std::string(key), std::move(where));
    } else {
      add_tensor(std::string(key), std::move(where));
    }
  }

  [[nodiscard]] stored_index finish() && {
    if (!has_header_) { damaged("it has no header"); }
    for (auto& [position, slices] : slices_) { gather_parts(position, slices); }
    return std::move(made_);
  }

private:
  [[noreturn]] void damaged(std::string_view why) const { fail(errc::data_loss, fmt::format("the index is damaged: {}", why), place_); }

  void charge(std::uint64_t bytes) {
    if (bytes > memory_) { damaged("it requires more memory than an index of its size can need"); }
    memory_ -= bytes;
  }

  static std::uint64_t cost_of(std::string_view key, const format::bundle_entry& where) {
    constexpr std::uint64_t of_allocation = 16;
    std::uint64_t cost = key.size() + 8 * where.shape.size() + 2 * of_allocation;
    if (format::is_slice_key(key)) { cost += sizeof(format::bundle_entry) + sizeof(std::string) + 3 * of_allocation; }
    for (const auto& slice : where.slices) {
      cost += sizeof(stored_slice) + sizeof(slice) + 2 * (sizeof(format::slice_extent) * slice.size() + of_allocation);
    }
    return cost;
  }

  static stored_place place_of(const format::bundle_entry& where) { return {where.offset, where.size, where.shard_id, where.crc32c}; }

  void add_header(std::string_view key, std::string_view value) {
    if (!key.empty()) { damaged("it has no header"); }
    made_.header = sound(format::decode_bundle_header(value), "the index is damaged", place_);
    has_header_ = true;
  }

  void add_tensor(std::string name, format::bundle_entry where) {
    const bool is_partitioned = !where.slices.empty();
    made_.places.push_back(is_partitioned ? stored_place{} : place_of(where));
    checkpoint_entry entry{.name = std::move(name), .dtype = where.dtype, .shape = std::move(where.shape)};
    entry.is_object_graph = entry.name == object_graph_name;
    entry.is_partitioned = is_partitioned;
    entry.size_bytes = is_partitioned ? 0 : static_cast<std::uint64_t>(where.size);
    entry.crc32c = is_partitioned ? 0 : where.crc32c;
    if (is_partitioned) { slices_.emplace(made_.entries.size(), std::move(where.slices)); }
    made_.entries.push_back(std::move(entry));
  }

  void gather_parts(std::size_t position, std::vector<format::tensor_slice>& slices) {
    auto& entry = made_.entries[position];
    const auto refuse = [&](std::string_view why) { damaged(fmt::format("tensor \"{}\": {}", entry.name, why)); };
    if (slices.size() > max_parts) {
      fail(errc::unimplemented, fmt::format("tensor \"{}\" is stored in more than 8192 slices", entry.name), place_);
    }
    const bool is_covered = covers_once(slices, entry.shape, comparisons_);
    if (comparisons_ == 0) { fail(errc::unimplemented, "its tensors have too many slices to compare", place_); }
    if (!is_covered) { refuse("its slices do not cover it exactly once"); }
    auto& gathered = made_.slices[position];
    gathered.reserve(slices.size());
    for (auto& slice : slices) {
      const auto found = parts_.find(format::slice_key(entry.name, slice));
      if (found == parts_.end()) { refuse("one of its slices is missing"); }
      const auto& part = found->second;  // the size of a part that is itself partitioned is unchecked
      if (part.dtype != entry.dtype || part.shape != part_shape(slice, entry.shape) || !part.slices.empty()) {
        refuse("one of its slices has the wrong type or shape");
      }
      entry.size_bytes += static_cast<std::uint64_t>(part.size);
      gathered.push_back({std::move(slice), place_of(part)});
    }
  }

  std::string place_;
  std::uint64_t memory_;  // bytes that may still be allocated
  std::uint64_t comparisons_ = max_comparisons;
  std::size_t tensors_ = 0;
  std::uint64_t key_bytes_ = 0;
  bool has_header_ = false;
  stored_index made_;
  std::map<std::string, format::bundle_entry, std::less<>> parts_;   // slices by key
  std::map<std::size_t, std::vector<format::tensor_slice>> slices_;  // slices of partitioned tensors, by position
};

/// A range of a data file that belongs to a tensor.
struct extent {
  std::int32_t shard = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t owner = 0;  ///< Position in `entries`.
};

void check_place(const extent& range, const std::vector<data_file>& data, const std::string& name, const std::string& place) {
  const auto shard = static_cast<std::size_t>(range.shard);
  if (shard >= data.size()) {
    fail(errc::data_loss, fmt::format("tensor \"{}\" has the shard number {}, but the checkpoint has {} shards", name, shard, data.size()),
         place);
  }
  if (range.end > data[shard].size) {
    fail(errc::data_loss,
         fmt::format("tensor \"{}\" lies outside its data file: it ends at byte {} of {}", name, range.end, data[shard].size),
         data[shard].file->path());
  }
}

std::vector<extent> extents_of(const stored_index& index) {
  std::vector<extent> all;
  const auto add = [&](const stored_place& where, std::size_t owner) {
    all.push_back({where.shard, static_cast<std::uint64_t>(where.offset), static_cast<std::uint64_t>(where.offset + where.size), owner});
  };
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    if (!index.entries[i].is_partitioned) { add(index.places[i], i); }
  }
  for (const auto& [position, slices] : index.slices) {
    for (const auto& slice : slices) { add(slice.where, position); }
  }
  return all;
}

}  // namespace

bool is_damage(const error& failure) noexcept {
  switch (failure.kind()) {
    case errc::data_loss:
    case errc::truncated:
    case errc::not_found:
    case errc::unimplemented:
    case errc::invalid_argument: return true;
    case errc::resource_exhausted: return is_memory_shortage(failure.cause());
    default: return false;
  }
}

stored_index load_index(io::file_system& files, const std::string& prefix) {
  const auto place = format::index_name(prefix);
  return with_memory("could not read the index", place, [&] {
    const auto text = read_index_file(files, prefix);
    index_loader loader(place, text.size());
    const auto count = [&](std::string_view key, std::string_view) -> result<void> {
      loader.count(key);
      return {};
    };
    sound(format::visit_table(text, count), "the index is damaged", place);
    loader.reserve();
    const auto add = [&](std::string_view key, std::string_view value) -> result<void> {
      loader.add(key, value);
      return {};
    };
    sound(format::visit_table(text, add), "the index is damaged", place);
    return std::move(loader).finish();
  });
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
  auto all = extents_of(index);
  for (const auto& range : all) { check_place(range, data, index.entries[range.owner].name, place); }
  std::erase_if(all, [](const extent& range) { return range.begin == range.end; });
  std::ranges::sort(all, {}, [](const extent& range) { return std::pair(range.shard, range.begin); });
  const auto overlap =
      std::ranges::adjacent_find(all, [](const extent& a, const extent& b) { return a.shard == b.shard && b.begin < a.end; });
  if (overlap == all.end()) { return; }
  const auto& second = *std::next(overlap);
  fail(errc::data_loss,
       fmt::format("the tensors \"{}\" and \"{}\" share bytes of their data file, from byte {} on", index.entries[overlap->owner].name,
                   index.entries[second.owner].name, second.begin),
       data[static_cast<std::size_t>(second.shard)].file->path());
}

}  // namespace stepwell::detail
