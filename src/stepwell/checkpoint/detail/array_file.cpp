// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/array_file.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/tensor_reads.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/weights/detail/npy.hpp"
#include "stepwell/format/weights/detail/safetensors.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

namespace stepwell::detail {
namespace {

using namespace std::string_view_literals;
using format::stored_array;

constexpr std::size_t array_piece_size = std::size_t{1} << 20;
constexpr std::uint64_t max_directory_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t max_packed_pickle_bytes = std::uint64_t{1} << 28;  // of a compressed pickle; torch.save compresses nothing
/// All tensors of a pickle together have at most this size, and this number of times the size of the file: their elements can share memory.
constexpr std::uint64_t most_views = 64;
constexpr std::uint64_t most_view_bytes = std::uint64_t{64} << 20;

/// Throws the failure of a decoder, with the path of the file.
template<class T>
T decoded_in(result<T>&& outcome, const io::file& file, std::string_view name = {}) {
  if (!outcome) {
    auto failure = std::move(outcome).error();
    if (!name.empty()) { failure.message = fmt::format("\"{}\": {}", name, failure.message); }
    failure.place = file.path();
    throw_status(std::move(failure));
  }
  return std::move(outcome).value();
}

/// Copies the elements of a strided array, in row-major order. `from` points to the first element.
/// @pre No dimension is 0.
template<std::size_t Width>
void copy_strided(const stored_array& array, const std::byte* from, std::byte* into) {
  const auto rank = array.shape.size();
  const auto inner = static_cast<std::size_t>(array.shape.back());
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t at = 0;  // the element with this index, relative to the first one
  while (true) {
    for (std::size_t i = 0; i < inner; ++i, into += Width) {
      std::memcpy(into, from + (at + static_cast<std::int64_t>(i) * array.strides.back()) * static_cast<std::int64_t>(Width), Width);
    }
    auto d = rank - 1;
    while (d-- > 0) {
      at += array.strides[d];
      if (++index[d] < array.shape[d]) { break; }
      at -= array.strides[d] * array.shape[d];
      index[d] = 0;
    }
    if (d == std::size_t(-1)) { return; }
  }
}

void copy_strided(const stored_array& array, const std::byte* from, std::byte* into) {
  switch (size_of(array.dtype)) {
    case 1: return copy_strided<1>(array, from, into);
    case 2: return copy_strided<2>(array, from, into);
    case 4: return copy_strided<4>(array, from, into);
    case 8: return copy_strided<8>(array, from, into);
    default: return copy_strided<16>(array, from, into);
  }
}

/// Returns the number of bytes from the first element of an array to the end of its last one.
/// @pre The array has elements, and its strides lie within its part.
std::uint64_t extent_of(const stored_array& array) noexcept {
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < array.strides.size(); ++d) {
    last += static_cast<std::uint64_t>(array.strides[d]) * static_cast<std::uint64_t>(array.shape[d] - 1);
  }
  return (last + 1) * size_of(array.dtype);
}

}  // namespace

/// Decompresses a member of an archive from its beginning.
class array_file::inflater {
public:
  inflater(const array_file& from, const part& of) : from_(from), part_(of) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) { throw std::bad_alloc(); }
  }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;
  ~inflater() { inflateEnd(&stream_); }

  /// Fills `into` with the next bytes. @errors `data_loss_error` if there are fewer.
  void read(std::span<std::byte> into) {
    while (!into.empty()) {
      const auto wanted = std::min(into.size(), array_piece_size);
      stream_.next_out = reinterpret_cast<Bytef*>(into.data());
      stream_.avail_out = static_cast<uInt>(wanted);
      if (stream_.avail_in == 0) { refill(); }
      const auto code = inflate(&stream_, Z_NO_FLUSH);
      const auto produced = wanted - stream_.avail_out;
      const bool is_good = code == Z_OK || (code == Z_STREAM_END && produced == into.size());
      if (!is_good || (produced == 0 && stream_.avail_in == 0 && taken_ == part_.member.packed)) { damaged(); }
      into = into.subspan(produced);
    }
  }
  void skip(std::uint64_t size) {
    std::vector<std::byte> dropped(static_cast<std::size_t>(std::min<std::uint64_t>(size, array_piece_size)));
    for (; size > 0; size -= std::min<std::uint64_t>(size, dropped.size())) {
      read(std::span(dropped).first(static_cast<std::size_t>(std::min<std::uint64_t>(size, dropped.size()))));
    }
  }

