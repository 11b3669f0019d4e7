// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/checkpoint_reader.hpp"

#include "stepwell/base/detail/memory_shortage.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/format/checkpoint/detail/string_tensor.hpp"
#include "stepwell/io/detail/scan_file.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace stepwell {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 20;  // bytes read at once; their checksum is computed while they are in the cache

/// Reverses the bytes of each number. A complex value consists of two numbers.
void swap_numbers(std::span<std::byte> bytes, dtype type) {
  const auto width = size_of(type) / (type == dtype::complex64 || type == dtype::complex128 ? 2 : 1);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) { std::ranges::reverse(bytes.subspan(at, width)); }
}

bool has_known_checksum(dtype type) noexcept { return type != dtype::variant && type != dtype::resource; }

}  // namespace

struct checkpoint_reader::core {
  std::string prefix;
  std::shared_ptr<io::file_system> files;
  detail::stored_index index;
  std::vector<detail::data_file> data;
  mutable std::atomic<bool> verified = false;

  /// Returns the entry of this name, or null.
  [[nodiscard]] const checkpoint_entry* find(std::string_view name) const noexcept {
    const auto found = std::ranges::lower_bound(index.entries, name, {}, [](const auto& e) -> std::string_view { return e.name; });
    return found != index.entries.end() && found->name == name ? &*found : nullptr;
  }
  [[nodiscard]] const checkpoint_entry& entry_named(std::string_view name) const {
    const auto* entry = find(name);
    if (entry == nullptr) { throw not_found_error(fmt::format("the checkpoint has no tensor \"{}\"", name), prefix); }
    return *entry;
  }

  [[nodiscard]] std::size_t position_of(const checkpoint_entry& entry) const {
    return static_cast<std::size_t>(&entry - index.entries.data());
  }
  /// Returns the location of an entry that is not partitioned.
  [[nodiscard]] const detail::stored_place& place_of(const checkpoint_entry& entry) const { return index.places[position_of(entry)]; }
  [[nodiscard]] const std::vector<detail::stored_slice>& slices_of(const checkpoint_entry& entry) const {
    return index.slices.at(position_of(entry));
  }
  /// Returns the locations of the bytes of an entry, slice by slice.
  [[nodiscard]] std::vector<detail::stored_place> places_of(const checkpoint_entry& entry) const {
    if (!entry.is_partitioned) { return {place_of(entry)}; }
    std::vector<detail::stored_place> places;
    for (const auto& slice : slices_of(entry)) { places.push_back(slice.where); }
    return places;
  }

  [[noreturn]] void refuse(const detail::stored_place& where, std::string_view name, std::string_view what) const {
    throw data_loss_error(fmt::format("tensor \"{}\": {} (bytes {} to {})", name, what, where.offset, where.offset + where.size),
                          file_of(where).path());
  }
  [[nodiscard]] io::file& file_of(const detail::stored_place& where) const { return *data[static_cast<std::size_t>(where.shard)].file; }

  [[nodiscard]] bool is_swapped() const noexcept { return index.header.is_big_endian == (std::endian::native == std::endian::little); }

  /// Fills `block` with the bytes of the entry from offset `at` on.
  void read_block(const detail::stored_place& where, std::string_view name, std::uint64_t at, std::span<std::byte> block) const {
    const auto count = value_or_throw(file_of(where).read_at(static_cast<std::uint64_t>(where.offset) + at, block));
    if (count != block.size()) { refuse(where, name, "its data file became shorter"); }
  }

  void check_booleans(const checkpoint_entry& entry, const detail::stored_place& where, std::span<const std::byte> bytes) const {
    const auto is_bool = [](std::byte value) { return value <= std::byte{1}; };
    if (entry.dtype == dtype::boolean && !std::ranges::all_of(bytes, is_bool)) {
      refuse(where, entry.name, "a boolean is neither 0 nor 1");
    }
  }

  void check_sum(const checkpoint_entry& entry, const detail::stored_place& where, std::uint32_t crc) const {
    if (kernel::crc32c_mask(crc) != where.crc32c) { refuse(where, entry.name, "its checksum does not match"); }
  }

