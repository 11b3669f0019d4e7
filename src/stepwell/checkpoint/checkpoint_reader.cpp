// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/checkpoint_reader.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/memory_shortage.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/checkpoint/stored_checkpoint.hpp"
#include "stepwell/format/string_tensor.hpp"
#include "stepwell/kernel/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace stepwell {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 20;  // read, then summed while in the cache

/// Reverses the bytes of each number; a complex one is two.
void swap_numbers(std::span<std::byte> bytes, dtype type) {
  const auto width = size_of(type) / (type == dtype::complex64 || type == dtype::complex128 ? 2 : 1);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) { std::ranges::reverse(bytes.subspan(at, width)); }
}

bool has_known_checksum(dtype type) noexcept { return type != dtype::variant && type != dtype::resource; }

}  // namespace

struct checkpoint_reader::core {
  std::string prefix;
  std::shared_ptr<io::file_system> files;
  std::vector<detail::stored_tensor> tensors;
  std::vector<checkpoint_entry> entries;
  std::vector<detail::data_file> data;
  bool is_big_endian = false;
  mutable std::atomic<bool> verified = false;

  [[nodiscard]] const detail::stored_tensor& tensor_named(std::string_view name) const {
    const auto found = std::ranges::lower_bound(tensors, name, {}, [](const auto& t) -> std::string_view { return t.entry.name; });
    if (found == tensors.end() || found->entry.name != name) {
      throw not_found_error(fmt::format("the checkpoint has no tensor \"{}\"", name), prefix);
    }
    return *found;
  }

  [[noreturn]] void refuse(const format::bundle_entry& where, std::string_view name, std::string_view what) const {
    throw data_loss_error(fmt::format("tensor \"{}\": {} (bytes {} to {})", name, what, where.offset, where.offset + where.size),
                          file_of(where).path());
  }
  [[nodiscard]] io::file& file_of(const format::bundle_entry& where) const { return *data[static_cast<std::size_t>(where.shard_id)].file; }

  [[nodiscard]] bool is_swapped() const noexcept { return is_big_endian == (std::endian::native == std::endian::little); }

  /// Fills `block` from `at` bytes into the entry.
  void read_block(const format::bundle_entry& where, std::string_view name, std::uint64_t at, std::span<std::byte> block) const {
    const auto count = value_or_throw(file_of(where).read_at(static_cast<std::uint64_t>(where.offset) + at, block));
    if (count != block.size()) { refuse(where, name, "its data file became shorter"); }
  }

  void check_booleans(const format::bundle_entry& where, std::string_view name, std::span<const std::byte> bytes) const {
    const auto is_bool = [](std::byte value) { return value <= std::byte{1}; };
    if (where.dtype == dtype::boolean && !std::ranges::all_of(bytes, is_bool)) { refuse(where, name, "a boolean is neither 0 nor 1"); }
  }

  /// The stored bytes of numbers, checked. @pre `target` has the entry's size.
  void read_numbers(const format::bundle_entry& where, std::string_view name, std::span<std::byte> target) const {
    std::uint32_t crc = 0;
    for (std::size_t at = 0; at < target.size(); at += block_size) {
      const auto block = target.subspan(at, std::min(block_size, target.size() - at));
      read_block(where, name, at, block);
      crc = kernel::crc32c(block, crc);
    }
    if (kernel::crc32c_mask(crc) != where.crc32c) { refuse(where, name, "its checksum does not match"); }
    check_booleans(where, name, target);
    if (is_swapped()) { swap_numbers(target, where.dtype); }
  }

  void check_numbers(const format::bundle_entry& where, std::string_view name, std::span<std::byte> scratch) const {
    std::uint32_t crc = 0;
    const auto size = static_cast<std::uint64_t>(where.size);
    for (std::uint64_t at = 0; at < size; at += scratch.size()) {
      const auto block = scratch.first(static_cast<std::size_t>(std::min<std::uint64_t>(scratch.size(), size - at)));
      read_block(where, name, at, block);
      crc = kernel::crc32c(block, crc);
      check_booleans(where, name, block);
    }
    if (kernel::crc32c_mask(crc) != where.crc32c) { refuse(where, name, "its checksum does not match"); }
  }