private:
  [[noreturn]] void damaged() const {
    from_.fail(errc::data_loss, fmt::format("\"{}\" in the ZIP archive is damaged: it cannot be decompressed", part_.member.name));
  }
  void refill() {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(part_.member.packed - taken_, packed_.size()));
    from_.read(part_.offset + taken_, std::span(packed_).first(size));
    taken_ += size;
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(size);
  }

  const array_file& from_;
  const part& part_;
  std::uint64_t taken_ = 0;  // of the compressed bytes
  std::vector<std::byte> packed_ = std::vector<std::byte>(std::size_t{64} << 10);
  z_stream stream_{};
};

array_file::array_file(std::unique_ptr<io::file> file, std::uint64_t size, checkpoint_format format)
    : file_(std::move(file)), size_(size), format_(format) {}

std::optional<checkpoint_format> array_file::recognise(io::file_system& files, const std::string& path) {
  const auto info = files.stat(path);
  if (!info || info->is_directory) { return std::nullopt; }
  auto opened = files.open(path, io::open_mode::read);
  if (!opened && opened.error().code == errc::invalid_argument) { return std::nullopt; }  // a pipe, for example
  const auto file = value_or_throw(std::move(opened));
  std::string magic(format::old_torch_magic_size, '\0');
  magic.resize(value_or_throw(file->read_at(0, std::as_writable_bytes(std::span(magic)))));
  if (magic.starts_with("PK\3\4"sv) || magic.starts_with("PK\5\6"sv)) { return checkpoint_format::npz; }
  if (format::is_old_torch_file(magic)) { return checkpoint_format::state_dict; }
  if (magic.starts_with(format::npy_magic)) { return checkpoint_format::npy; }
  if (is_shard_index(path)) { return checkpoint_format::safetensors; }
  const bool is_safetensors = magic.size() > format::safetensors_length_size && magic[format::safetensors_length_size] == '{';
  return is_safetensors || path.ends_with(".safetensors") ? std::optional(checkpoint_format::safetensors) : std::nullopt;
}

std::unique_ptr<array_file> array_file::open(io::file_system& files, const std::string& path) {
  const auto format = recognise(files, path);
  if (!format) { return nullptr; }
  auto file = value_or_throw(files.open(path, io::open_mode::read));
  const auto size = value_or_throw(file->size());
  std::unique_ptr<array_file> arrays(new array_file(std::move(file), size, *format));
  switch (*format) {
    case checkpoint_format::safetensors: is_shard_index(path) ? arrays->load_shards(files) : arrays->load_safetensors(); break;
    case checkpoint_format::npy: arrays->load_npy(); break;
    case checkpoint_format::state_dict: arrays->load_old_torch_file(); break;
    default: arrays->load_archive(); break;
  }
  arrays->sort();
  return arrays;
}

void array_file::fail(errc code, std::string_view why) const { throw_status({code, std::string(why), file_->path()}); }

void array_file::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (value_or_throw(file_->read_at(offset, into)) != into.size()) { fail(errc::data_loss, "the file became shorter"); }
}