  /// Reads numbers block by block and calls `act(bytes, at)` for each block, in the byte order of this machine. Booleans are
  /// checked before the call; the checksum is checked after the last one. `room(at, size)` returns the memory to read a block into.
  template<class Room, class Act>
  void read_numbers(const checkpoint_entry& entry, const detail::stored_place& where, const Room& room, const Act& act) const {
    std::uint32_t crc = 0;
    const auto size = static_cast<std::uint64_t>(where.size);
    for (std::uint64_t at = 0; at < size; at += block_size) {
      const std::span<std::byte> block = room(at, static_cast<std::size_t>(std::min<std::uint64_t>(block_size, size - at)));
      read_block(where, entry.name, at, block);
      crc = kernel::crc32c(block, crc);
      check_booleans(entry, where, block);
      if (is_swapped()) { swap_numbers(block, entry.dtype); }
      act(block, at);
    }
    check_sum(entry, where, crc);
  }

  /// Passes the stored bytes of a range to the visitor. Passes holes of a sparse file as a number of zeros.
  void scan(const detail::stored_place& where, std::string_view name, std::span<std::byte> scratch, const io::scan_visitor& visitor) const {
    const auto scanned =
        io::scan_file(file_of(where), static_cast<std::uint64_t>(where.offset), static_cast<std::uint64_t>(where.size), scratch, visitor);
    if (scanned) { return; }
    if (scanned.error().code == errc::truncated) { refuse(where, name, "its data file became shorter"); }
    if (scanned.error().code == errc::data_loss && scanned.error().place.empty()) { refuse(where, name, scanned.error().message); }
    throw_status(scanned.error());
  }

  void check_numbers(const checkpoint_entry& entry, const detail::stored_place& where, std::span<std::byte> scratch) const {
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

  void check_strings(const checkpoint_entry& entry, const detail::stored_place& where, std::span<std::byte> scratch) const {
    const auto count = static_cast<std::uint64_t>(element_count(entry.shape));
    if (count > static_cast<std::uint64_t>(where.size)) { refuse(where, entry.name, "it has fewer bytes than strings"); }
    format::string_checker checker(static_cast<std::uint64_t>(where.size), count);
    const auto on_bytes = [&](std::span<const std::byte> bytes) { return checker.feed(bytes); };
    const auto on_zeros = [&](std::uint64_t zeros) { return checker.feed_zeros(zeros); };
    scan(where, entry.name, scratch, {on_bytes, on_zeros});
    const auto crc = checker.finish();
    if (!crc) { refuse(where, entry.name, crc.error().message); }
    if (where.size != 0 && *crc != where.crc32c) { refuse(where, entry.name, "its checksum does not match"); }
  }

  [[nodiscard]] std::vector<std::string> read_strings(const checkpoint_entry& entry) const {
    const auto& where = place_of(entry);
    std::vector<std::byte> scratch(static_cast<std::size_t>(std::min<std::int64_t>(block_size, where.size)));
    check_strings(entry, where, scratch);  // before memory is allocated for the strings
    std::string bytes(static_cast<std::size_t>(where.size), '\0');
    read_block(where, entry.name, 0, std::as_writable_bytes(std::span(bytes)));
    auto decoded = format::decode_strings(bytes, static_cast<std::uint64_t>(element_count(entry.shape)));
    if (!decoded) { refuse(where, entry.name, decoded.error().message); }
    return std::move(decoded->elements);
  }

  /// Yields the numbers of an entry block by block, with the checks of `read_numbers`.
  [[nodiscard]] generator<std::span<const std::byte>> pieces_of(const checkpoint_entry& entry) const {
    std::vector<std::byte> scratch;
    for (const auto& where : places_of(entry)) {
      std::uint32_t crc = 0;
      const auto size = static_cast<std::uint64_t>(where.size);
      scratch.resize(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, size)));
      for (std::uint64_t at = 0; at < size; at += block_size) {
        const auto block = std::span(scratch).first(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, size - at)));
        read_block(where, entry.name, at, block);
        crc = kernel::crc32c(block, crc);
        check_booleans(entry, where, block);
        if (is_swapped()) { swap_numbers(block, entry.dtype); }
        const std::span<const std::byte> piece = block;
        co_yield piece;
      }
      check_sum(entry, where, crc);
    }
  }

  void read_tensor(const checkpoint_entry& entry, std::span<std::byte> target) const {
    if (!entry.is_partitioned) {
      const auto in_place = [&](std::uint64_t at, std::size_t size) { return target.subspan(static_cast<std::size_t>(at), size); };
      return read_numbers(entry, place_of(entry), in_place, [](std::span<const std::byte>, std::uint64_t) {});
    }
    const auto width = size_of(entry.dtype);
    std::vector<std::byte> scratch(block_size);
    const auto in_scratch = [&](std::uint64_t, std::size_t size) { return std::span(scratch).first(size); };
    for (const auto& [slice, where] : slices_of(entry)) {
      const auto copy = [&, &slice = slice](std::span<const std::byte> bytes, std::uint64_t at) {
        detail::copy_part(bytes, at / width, slice, entry.shape, width, target);
      };
      read_numbers(entry, where, in_scratch, copy);
    }
  }

  void check_tensor(const checkpoint_entry& entry, std::span<std::byte> scratch) const {
    for (const auto& where : places_of(entry)) {
      if (entry.dtype == dtype::string) {
        check_strings(entry, where, scratch);
      } else if (has_known_checksum(entry.dtype)) {
        check_numbers(entry, where, scratch);
      }
    }
  }

  void check_readable(const checkpoint_entry& entry) const {
    if (entry.dtype == dtype::string ? entry.is_partitioned : size_of(entry.dtype) == 0) {
      throw unimplemented_error(fmt::format("tensor \"{}\" is of an unsupported kind: data type number {}{}", entry.name,
                                            static_cast<std::int32_t>(entry.dtype), entry.is_partitioned ? " in slices" : ""),
                                prefix);
    }
  }

  void check_numeric(const checkpoint_entry& entry) const {
    check_readable(entry);
    if (entry.dtype != dtype::string) { return; }
    throw invalid_argument_error(fmt::format("tensor \"{}\" holds strings; use read", entry.name), prefix);
  }
};