  /// `check_numbers`, showing what is read on the way.
  [[nodiscard]] generator<std::span<const std::byte>> pieces_of(std::vector<format::bundle_entry> parts, std::string name) const {
    std::vector<std::byte> scratch;
    for (const auto& where : parts) {
      std::uint32_t crc = 0;
      const auto size = static_cast<std::uint64_t>(where.size);
      scratch.resize(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, size)));
      for (std::uint64_t at = 0; at < size; at += block_size) {
        const auto block = std::span(scratch).first(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, size - at)));
        read_block(where, name, at, block);
        crc = kernel::crc32c(block, crc);
        check_booleans(where, name, block);
        if (is_swapped()) { swap_numbers(block, where.dtype); }
        const std::span<const std::byte> piece = block;
        co_yield piece;
      }
      if (kernel::crc32c_mask(crc) != where.crc32c) { refuse(where, name, "its checksum does not match"); }
    }
  }

  [[nodiscard]] std::vector<std::string> read_strings(const format::bundle_entry& where, std::string_view name) const {
    std::string bytes(static_cast<std::size_t>(where.size), '\0');
    read_block(where, name, 0, std::as_writable_bytes(std::span(bytes)));
    auto decoded = format::decode_strings(bytes, static_cast<std::uint64_t>(element_count(where.shape)));
    if (!decoded) { refuse(where, name, decoded.error().message); }
    if (!bytes.empty() && decoded->crc32c != where.crc32c) { refuse(where, name, "its checksum does not match"); }
    return std::move(decoded->elements);
  }

  void check_entry(const format::bundle_entry& where, std::string_view name, std::span<std::byte> scratch) const {
    if (where.dtype == dtype::string) {
      static_cast<void>(read_strings(where, name));
    } else if (has_known_checksum(where.dtype)) {
      check_numbers(where, name, scratch);
    }
  }

  void read_tensor(const detail::stored_tensor& tensor, std::span<std::byte> target) const {
    if (!tensor.entry.is_partitioned) { return read_numbers(tensor.where, tensor.entry.name, target); }
    for (std::size_t i = 0; i < tensor.parts.size(); ++i) {
      const auto& part = tensor.parts[i];
      std::vector<std::byte> bytes(static_cast<std::size_t>(part.size));
      read_numbers(part, tensor.entry.name, bytes);
      detail::copy_part(bytes, tensor.where.slices[i], tensor.where.shape, size_of(part.dtype), target);
    }
  }

  void check_tensor(const detail::stored_tensor& tensor, std::span<std::byte> scratch) const {
    if (!tensor.entry.is_partitioned) { check_entry(tensor.where, tensor.entry.name, scratch); }
    for (const auto& part : tensor.parts) { check_entry(part, tensor.entry.name, scratch); }
  }

  void check_readable(const detail::stored_tensor& tensor) const {
    const auto& entry = tensor.entry;
    if (entry.dtype == dtype::string ? entry.is_partitioned : size_of(entry.dtype) == 0) {
      throw unimplemented_error(fmt::format("tensor \"{}\" is of a kind that is not read: data type number {}{}", entry.name,
                                            static_cast<std::int32_t>(entry.dtype), entry.is_partitioned ? " in slices" : ""),
                                prefix);
    }
  }

  void check_numeric(const detail::stored_tensor& tensor) const {
    check_readable(tensor);
    if (tensor.entry.dtype != dtype::string) { return; }
    throw invalid_argument_error(fmt::format("tensor \"{}\" holds strings; use read", tensor.entry.name), prefix);
  }
};