std::string array_file::text_at(std::uint64_t offset, std::uint64_t size) const {
  if (offset > size_ || size > size_ - offset) { fail(errc::data_loss, "the file ends too early; it may have been truncated"); }
  std::string text(static_cast<std::size_t>(size), '\0');
  read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string array_file::beginning_of(const part& of, std::uint64_t size) const {
  size = std::min(size, of.member.size);
  if (!of.member.is_deflated) { return text_at(of.offset, size); }
  std::string text(static_cast<std::size_t>(size), '\0');
  inflater(*this, of).read(std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<std::string> array_file::paths() const {
  if (!is_index_) { return {file_->path()}; }
  std::vector<std::string> all;
  for (const auto& shard : shards_) { all.push_back(shard->file_->path()); }
  return all;
}

void array_file::load_shards(io::file_system& files) {
  is_index_ = true;
  if (size_ > format::max_safetensors_header) { fail(errc::unimplemented, fmt::format("an index of {} bytes is too long", size_)); }
  auto indexed = decoded_in(format::decode_shard_index(text_at(0, size_)), *file_);
  std::ranges::sort(indexed, {}, &format::indexed_array::file);
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    const auto& [name, file] = indexed[i];
    if (i == 0 || file != indexed[i - 1].file) {
      const auto path = io::join_path(io::parent_directory(file_->path()), file);
      auto shard = is_shard_index(path) ? nullptr : open(files, path);
      if (!shard && !value_or_throw(files.exists(path))) {
        fail(errc::not_found,
             fmt::format("the index names the file \"{}\", which is not there; put all files of the index beside it", file));
      }
      if (!shard) { fail(errc::data_loss, fmt::format("the index names \"{}\", which is no file of weights", file)); }
      shards_.push_back(std::move(shard));
    }
    const auto* found = shards_.back()->find(name);
    if (found == nullptr) { fail(errc::data_loss, fmt::format("\"{}\" does not contain \"{}\", which the index says", file, name)); }
    arrays_.push_back(*found);
    arrays_.back().part = shards_.size() - 1;
  }
  if (!shards_.empty()) { format_ = shards_.front()->format_; }
}

void array_file::load_safetensors() {
  const auto length = text_at(0, format::safetensors_length_size);
  const auto size = format::read_fixed<std::uint64_t>(length);
  if (size > format::max_safetensors_header) {
    fail(errc::data_loss,
         fmt::format("the header of safetensors has {} bytes; the format allows {}", size, format::max_safetensors_header));
  }
  const auto header = text_at(length.size(), size);
  arrays_ = decoded_in(format::decode_safetensors_header(header, size_ - length.size() - header.size()), *file_);
  parts_.push_back({.member = {.name = {}, .packed = size_, .size = size_}});
}

void array_file::add_npy(std::size_t number, std::string name) {
  const auto& from = parts_[number];
  const auto size = decoded_in(format::npy_header_size(beginning_of(from, format::npy_prefix_size)), *file_, name);
  if (size > from.member.size) { fail(errc::data_loss, fmt::format("\"{}\": the .npy array ends inside its header", name)); }
  auto array = decoded_in(format::decode_npy_header(beginning_of(from, size)), *file_, name);
  if (array.unsupported.empty() && array.size > from.member.size - size) {  // NumPy ignores bytes behind the elements, too
    fail(errc::data_loss, fmt::format("\"{}\": it ends before its last element", name));
  }
  array.name = std::move(name);
  array.part = number;
  arrays_.push_back(std::move(array));
}

void array_file::load_npy() {
  parts_.push_back({.member = {.name = {}, .packed = size_, .size = size_}});
  auto name = io::base_name(file_->path());
  if (name.ends_with(".npy")) { name.resize(name.size() - 4); }
  add_npy(0, std::move(name));
}

void array_file::load_archive() {
  const auto tail_size = std::min<std::uint64_t>(size_, format::zip_end_size);
  auto place = decoded_in(format::find_zip_directory(text_at(size_ - tail_size, tail_size), size_), *file_);
  if (place.is_zip64_end) { place = decoded_in(format::decode_zip64_end(text_at(place.offset, place.size), size_), *file_); }
  if (place.size > max_directory_bytes) { fail(errc::unimplemented, "the directory of the ZIP archive has more than 1 GiB"); }
  auto members = decoded_in(format::decode_zip_directory(text_at(place.offset, place.size)), *file_);
  parts_.reserve(members.size());
  std::uint64_t end = 0;
  for (auto& member : members) {
    if (member.header < end) {
      fail(errc::data_loss, fmt::format("the ZIP archive is damaged: \"{}\" overlaps another member", member.name));
    }
    const auto offset = member.header + decoded_in(format::decode_zip_local_size(text_at(member.header, format::zip_local_size)), *file_);
    if (offset > place.offset || member.packed > place.offset - offset) {
      fail(errc::data_loss, fmt::format("the ZIP archive is damaged: \"{}\" lies outside of it", member.name));
    }
    end = offset + member.packed;
    parts_.push_back({.offset = offset, .member = std::move(member), .has_checksum = true});
  }
  checked_ = std::make_unique<std::atomic<bool>[]>(parts_.size());
  const auto is_pickle = [](const part& of) {
    const std::string_view name = of.member.name;
    return name.ends_with("/data.pkl") && name.find('/') == name.rfind('/');
  };
  const auto pickle = std::ranges::find_if(parts_, is_pickle);
  if (pickle != parts_.end()) { return load_state_dict(*pickle); }
  load_npz();
}

void array_file::load_state_dict(const part& pickle) {
  format_ = checkpoint_format::state_dict;
  for (auto& one : parts_) { one.has_checksum = one.member.crc32 != 0; }  // 0: torch.serialization.set_crc32_options(False)
  const auto folder = pickle.member.name.substr(0, pickle.member.name.rfind('/') + 1);
  const auto data = folder + "data/";
  bool is_big_endian = false;
  std::map<std::string, std::size_t, std::less<>> storages;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::string_view name = parts_[i].member.name;
    if (name.starts_with(data)) { storages.emplace(name.substr(data.size()), i); }
    if (name == folder + "byteorder") { is_big_endian = beginning_of(parts_[i], 3) == "big"; }
  }
  if (pickle.member.is_deflated && pickle.member.size > max_packed_pickle_bytes) {
    fail(errc::unimplemented, "the compressed pickle has more than 256 MiB");
  }
  check_part(static_cast<std::size_t>(&pickle - parts_.data()));
  add_tensors(decoded_in(format::decode_state_dict(beginning_of(pickle, pickle.member.size)), *file_), storages, is_big_endian);
}

void array_file::load_old_torch_file() {
  constexpr std::uint64_t count_size = 8;  // before the elements of each storage
  std::uint64_t known = std::uint64_t{1} << 20;
  auto outcome = format::decode_old_torch_file(text_at(0, std::min(size_, known)));
  for (; !outcome && outcome.error().code == errc::truncated && known < size_; known *= 4) {
    outcome = format::decode_old_torch_file(text_at(0, std::min(size_, 4 * known)));
  }
  if (!outcome && outcome.error().code == errc::truncated) { fail(errc::data_loss, "the file ends too early; it may have been truncated"); }
  auto opened = decoded_in(std::move(outcome), *file_);
  std::map<std::string, std::size_t, std::less<>> storages;
  std::uint64_t at = opened.size;
  for (auto& [key, width] : opened.storages) {
    const auto count = format::read_fixed<std::uint64_t>(text_at(at, count_size));
    at += count_size;
    if (count > (size_ - at) / width) { fail(errc::data_loss, fmt::format("the file ends inside its storage \"{}\"", key)); }
    storages.emplace(key, parts_.size());
    parts_.push_back({.offset = at, .member = {.name = std::move(key), .packed = count * width, .size = count * width}});
    at += count * width;
  }
  add_tensors(std::move(opened.tensors), storages, false);
}

void array_file::add_tensors(std::vector<format::pickled_tensor> tensors, const std::map<std::string, std::size_t, std::less<>>& parts,
                             bool is_big_endian) {
  auto allowed = most_views * std::min(size_, std::numeric_limits<std::uint64_t>::max() / most_views / 2) + most_view_bytes;
  for (auto& tensor : tensors) {
    auto& array = tensor.array;
    array.is_big_endian = is_big_endian;
    if (array.unsupported.empty()) {
      const auto storage = parts.find(tensor.storage);
      if (storage == parts.end() || parts_[storage->second].member.size < tensor.end) {
        fail(errc::data_loss, fmt::format("the elements of \"{}\" lie outside of its storage \"{}\"", array.name, tensor.storage));
      }
      array.part = storage->second;
      if (array.size > allowed) {
        array.unsupported = "its elements share memory, as after expand(), and are much larger than the file; save tensor.contiguous()";
      } else {
        allowed -= array.size;
      }
    }
    arrays_.push_back(std::move(array));
  }
}

void array_file::load_npz() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::string_view name = parts_[i].member.name;
    if (name.ends_with(".npy")) { add_npy(i, std::string(name.substr(0, name.size() - 4))); }
  }
}