checkpoint_reader::checkpoint_reader(std::string prefix, std::shared_ptr<io::file_system> files) : core_(std::make_unique<core>()) {
  core_->prefix = std::move(prefix);
  core_->files = files ? std::move(files) : io::posix_file_system();
  detail::with_memory("could not open the checkpoint", core_->prefix, [&] {
    core_->index = detail::load_index(*core_->files, core_->prefix);
    core_->data = detail::open_data_files(*core_->files, core_->prefix, core_->index.header.num_shards);
    detail::check_places(core_->index, core_->data, format::index_name(core_->prefix));
  });
}

checkpoint_reader::checkpoint_reader(checkpoint_reader&&) noexcept = default;
checkpoint_reader& checkpoint_reader::operator=(checkpoint_reader&&) noexcept = default;
checkpoint_reader::~checkpoint_reader() = default;

const std::string& checkpoint_reader::prefix() const noexcept { return core_->prefix; }
std::int32_t checkpoint_reader::shards() const noexcept { return static_cast<std::int32_t>(core_->data.size()); }
std::span<const checkpoint_entry> checkpoint_reader::entries() const noexcept { return core_->index.entries; }
bool checkpoint_reader::is_verified() const noexcept { return core_->verified; }

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
    if (entry.dtype == dtype::string) {
      auto strings = core_->read_strings(entry);
      tensor made(dtype::string, entry.shape);
      std::ranges::move(strings, made.strings().begin());
      return made;
    }
    tensor made(entry.dtype, entry.shape);
    core_->read_tensor(entry, made.bytes());
    return made;
  });
}

void checkpoint_reader::read_into(std::string_view name, std::span<std::byte> target) const {
  const auto& entry = core_->entry_named(name);
  core_->check_numeric(entry);
  if (target.size() != entry.size_bytes) {
    throw invalid_argument_error(fmt::format("tensor \"{}\" has {} bytes, the target {}", name, entry.size_bytes, target.size()),
                                 core_->prefix);
  }
  core_->read_tensor(entry, target);
}

void checkpoint_reader::verify() const {
  auto scratch = detail::with_memory("could not check it", prefix(), [] { return std::vector<std::byte>(block_size); });
  for (const auto& entry : core_->index.entries) { core_->check_tensor(entry, scratch); }
  core_->verified = true;
}

void checkpoint_reader::verify(std::string_view name) const {
  const auto& entry = core_->entry_named(name);
  if (!has_known_checksum(entry.dtype)) {
    throw unimplemented_error(
        fmt::format("tensor \"{}\" was not checked: the checksum algorithm for {} is unknown", name, to_string(entry.dtype)),
        core_->prefix);
  }
  const auto size = static_cast<std::size_t>(std::clamp<std::uint64_t>(entry.size_bytes, 1, block_size));
  auto scratch = detail::with_memory("could not check it", prefix(), [size] { return std::vector<std::byte>(size); });
  core_->check_tensor(entry, scratch);
}

generator<std::span<const std::byte>> checkpoint_reader::pieces(std::string_view name) const {
  const auto& entry = core_->entry_named(name);
  core_->check_numeric(entry);
  return core_->pieces_of(entry);
}

}  // namespace stepwell
