// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/checkpoint_reader.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/array_file.hpp"
#include "stepwell/checkpoint/detail/beside_writer.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/detail/tensor_reads.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/format/checkpoint/detail/string_tensor.hpp"
#include "stepwell/format/checkpoint/detail/table.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace stepwell {
namespace {

using detail::stored_place;

/// Location of the first byte of an entry.
struct entry_offset {
  std::int64_t offset = 0;
  std::int32_t shard = 0;
};

/// One slice of a partitioned tensor.
struct stored_slice {
  format::tensor_slice slice;
  stored_place where;
};

/// Shapes in large blocks. Equal shapes in a row are stored once.
class shape_store {
public:
  /// Returns true if `shape` is the last one.
  [[nodiscard]] bool ends_with(shape_view shape) const noexcept { return shape == last_; }
  [[nodiscard]] shape_view add(const tensor_shape& shape) {
    if (ends_with(shape)) { return last_; }
    const auto into = shape.size() > most_shared ? allocate(shape.size()) : take(shape.size());
    std::ranges::copy(shape, into.begin());
    last_ = into;
    return last_;
  }

private:
  [[nodiscard]] std::span<std::int64_t> allocate(std::size_t size) {
    blocks_.push_back(std::make_unique<std::int64_t[]>(size));
    return {blocks_.back().get(), size};
  }
  [[nodiscard]] std::span<std::int64_t> take(std::size_t size) {
    if (room_.size() < size) { room_ = allocate(block_numbers); }
    const auto taken = room_.first(size);
    room_ = room_.subspan(size);
    return taken;
  }

  static constexpr std::size_t most_shared = 128;  // longer shapes have their own block, so that little of the others is wasted
  static constexpr std::size_t block_numbers = 4096;
  std::vector<std::unique_ptr<std::int64_t[]>> blocks_;
  std::span<std::int64_t> room_;  // the rest of the last block
  shape_view last_;
};

/// The content of an index.
/// @cost 72 bytes for each entry, its name, and its shape unless the previous entry has the same.
struct stored_index {
  format::bundle_header header;
  std::vector<char> names;                                  ///< Of the entries, one behind another.
  shape_store shapes;                                       ///< Of the entries.
  std::vector<checkpoint_entry> entries;                    ///< Sorted by name.
  std::vector<entry_offset> offsets;                        ///< Location of each entry; unused for a partitioned one.
  std::map<std::size_t, std::vector<stored_slice>> slices;  ///< Slices of each partitioned entry, by its position in `entries`.
};

/// One open data file.
struct data_file {
  std::unique_ptr<io::file> file;
  std::uint64_t size = 0;
};

constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 30;
// A writer stores at least each 16th key completely (table_options::restart_interval), so the keys have at most 16 times the size of the index.
// An entry of 160 bytes in memory takes at least 10 bytes in the file.
constexpr std::uint64_t memory_per_byte = 16;
constexpr std::uint64_t memory_besides = std::uint64_t{24} << 20;  // memory for an index, in addition
constexpr std::size_t max_entry_bytes = std::size_t{512} << 10;    // a parsed entry takes up to 30 times as much memory
constexpr std::size_t max_parts = 8192;                            // slices of one tensor
constexpr std::uint64_t max_comparisons = std::uint64_t{1} << 28;  // comparisons of slices in one index; they take about a second
constexpr std::string_view object_graph_name = "_CHECKPOINTABLE_OBJECT_GRAPH";

[[noreturn]] void fail(errc code, std::string message, const std::string& place) { throw_status({code, std::move(message), place}); }

std::string read_index_file(io::file_system& files, const std::string& prefix) {
  auto text = io::read_text_file(files, format::index_name(prefix), max_index_bytes);
  if (text) { return std::move(text).value(); }
  throw_status(text.error().code == errc::not_found ? detail::no_index(files, prefix) : text.error());
}

/// Returns the value, or throws its failure with the place added. Invalid content of a table or an entry becomes `data_loss`.
template<class T>
T sound(result<T>&& decoded, const std::string& place) {
  if (!decoded) {
    const auto code = decoded.error().code == errc::unimplemented ? errc::unimplemented : errc::data_loss;
    fail(code, fmt::format("the index is damaged: {}", decoded.error().message), place);
  }
  return value_or_throw(std::move(decoded));
}

std::int64_t length_of(const format::slice_extent& extent, std::int64_t size) {
  return extent.length == format::slice_extent::whole ? size : extent.length;
}

bool intersect(const format::tensor_slice& a, const format::tensor_slice& b, const tensor_shape& whole) {
  for (std::size_t d = 0; d < whole.size(); ++d) {
    if (a[d].start >= b[d].start + length_of(b[d], whole[d]) || b[d].start >= a[d].start + length_of(a[d], whole[d])) { return false; }
  }
  return true;
}

/// Returns the shape of the part of a tensor that a slice selects.
tensor_shape part_shape(const format::tensor_slice& slice, const tensor_shape& whole) {
  tensor_shape shape;
  for (std::size_t d = 0; d < whole.size(); ++d) { shape.push_back(length_of(slice[d], whole[d])); }
  return shape;
}

/// Returns the dimension with the largest number of different slice starts; 0 for a scalar.
std::size_t most_divided(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t d = 0; d < whole.size(); ++d) {
    std::set<std::int64_t> starts;
    for (const auto& slice : slices) { starts.insert(slice[d].start); }
    if (starts.size() > most) { std::tie(best, most) = std::pair(d, starts.size()); }
  }
  return best;
}