void array_file::sort() {
  std::ranges::stable_sort(arrays_, {}, &stored_array::name);
  if (format_ == checkpoint_format::state_dict && !is_index_) {  // different keys can have one name: 1 and "1", or "a.b" and "b" below "a"
    for (std::size_t i = 1, first = 0; i < arrays_.size(); ++i) {
      if (arrays_[i].name != arrays_[first].name) {
        first = i;
      } else {
        arrays_[i].name += fmt::format(" ({})", i - first + 1);
      }
    }
    std::ranges::stable_sort(arrays_, {}, &stored_array::name);
  }
  const auto twice = std::ranges::adjacent_find(arrays_, {}, &stored_array::name);
  if (twice != arrays_.end()) { fail(errc::data_loss, fmt::format("the array \"{}\" is there twice", twice->name)); }
}

const stored_array* array_file::find(std::string_view name) const noexcept {
  const auto found = std::ranges::lower_bound(arrays_, name, {}, &stored_array::name);
  return found != arrays_.end() && found->name == name ? &*found : nullptr;
}

void array_file::require_supported(const stored_array& array) const {
  if (array.unsupported.empty()) { return; }
  fail(errc::unimplemented, fmt::format("array \"{}\" cannot be read: {}", array.name, array.unsupported));
}

void array_file::check_part(std::size_t number) const {
  const auto& part = parts_[number];
  if (!part.has_checksum || checked_[number]) { return; }
  std::vector<std::byte> block(static_cast<std::size_t>(std::min<std::uint64_t>(part.member.size, array_piece_size)));
  std::optional<inflater> inflated;
  if (part.member.is_deflated) { inflated.emplace(*this, part); }
  auto crc = ::crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at < part.member.size;) {
    const auto read_now = std::span(block).first(static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), part.member.size - at)));
    if (inflated) {
      inflated->read(read_now);
    } else {
      read(part.offset + at, read_now);
    }
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(read_now.data()), static_cast<uInt>(read_now.size()));
    at += read_now.size();
  }
  if (crc != part.member.crc32) { fail(errc::data_loss, fmt::format("\"{}\" is damaged: its checksum does not match", part.member.name)); }
  checked_[number] = true;
}