checkpoint_reader::checkpoint_reader(std::string prefix, std::shared_ptr<io::file_system> files) : core_(std::make_unique<core>()) {
  core_->prefix = std::move(prefix);
  core_->files = files ? std::move(files) : io::posix_file_system();
  auto index = detail::load_index(*core_->files, core_->prefix);
  core_->data = detail::open_data_files(*core_->files, core_->prefix, index.header.num_shards);
  detail::check_places(index, core_->data, format::index_name(core_->prefix));
  core_->is_big_endian = index.header.is_big_endian;
  core_->tensors = std::move(index.tensors);
  for (const auto& tensor : core_->tensors) { core_->entries.push_back(tensor.entry); }
}

checkpoint_reader::checkpoint_reader(checkpoint_reader&&) noexcept = default;
checkpoint_reader& checkpoint_reader::operator=(checkpoint_reader&&) noexcept = default;
checkpoint_reader::~checkpoint_reader() = default;

const std::string& checkpoint_reader::prefix() const noexcept { return core_->prefix; }
std::int32_t checkpoint_reader::shards() const noexcept { return static_cast<std::int32_t>(core_->data.size()); }
std::span<const checkpoint_entry> checkpoint_reader::entries() const noexcept { return core_->entries; }
bool checkpoint_reader::is_verified() const noexcept { return core_->verified; }

std::optional<std::int64_t> checkpoint_reader::step() const {
  if (const auto named = step_of_checkpoint(core_->prefix)) { return named; }
  const auto* entry = find("global_step");
  if (entry == nullptr || entry->dtype != dtype::int64 || !entry->shape.empty()) { return std::nullopt; }
  return read("global_step").as<std::int64_t>().front();
}

const checkpoint_entry* checkpoint_reader::find(std::string_view name) const noexcept {
  const auto found = std::ranges::lower_bound(core_->entries, name, {}, [](const auto& e) -> std::string_view { return e.name; });
  return found != core_->entries.end() && found->name == name ? &*found : nullptr;
}

tensor checkpoint_reader::read(std::string_view name) const {
  const auto& stored = core_->tensor_named(name);
  core_->check_readable(stored);
  if (stored.entry.dtype == dtype::string) {
    auto strings = core_->read_strings(stored.where, name);
    tensor made(dtype::string, stored.entry.shape);
    std::ranges::move(strings, made.strings().begin());
    return made;
  }
  tensor made(stored.entry.dtype, stored.entry.shape);
  core_->read_tensor(stored, made.bytes());
  return made;
}

void checkpoint_reader::read_into(std::string_view name, std::span<std::byte> target) const {
  const auto& stored = core_->tensor_named(name);
  core_->check_numeric(stored);
  if (target.size() != stored.entry.size_bytes) {
    throw invalid_argument_error(fmt::format("tensor \"{}\" has {} bytes, the target {}", name, stored.entry.size_bytes, target.size()),
                                 core_->prefix);
  }
  core_->read_tensor(stored, target);
}

void checkpoint_reader::verify() const {
  auto scratch = detail::with_memory("could not check it", prefix(), [] { return std::vector<std::byte>(block_size); });
  for (const auto& tensor : core_->tensors) { core_->check_tensor(tensor, scratch); }
  core_->verified = true;
}

void checkpoint_reader::verify(std::string_view name) const {
  const auto& stored = core_->tensor_named(name);
  if (!has_known_checksum(stored.entry.dtype)) {
    throw unimplemented_error(fmt::format("tensor \"{}\" was not checked: how the checksum of a {} is made is not known here", name,
                                          to_string(stored.entry.dtype)),
                              core_->prefix);
  }
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(block_size, stored.entry.size_bytes));
  auto scratch = detail::with_memory("could not check it", prefix(), [size] { return std::vector<std::byte>(size); });
  core_->check_tensor(stored, scratch);
}

generator<std::span<const std::byte>> checkpoint_reader::pieces(std::string_view name) const {
  const auto& stored = core_->tensor_named(name);
  core_->check_numeric(stored);
  return core_->pieces_of(stored.entry.is_partitioned ? stored.parts : std::vector{stored.where}, std::string(name));
}

}  // namespace stepwell