/// Returns true if the slices cover a tensor of shape `whole` exactly once. Subtracts the number of compared pairs of slices from
/// `comparisons`, and returns false when none are left.
bool covers_once(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole, std::uint64_t& comparisons) {
  std::int64_t covered = 0;
  const auto total = element_count(whole);
  std::vector<const format::tensor_slice*> sorted;
  for (const auto& slice : slices) {
    const auto count = element_count(part_shape(slice, whole));
    if (count > total - covered) { return false; }
    covered += count;
    if (count != 0) { sorted.push_back(&slice); }
  }
  if (covered != total || whole.empty()) { return covered == total; }
  const auto d = most_divided(slices, whole);
  std::ranges::sort(sorted, {}, [d](const auto* slice) { return (*slice)[d].start; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto end = (*sorted[i])[d].start + length_of((*sorted[i])[d], whole[d]);
    for (std::size_t j = i + 1; j < sorted.size() && (*sorted[j])[d].start < end; ++j) {
      if (comparisons == 0) { return false; }
      --comparisons;
      if (intersect(*sorted[i], *sorted[j], whole)) { return false; }
    }
  }
  return true;
}

/// Collects the content of an index within a memory limit.
class index_loader {
public:
  index_loader(std::string place, std::uint64_t index_bytes)
      : place_(std::move(place)), memory_(memory_per_byte * index_bytes + memory_besides) {}

  /// Counts an entry. Called for all entries before the first call of `add`. Keys share prefixes in the file, so a small file can
  /// contain long keys. The total length of the keys is limited like the memory, because comparing keys takes time proportional to
  /// their full length.
  void count(std::string_view key) {
    if (!key.empty() && !format::is_slice_key(key)) {
      ++tensors_;
      name_bytes_ += key.size();
    }
    key_bytes_ += key.size();
    if (key_bytes_ > memory_) { charge(key_bytes_); }
  }

  void reserve() {
    charge(tensors_ * (sizeof(checkpoint_entry) + sizeof(entry_offset)) + name_bytes_);
    made_.names.reserve(name_bytes_);
    made_.entries.reserve(tensors_);
    made_.offsets.reserve(tensors_);
  }

  void add(std::string_view key, std::string_view value) {
    if (!has_header_) { return add_header(key, value); }
    if (value.size() > max_entry_bytes) { damaged(fmt::format("an entry has {} bytes", value.size())); }
    auto where = sound(format::decode_bundle_entry(value), place_);
    charge(cost_of(key, where));
    if (format::is_slice_key(key)) {
      parts_.emplace(std::string(key), std::move(where));
    } else {
      add_tensor(key, std::move(where));
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
    std::uint64_t cost = 0;
    if (format::is_slice_key(key)) {
      cost += key.size() + 8 * where.shape.size() + sizeof(format::bundle_entry) + sizeof(std::string) + 5 * of_allocation;
    }
    for (const auto& slice : where.slices) {
      cost += sizeof(stored_slice) + sizeof(format::tensor_slice) + 2 * (sizeof(format::slice_extent) * slice.size() + of_allocation);
    }
    return cost;
  }

  static stored_place place_of(const format::bundle_entry& where) { return {where.offset, where.size, where.shard_id, where.crc32c}; }

  void add_header(std::string_view key, std::string_view value) {
    if (!key.empty()) { damaged("it has no header"); }
    made_.header = sound(format::decode_bundle_header(value), place_);
    has_header_ = true;
  }

  std::string_view intern(std::string_view name) {
    auto& names = made_.names;
    if (name.size() > names.capacity() - names.size()) { damaged("its entries changed while they were read"); }
    const auto at = names.insert(names.end(), name.begin(), name.end());
    return {std::to_address(at), name.size()};
  }

  shape_view intern(const tensor_shape& shape) {
    if (!made_.shapes.ends_with(shape)) { charge(sizeof(std::int64_t) * shape.size()); }
    return made_.shapes.add(shape);
  }

  void add_tensor(std::string_view name, format::bundle_entry where) {
    const bool is_partitioned = !where.slices.empty();
    made_.offsets.push_back(is_partitioned ? entry_offset{} : entry_offset{where.offset, where.shard_id});
    checkpoint_entry entry{.name = intern(name), .dtype = where.dtype, .shape = intern(where.shape)};
    entry.is_object_graph = entry.name == object_graph_name;
    entry.is_partitioned = is_partitioned;
    entry.size_bytes = is_partitioned ? 0 : static_cast<std::uint64_t>(where.size);
    entry.crc32c = is_partitioned ? 0 : where.crc32c;
    if (is_partitioned) { slices_.emplace(made_.entries.size(), std::move(where.slices)); }
    made_.entries.push_back(entry);
  }

  void gather_parts(std::size_t position, std::vector<format::tensor_slice>& slices) {
    auto& entry = made_.entries[position];
    const auto refuse = [&](std::string_view why) { damaged(fmt::format("tensor \"{}\": {}", entry.name, why)); };
    if (slices.size() > max_parts) {
      fail(errc::unimplemented, fmt::format("tensor \"{}\" is stored in more than 8192 slices", entry.name), place_);
    }
    const tensor_shape shape = entry.shape;
    const bool is_covered = covers_once(slices, shape, comparisons_);
    if (comparisons_ == 0) { fail(errc::unimplemented, "its tensors have too many slices to compare", place_); }
    if (!is_covered) { refuse("its slices do not cover it exactly once"); }
    auto& gathered = made_.slices[position];
    gathered.reserve(slices.size());
    for (auto& slice : slices) {
      const auto part_position = parts_.find(format::slice_key(entry.name, slice));
      if (part_position == parts_.end()) { refuse("one of its slices is missing"); }
      const auto& part = part_position->second;  // the size of a part that is itself partitioned is unchecked
      if (part.dtype != entry.dtype || part.shape != part_shape(slice, shape) || !part.slices.empty()) {
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
  std::uint64_t name_bytes_ = 0;
  std::uint64_t key_bytes_ = 0;
  bool has_header_ = false;
  stored_index made_;
  std::map<std::string, format::bundle_entry, std::less<>> parts_;   // slices by key
  std::map<std::size_t, std::vector<format::tensor_slice>> slices_;  // slices of partitioned tensors, by position
};

std::vector<data_file> open_data_files(io::file_system& files, const std::string& prefix, std::int32_t shards) {
  std::vector<data_file> opened;
  for (std::int32_t shard = 0; shard < shards; ++shard) {
    auto file = files.open(format::data_name(prefix, shard, shards), io::open_mode::read);
    if (!file && file.error().code == errc::not_found) {
      fail(errc::data_loss, "a data file of the checkpoint is missing", file.error().place);
    }
    auto opened_file = value_or_throw(std::move(file));
    const auto size = value_or_throw(opened_file->size());
    opened.push_back({std::move(opened_file), size});
  }
  return opened;
}

/// Returns the location of an entry that is not partitioned.
stored_place place_of(const stored_index& index, std::size_t number) noexcept {
  const auto& entry = index.entries[number];
  const auto& at = index.offsets[number];
  return {at.offset, static_cast<std::int64_t>(entry.size_bytes), at.shard, entry.crc32c};
}

/// Throws `data_loss_error` if an entry lies outside its data file or shares bytes with another entry. So each byte of a data file is
/// read at most once. `place` is the path of the index, for the message.
void check_places(const stored_index& index, const std::vector<data_file>& data, const std::string& place) {
  struct extent {
    std::uint32_t shard, owner;
    std::uint64_t begin, end;
  };
  std::vector<extent> all;
  all.reserve(index.entries.size());
  const auto add = [&](const stored_place& where, std::size_t owner) {
    const auto& name = index.entries[owner].name;
    const auto shard = static_cast<std::size_t>(where.shard);
    const auto end = static_cast<std::uint64_t>(where.offset + where.size);
    if (shard >= data.size()) {
      fail(errc::data_loss,
           fmt::format("tensor \"{}\" has the shard number {}, but the checkpoint has {} shards", name, shard, data.size()), place);
    }
    if (end > data[shard].size) {
      fail(errc::data_loss, fmt::format("tensor \"{}\" lies outside its data file: it ends at byte {} of {}", name, end, data[shard].size),
           data[shard].file->path());
    }
    if (where.size != 0) {
      all.push_back({static_cast<std::uint32_t>(shard), static_cast<std::uint32_t>(owner), static_cast<std::uint64_t>(where.offset), end});
    }
  };
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    if (!index.entries[i].is_partitioned) { add(place_of(index, i), i); }
  }
  for (const auto& [position, slices] : index.slices) {
    for (const auto& slice : slices) { add(slice.where, position); }
  }
  const auto by_place = [](const extent& range) { return std::pair(range.shard, range.begin); };
  if (!std::ranges::is_sorted(all, {}, by_place)) { std::ranges::sort(all, {}, by_place); }
  const auto overlap =
      std::ranges::adjacent_find(all, [](const extent& a, const extent& b) { return a.shard == b.shard && b.begin < a.end; });
  if (overlap == all.end()) { return; }
  const auto& second = *std::next(overlap);
  fail(errc::data_loss,
       fmt::format("the tensors \"{}\" and \"{}\" share bytes of their data file, from byte {} on", index.entries[overlap->owner].name,
                   index.entries[second.owner].name, second.begin),
       data[second.shard].file->path());
}

/// Reads and validates the index of `prefix`, and sorts its entries. Throws the errors that `checkpoint_reader` documents.
/// @cost Memory: at most 17 times the size of the index file plus 64 MiB. An index that needs more is treated as damaged.
stored_index load_index(io::file_system& files, const std::string& prefix) {
  const auto place = format::index_name(prefix);
  return detail::with_memory("could not read the index", place, [&] {
    const auto text = read_index_file(files, prefix);
    index_loader loader(place, text.size());
    const auto visit = [&](const auto& act) {
      const auto each = [&](std::string_view key, std::string_view value) -> result<void> {
        act(key, value);
        return {};
      };
      sound(format::visit_table(text, each), place);
    };
    visit([&](std::string_view key, std::string_view) { loader.count(key); });
    loader.reserve();
    visit([&](std::string_view key, std::string_view value) { loader.add(key, value); });
    return std::move(loader).finish();
  });
}

/// Positions of the elements of a slice in the whole tensor. Elements are numbered in row-major order.
/// @pre The slice lies inside the tensor.
class slice_positions {
public:
  slice_positions(const format::tensor_slice& slice, const tensor_shape& whole) {
    std::uint64_t stride = 1;
    for (std::size_t d = whole.size(); d-- > 0; stride *= static_cast<std::uint64_t>(whole[d])) {
      if (whole[d] == 1) { continue; }  // a hostile index may have very many of these, which would make `of` slow
      dimensions_.push_back({static_cast<std::uint64_t>(length_of(slice[d], whole[d])), stride});
      begin_ += stride * static_cast<std::uint64_t>(slice[d].start);
    }
  }

  /// Returns the position in the whole tensor of the element with this number in the slice.
  [[nodiscard]] std::size_t of(std::uint64_t number) const noexcept {
    auto position = begin_;
    for (const auto& [size, stride] : dimensions_) {
      position += stride * (number % size);
      number /= size;
    }
    return static_cast<std::size_t>(position);
  }
  /// Returns how many elements, from this one on, are neighbours in the whole tensor.
  [[nodiscard]] std::uint64_t neighbours(std::uint64_t number) const noexcept {
    return dimensions_.empty() ? 1 : dimensions_.front().size - number % dimensions_.front().size;
  }

private:
  struct dimension {
    std::uint64_t size, stride;
  };
  std::vector<dimension> dimensions_;  // innermost first
  std::uint64_t begin_ = 0;
};

/// Copies elements of a slice to their positions in the whole tensor. `first` is the number of the first element within the slice.
/// @pre `elements` contains whole elements.
void copy_part(std::span<const std::byte> elements, std::uint64_t first, const slice_positions& positions, std::size_t element_size,
               std::span<std::byte> into) {
  while (!elements.empty()) {
    const auto run = static_cast<std::size_t>(std::min<std::uint64_t>(positions.neighbours(first), elements.size() / element_size));
    std::memcpy(into.data() + positions.of(first) * element_size, elements.data(), run * element_size);
    elements = elements.subspan(run * element_size);
    first += run;
  }
}

constexpr std::size_t read_size = std::size_t{1} << 20;  // bytes read at once; their checksum is computed while they are in the cache

bool has_known_checksum(dtype type) noexcept { return type != dtype::variant && type != dtype::resource; }

}  // namespace

status detail::no_index(io::file_system& files, const std::string& prefix) {
  const auto v1 = files.exists(prefix);
  const bool is_v1 = v1 && *v1;
  return {errc::not_found,
          is_v1 ? "The passed save_path is not a valid checkpoint of version 2; it is not a file of weights of safetensors, NumPy or "
                  "torch.save, either, and may be a checkpoint of version 1, which is not supported"
                : "The passed save_path is not a valid checkpoint: it has no index; give the prefix, without \".index\" or "
                  "\".data-...\"",
          prefix};
}

bool detail::is_damage(const error& failure) noexcept {
  switch (failure.kind()) {
    case errc::data_loss:
    case errc::truncated:
    case errc::not_found:
    case errc::unimplemented:
    case errc::invalid_argument: return true;
    case errc::resource_exhausted: return detail::is_memory_shortage(failure.cause());
    default: return false;
  }
}

std::optional<std::int32_t> detail::shards_in_index(io::file_system& files, const std::string& prefix) {
  try {
    return load_index(files, prefix).header.num_shards;
  } catch (const error&) { return std::nullopt; }
}

struct checkpoint_reader::core {
  std::string prefix;
  std::shared_ptr<io::file_system> files;
  stored_index index;
  std::vector<data_file> data;
  std::unique_ptr<detail::array_file> arrays;  // null unless this is a file of another format, which has the arrays of `index.entries`
  mutable std::atomic<bool> verified = false;
  std::shared_ptr<checkpoint_search_result> search;

  /// Returns the entry of this name, or null.
  [[nodiscard]] const checkpoint_entry* find(std::string_view name) const noexcept {
    const auto entry = std::ranges::lower_bound(index.entries, name, {}, &checkpoint_entry::name);
    return entry != index.entries.end() && entry->name == name ? &*entry : nullptr;
  }
  [[nodiscard]] const checkpoint_entry& entry_named(std::string_view name) const {
    const auto* entry = find(name);
    if (entry == nullptr) { throw not_found_error(fmt::format("the checkpoint has no tensor \"{}\"", name), prefix); }
    return *entry;
  }

  /// Opens the files of one version of the checkpoint: again if it was deleted or replaced while they were opened.
  void open() {
    detail::read_beside_writer(io::parent_directory(prefix), [this]() -> std::optional<bool> {
      const auto before = version();
      try {
        open_version();
      } catch (const error&) {
        if (version() == before) { throw; }
        return std::nullopt;
      }
      return version() == before ? std::optional(true) : std::nullopt;
    });
  }
  /// Returns the time and the size of the index, which change when it is written again. Empty if there is no index.
  [[nodiscard]] std::optional<std::pair<clock::wall_time, std::uint64_t>> version() const {
    const auto info = files->stat(format::index_name(prefix));
    return info ? std::optional(std::pair(info->modified, info->size)) : std::nullopt;
  }
  /// Opens the index. If there is none, opens the file `prefix`, if it has another format.
  void open_version() {
    try {
      index = load_index(*files, prefix);
    } catch (const not_found_error&) {
      if (open_arrays()) { return; }
      throw;
    }
    data = open_data_files(*files, prefix, index.header.num_shards);
    check_places(index, data, format::index_name(prefix));
  }
  [[nodiscard]] bool open_arrays() {
    arrays = detail::array_file::open(*files, prefix);
    if (!arrays) { return false; }
    index.entries.reserve(arrays->arrays().size());
    for (const auto& array : arrays->arrays()) {
      index.entries.push_back(
          {.name = array.name, .dtype = array.dtype, .shape = array.shape, .size_bytes = array.size, .unsupported = array.unsupported});
    }
    return true;
  }

  [[nodiscard]] const format::stored_array& array_of(const checkpoint_entry& entry) const { return arrays->arrays()[position_of(entry)]; }
  /// Reads an array. Checks it only if `target` is empty.
  void read_array(const checkpoint_entry& entry, std::span<std::byte> target) const {
    std::vector<std::byte> scratch;
    if (target.empty()) { scratch.resize(static_cast<std::size_t>(std::min<std::uint64_t>(read_size, entry.size_bytes))); }
    const bool only_checks = target.empty();
    for ([[maybe_unused]] const auto piece : arrays->pieces(array_of(entry), only_checks ? scratch : target, only_checks)) {}
  }
  void verify_arrays() const {
    arrays->verify();
    for (const auto& entry : index.entries) {
      if (entry.dtype == dtype::boolean) { read_array(entry, {}); }
    }
  }

  std::size_t position_of(const checkpoint_entry& entry) const { return static_cast<std::size_t>(&entry - index.entries.data()); }
  /// Returns the location of an entry that is not partitioned.
  [[nodiscard]] stored_place place_of(const checkpoint_entry& entry) const { return stepwell::place_of(index, position_of(entry)); }
  const std::vector<stored_slice>& slices_of(const checkpoint_entry& entry) const { return index.slices.at(position_of(entry)); }
  /// Returns the number of elements in a slice of an entry.
  [[nodiscard]] static std::uint64_t count_in(const format::tensor_slice& slice, const checkpoint_entry& entry) {
    return static_cast<std::uint64_t>(element_count(part_shape(slice, entry.shape)));
  }
  /// Returns the locations of the bytes of an entry, slice by slice.
  [[nodiscard]] std::vector<stored_place> places_of(const checkpoint_entry& entry) const {
    if (!entry.is_partitioned) { return {place_of(entry)}; }
    std::vector<stored_place> places;
    for (const auto& slice : slices_of(entry)) { places.push_back(slice.where); }
    return places;
  }

  [[noreturn]] void refuse(const stored_place& where, std::string_view name, std::string_view what) const {
    detail::throw_damaged(where, file_of(where), name, what);
  }
  [[nodiscard]] io::file& file_of(const stored_place& where) const { return *data[static_cast<std::size_t>(where.shard)].file; }

  /// Fills `block` with the bytes of the entry from offset `at` on.
  void read_block(const stored_place& where, std::string_view name, std::uint64_t at, std::span<std::byte> block) const {
    const auto count = value_or_throw(file_of(where).read_at(static_cast<std::uint64_t>(where.offset) + at, block));
    if (count != block.size()) { refuse(where, name, "its data file became shorter"); }
  }

  void check_booleans(const checkpoint_entry& entry, const stored_place& where, std::span<const std::byte> bytes) const {
    detail::check_booleans(where, file_of(where), entry.name, entry.dtype, bytes);
  }

  void check_sum(const checkpoint_entry& entry, const stored_place& where, std::uint32_t crc) const {
    detail::check_sum(where, file_of(where), entry.name, crc);
  }

  [[nodiscard]] bool is_swapped() const noexcept { return index.header.is_big_endian == (std::endian::native == std::endian::little); }

  /// Returns the open files for `read_tensors`.
  [[nodiscard]] detail::tensor_files open_files() const {
    detail::tensor_files opened{.shards = {}, .is_swapped = is_swapped()};
    for (const auto& shard : data) { opened.shards.push_back(shard.file.get()); }
    return opened;
  }

  /// Returns true if `read_tensors` can check this tensor, together with others.
  [[nodiscard]] static bool is_small(const checkpoint_entry& entry) noexcept {
    return !entry.is_partitioned && entry.dtype != dtype::string && has_known_checksum(entry.dtype) &&
           entry.size_bytes < detail::separate_read;
  }

  /// Reads numbers block by block and yields each block, in the byte order of this machine. Booleans are checked before the block is
  /// yielded; the checksum is checked after the last one. `target` receives the blocks one after another if all fit. Otherwise each
  /// block is read to its start. With `skips_holes`, blocks that lie in holes of a sparse file are not read.
  generator<tensor_piece> blocks(const checkpoint_entry& entry, const stored_place& where, std::span<std::byte> target,
                                 bool skips_holes = false) const {
    const auto size = static_cast<std::size_t>(where.size);
    std::uint32_t crc = 0;
    for (std::size_t at = 0; at < size;) {
      if (const tensor_piece hole{.zeros = skips_holes ? zeros_at(where, at) : 0}; hole.zeros > 0) {
        crc = kernel::crc32c_zeros(hole.zeros, crc);
        at += hole.zeros;
        co_yield hole;
        continue;
      }
      const auto block = target.subspan(target.size() < size ? 0 : at, std::min(read_size, size - at));
      read_block(where, entry.name, at, block);
      crc = kernel::crc32c(block, crc);
      check_booleans(entry, where, block);
      if (is_swapped()) { detail::swap_numbers(block, entry.dtype); }
      at += block.size();
      const tensor_piece read{.bytes = block};
      co_yield read;
    }
    check_sum(entry, where, crc);
  }

  /// Returns the size of the whole blocks from `at` on that lie in a hole of a sparse file.
  [[nodiscard]] std::uint64_t zeros_at(const stored_place& where, std::uint64_t at) const {
    const auto size = static_cast<std::uint64_t>(where.size);
    const auto hole_end =
        file_of(where).skip_hole(static_cast<std::uint64_t>(where.offset) + at) - static_cast<std::uint64_t>(where.offset);
    return hole_end >= size ? size - at : (hole_end - at) / read_size * read_size;
  }

  /// Passes the stored bytes of a range to the visitor. Passes holes of a sparse file as a number of zeros.
  void scan(const stored_place& where, std::string_view name, std::span<std::byte> scratch, const io::scan_visitor& visitor) const {
    const auto scanned =
        io::scan_file(file_of(where), static_cast<std::uint64_t>(where.offset), static_cast<std::uint64_t>(where.size), scratch, visitor);
    if (scanned) { return; }
    if (scanned.error().code == errc::truncated) { refuse(where, name, "its data file became shorter"); }
    if (scanned.error().code == errc::data_loss && scanned.error().place.empty()) { refuse(where, name, scanned.error().message); }
    throw_status(scanned.error());
  }

  void check_numbers(const checkpoint_entry& entry, const stored_place& where, std::span<std::byte> scratch) const {
    std::uint32_t crc = 0;
    const auto on_bytes = [&](std::span<const std::byte> bytes) -> result<void> {
      crc = kernel::crc32c(bytes, crc);
      check_booleans(entry, where, bytes);
      return {};
    };
    const auto on_zeros = [&](std::uint64_t count) -> result<void> {
      crc = kernel::crc32c_zeros(count, crc);
      return {};
    };
    scan(where, entry.name, scratch, {on_bytes, on_zeros});
    check_sum(entry, where, crc);
  }

  void check_strings(const checkpoint_entry& entry, const stored_place& where, std::uint64_t count, std::span<std::byte> scratch) const {
    if (count > static_cast<std::uint64_t>(where.size)) { refuse(where, entry.name, "it has fewer bytes than strings"); }
    format::string_checker checker(static_cast<std::uint64_t>(where.size), count);
    const auto on_bytes = [&](std::span<const std::byte> bytes) { return checker.feed(bytes); };
    const auto on_zeros = [&](std::uint64_t zeros) { return checker.feed_zeros(zeros); };
    scan(where, entry.name, scratch, {on_bytes, on_zeros});
    const auto crc = checker.finish();
    if (!crc) { refuse(where, entry.name, crc.error().message); }
    if (where.size != 0 && *crc != where.crc32c) { refuse(where, entry.name, "its checksum does not match"); }
  }

  [[nodiscard]] std::vector<std::string> decode_strings(const checkpoint_entry& entry, const stored_place& where,
                                                        std::uint64_t count) const {
    std::string bytes(static_cast<std::size_t>(where.size), '\0');
    read_block(where, entry.name, 0, std::as_writable_bytes(std::span(bytes)));
    auto decoded = format::decode_strings(bytes, count);
    if (!decoded) { refuse(where, entry.name, decoded.error().message); }
    return std::move(decoded->elements);
  }

  [[nodiscard]] tensor read_strings(const checkpoint_entry& entry) const {
    std::vector<std::byte> scratch(static_cast<std::size_t>(std::min<std::uint64_t>(read_size, entry.size_bytes)));
    check_tensor(entry, scratch);  // before memory is allocated for the strings
    tensor value(dtype::string, entry.shape);
    const auto into = value.strings();
    if (!entry.is_partitioned) {
      std::ranges::move(decode_strings(entry, place_of(entry), into.size()), into.begin());
      return value;
    }
    for (const auto& [slice, where] : slices_of(entry)) {
      const slice_positions positions(slice, entry.shape);
      std::uint64_t number = 0;
      for (auto& element : decode_strings(entry, where, count_in(slice, entry))) { into[positions.of(number++)] = std::move(element); }
    }
    return value;
  }

  [[nodiscard]] generator<tensor_piece> pieces_of(const checkpoint_entry& entry, bool skips_holes) const {
    std::vector<std::byte> scratch;
    if (arrays) {
      scratch.resize(static_cast<std::size_t>(std::min<std::uint64_t>(read_size, entry.size_bytes)));
      for (const auto piece : arrays->pieces(array_of(entry), scratch, skips_holes)) { co_yield piece; }
      co_return;
    }
    for (const auto& where : places_of(entry)) {
      scratch.resize(static_cast<std::size_t>(std::min<std::int64_t>(read_size, where.size)));
      for (const auto piece : blocks(entry, where, scratch, skips_holes)) { co_yield piece; }
    }
  }
  [[nodiscard]] generator<std::span<const std::byte>> bytes_of(const checkpoint_entry& entry) const {
    for (const auto piece : pieces_of(entry, false)) { co_yield piece.bytes; }
  }

  void read_tensor(const checkpoint_entry& entry, std::span<std::byte> target) const {
    if (arrays) { return read_array(entry, target); }
    if (!entry.is_partitioned) {
      const auto where = place_of(entry);
      for ([[maybe_unused]] const auto block : blocks(entry, where, target)) {}
      return;
    }
    const auto width = size_of(entry.dtype);
    std::vector<std::byte> scratch(read_size);
    for (const auto& [slice, where] : slices_of(entry)) {
      const slice_positions positions(slice, entry.shape);
      std::uint64_t first = 0;
      for (const auto block : blocks(entry, where, scratch)) {
        copy_part(block.bytes, first, positions, width, target);
        first += block.bytes.size() / width;
      }
    }
  }

  void check_part(const checkpoint_entry& entry, const stored_place& where, std::uint64_t count, std::span<std::byte> scratch) const {
    if (entry.dtype == dtype::string) {
      check_strings(entry, where, count, scratch);
    } else if (has_known_checksum(entry.dtype)) {
      check_numbers(entry, where, scratch);
    }
  }

  void check_tensor(const checkpoint_entry& entry, std::span<std::byte> scratch) const {
    if (!entry.is_partitioned) {
      return check_part(entry, place_of(entry), static_cast<std::uint64_t>(element_count(entry.shape)), scratch);
    }
    for (const auto& [slice, where] : slices_of(entry)) { check_part(entry, where, count_in(slice, entry), scratch); }
  }

  void check_readable(const checkpoint_entry& entry) const {
    if (arrays) { arrays->require_supported(array_of(entry)); }
    if (entry.dtype == dtype::string || size_of(entry.dtype) != 0) { return; }
    throw unimplemented_error(
        fmt::format("tensor \"{}\" is of an unsupported kind: data type number {}", entry.name, static_cast<std::int32_t>(entry.dtype)),
        prefix);
  }

  void check_target(const checkpoint_entry& entry, std::span<const std::byte> target) const {
    check_numeric(entry);
    if (target.size() == entry.size_bytes) { return; }
    throw invalid_argument_error(fmt::format("tensor \"{}\" has {} bytes, the target {}", entry.name, entry.size_bytes, target.size()),
                                 prefix);
  }

  void check_numeric(const checkpoint_entry& entry) const {
    check_readable(entry);
    if (entry.dtype == dtype::string) {
      throw invalid_argument_error(fmt::format("tensor \"{}\" holds strings; use read", entry.name), prefix);
    }
  }
};

checkpoint_reader::checkpoint_reader(std::string prefix, std::shared_ptr<io::file_system> files) : core_(std::make_unique<core>()) {
  core_->prefix = std::move(prefix);
  core_->files = files ? std::move(files) : io::posix_file_system();
  detail::with_memory("could not open the checkpoint", core_->prefix, [this] { core_->open(); });
}

checkpoint_reader::checkpoint_reader(checkpoint_reader&&) noexcept = default;
checkpoint_reader& checkpoint_reader::operator=(checkpoint_reader&&) noexcept = default;
checkpoint_reader::~checkpoint_reader() = default;

const std::string& checkpoint_reader::prefix() const noexcept { return core_->prefix; }
checkpoint_format checkpoint_reader::format() const noexcept {
  return core_->arrays ? core_->arrays->format() : checkpoint_format::tensorflow;
}
std::int32_t checkpoint_reader::shards() const noexcept {
  return static_cast<std::int32_t>(core_->arrays ? core_->arrays->files() : core_->data.size());
}
std::vector<std::string> checkpoint_reader::data_files() const {
  if (core_->arrays) { return core_->arrays->paths(); }
  std::vector<std::string> all;
  for (std::int32_t shard = 0; shard < shards(); ++shard) { all.push_back(format::data_name(core_->prefix, shard, shards())); }
  return all;
}
std::span<const checkpoint_entry> checkpoint_reader::entries() const noexcept { return core_->index.entries; }
bool checkpoint_reader::is_verified() const noexcept { return core_->verified; }
const std::shared_ptr<checkpoint_search_result>& checkpoint_reader::search() const noexcept { return core_->search; }
void checkpoint_reader::set_search(std::shared_ptr<checkpoint_search_result> search) noexcept { core_->search = std::move(search); }

std::optional<std::int64_t> checkpoint_reader::step() const {
  if (const auto named = step_of_checkpoint(core_->prefix)) { return named; }
  const auto* entry = find("global_step");
  if (entry == nullptr || entry->dtype != dtype::int64 || !entry->shape.empty()) { return std::nullopt; }
  return read("global_step").as<std::int64_t>().front();
}

const checkpoint_entry* checkpoint_reader::find(std::string_view name) const noexcept { return core_->find(name); }

tensor checkpoint_reader::read(std::string_view name) const {
  const auto& entry = core_->entry_named(name);
  core_->check_readable(entry);
  return detail::with_memory(fmt::format("could not read tensor \"{}\"", name), core_->prefix, [&] {
    if (entry.dtype == dtype::string) { return core_->read_strings(entry); }
    tensor value(entry.dtype, entry.shape);
    core_->read_tensor(entry, value.bytes());
    return value;
  });
}

void checkpoint_reader::read_into(std::string_view name, std::span<std::byte> target) const {
  const auto& entry = core_->entry_named(name);
  core_->check_target(entry, target);
  detail::with_memory(fmt::format("could not read tensor \"{}\"", name), prefix(), [&] { core_->read_tensor(entry, target); });
}

void checkpoint_reader::read_into(std::span<const read_target> targets, io::pool* helpers) const {
  for (const auto& [entry, into] : targets) { core_->check_target(*entry, into); }
  detail::with_memory("could not read it", prefix(), [&] {
    if (core_->arrays) {
      for (const auto& [entry, into] : targets) { core_->read_array(*entry, into); }
      return;
    }
    std::vector<detail::tensor_read> reads;
    reads.reserve(targets.size());
    for (const auto& [entry, into] : targets) {
      if (!entry->is_partitioned) { reads.push_back({entry, core_->place_of(*entry), into.data()}); }
    }
    const auto files = core_->open_files();
    detail::read_tensors(std::move(reads), files, helpers);
    for (const auto& [entry, into] : targets) {
      if (entry->is_partitioned) { core_->read_tensor(*entry, into); }
    }
  });
}

void checkpoint_reader::verify() const {
  detail::with_memory("could not check it", prefix(), [this] {
    if (core_->arrays) { return core_->verify_arrays(); }
    std::vector<detail::tensor_read> small;
    small.reserve(static_cast<std::size_t>(std::ranges::count_if(core_->index.entries, core::is_small)));
    for (const auto& entry : core_->index.entries) {
      if (core::is_small(entry)) { small.push_back({&entry, core_->place_of(entry), nullptr}); }
    }
    const auto files = core_->open_files();
    detail::read_tensors(std::move(small), files, nullptr);
    std::vector<std::byte> scratch(read_size);
    for (const auto& entry : core_->index.entries) {
      if (!core::is_small(entry)) { core_->check_tensor(entry, scratch); }
    }
  });
  core_->verified = true;
}

void checkpoint_reader::verify(std::string_view name) const {
  const auto& entry = core_->entry_named(name);
  if (!has_known_checksum(entry.dtype)) {
    throw unimplemented_error(
        fmt::format("tensor \"{}\" was not checked: the checksum algorithm for {} is unknown", name, to_string(entry.dtype)),
        core_->prefix);
  }
  if (core_->arrays) {
    core_->check_readable(entry);
    return detail::with_memory("could not check it", prefix(), [&] { core_->read_array(entry, {}); });
  }
  const auto size = static_cast<std::size_t>(std::clamp<std::uint64_t>(entry.size_bytes, 1, read_size));
  auto scratch = detail::with_memory("could not check it", prefix(), [size] { return std::vector<std::byte>(size); });
  core_->check_tensor(entry, scratch);
}

generator<std::span<const std::byte>> checkpoint_reader::pieces(std::string_view name) const {
  const auto& entry = core_->entry_named(name);
  core_->check_numeric(entry);
  return core_->bytes_of(entry);
}

generator<tensor_piece> checkpoint_reader::sparse_pieces(std::string_view name) const {
  const auto& entry = core_->entry_named(name);
  core_->check_numeric(entry);
  return core_->pieces_of(entry, true);
}

}  // namespace stepwell