void array_file::verify() const {
  for (std::size_t i = 0; i < parts_.size(); ++i) { check_part(i); }
  for (const auto& shard : shards_) { shard->verify(); }
}

void array_file::check_elements(const stored_array& array, std::span<std::byte> bytes) const {
  constexpr auto is_boolean = [](std::byte byte) { return byte <= std::byte{1}; };
  if (array.dtype == dtype::boolean && !std::ranges::all_of(bytes, is_boolean)) {
    fail(errc::data_loss, fmt::format("array \"{}\" is damaged: a boolean is neither 0 nor 1", array.name));
  }
  if (array.is_big_endian != (std::endian::native == std::endian::big)) { swap_numbers(bytes, array.dtype); }
}

void array_file::gather(const stored_array& array, std::span<std::byte> target) const {
  const auto& from = parts_[array.part];
  std::vector<std::byte> stored(static_cast<std::size_t>(extent_of(array)));
  if (from.member.is_deflated) {
    inflater inflated(*this, from);
    inflated.skip(array.offset);
    inflated.read(stored);
  } else {
    read(from.offset + array.offset, stored);
  }
  copy_strided(array, stored.data(), target.data());
}

generator<tensor_piece> array_file::pieces(const stored_array& array, std::span<std::byte> target, bool skips_holes) const {
  if (!is_index_) { return own_pieces(array, target, skips_holes); }
  const auto& shard = *shards_[array.part];
  return shard.own_pieces(*shard.find(array.name), target, skips_holes);
}

generator<tensor_piece> array_file::own_pieces(const stored_array& array, std::span<std::byte> target, bool skips_holes) const {
  require_supported(array);
  if (array.size == 0) { co_return; }
  check_part(array.part);
  const auto& from = parts_[array.part];
  const auto size = static_cast<std::size_t>(array.size);
  const bool is_strided = !array.strides.empty();
  std::vector<std::byte> gathered;
  if (is_strided && target.size() < size) {
    gathered.resize(size);
    target = gathered;
  }
  if (is_strided) { gather(array, target); }
  std::optional<inflater> inflated;
  if (!is_strided && from.member.is_deflated) {
    inflated.emplace(*this, from);
    inflated->skip(array.offset);
  }
  for (std::size_t at = 0; at < size;) {
    const auto begin = from.offset + array.offset + at;
    if (skips_holes && !is_strided && !inflated) {
      const auto zeros = std::min<std::uint64_t>(file_->skip_hole(begin) - begin, size - at);
      const tensor_piece hole{.zeros = zeros == size - at ? zeros : zeros / array_piece_size * array_piece_size};
      if (hole.zeros > 0) {
        at += static_cast<std::size_t>(hole.zeros);
        co_yield hole;
        continue;
      }
    }
    const auto block = target.subspan(target.size() < size ? 0 : at, std::min(array_piece_size, size - at));
    if (inflated) {
      inflated->read(block);
    } else if (!is_strided) {
      read(begin, block);
    }
    check_elements(array, block);
    at += block.size();
    const tensor_piece piece{.bytes = block};
    co_yield piece;
  }
}

}  // namespace stepwell::detail
