// SPDX-License-Identifier: Apache-2.0
#include "stepwell/data/detail/inflated_file.hpp"

#include "stepwell/format/events/record.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace stepwell::data::detail {
namespace {

constexpr std::size_t block_size = std::size_t{32} << 10;
constexpr int any_header = MAX_WBITS + 32;  // of gzip or zlib

class inflated_file final : public io::file {
public:
  explicit inflated_file(std::unique_ptr<io::file> compressed)
      : file(compressed->path()), compressed_(std::move(compressed)), input_(block_size), skipped_(block_size) {
    if (::inflateInit2(&stream_, any_header) != Z_OK) { throw std::bad_alloc(); }
  }
  ~inflated_file() override { ::inflateEnd(&stream_); }

  result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override {
    if (offset < position_) { restart(); }
    while (position_ < offset) {
      const auto count =
          inflate_into(std::span(skipped_).first(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, offset - position_))));
      if (!count || *count == 0) { return count; }
    }
    std::size_t done = 0;
    while (done < into.size()) {
      const auto count = inflate_into(into.subspan(done));
      if (!count) { return count; }
      if (*count == 0) { break; }
      done += *count;
    }
    return done;
  }

  result<std::uint64_t> size() override {
    const auto count = read_at(UINT64_MAX, {});
    if (!count) { return count.error(); }
    return position_;
  }

  result<void> write_at(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) override { return not_writable(); }
  result<void> truncate(std::uint64_t /*size*/) override { return not_writable(); }
  result<void> sync() override { return not_writable(); }
  result<void> close() override { return compressed_->close(); }

private:
  [[nodiscard]] status not_writable() const { return {errc::invalid_argument, "a compressed file is only read", path()}; }

  void restart() {
    ::inflateReset2(&stream_, any_header);
    stream_.avail_in = 0;
    position_ = read_ = 0;
    is_between_streams_ = true;
  }

  /// Decompresses some bytes, at least one. Returns 0 at the end of the file.
  result<std::size_t> inflate_into(std::span<std::byte> into) {
    const auto wanted = static_cast<uInt>(std::min<std::size_t>(into.size(), std::size_t{1} << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = wanted;
    while (stream_.avail_out == wanted) {
      if (stream_.avail_in == 0) {
        auto count = compressed_->read_at(read_, input_);
        if (!count) { return count; }
        if (*count == 0 && is_between_streams_) { return std::size_t{0}; }
        if (*count == 0) { return damaged("the compressed data end too early"); }
        read_ += *count;
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(*count);
      }
      is_between_streams_ = false;
      const int how = ::inflate(&stream_, Z_NO_FLUSH);
      if (how == Z_MEM_ERROR) { return status(errc::resource_exhausted, "no memory to decompress the file", path()); }
      if (how == Z_STREAM_END) {
        ::inflateReset2(&stream_, any_header);
        is_between_streams_ = true;
      } else if (how != Z_OK && how != Z_BUF_ERROR) {
        return damaged(stream_.msg != nullptr ? stream_.msg : "the compressed data are damaged");
      }
    }
    const std::size_t made = wanted - stream_.avail_out;
    position_ += made;
    return made;
  }

  [[nodiscard]] status damaged(std::string_view why) const {
    return {errc::data_loss, fmt::format("could not decompress the file near its byte {}: {}", read_ - stream_.avail_in, why), path()};
  }

  std::unique_ptr<io::file> compressed_;
  std::vector<std::byte> input_;
  std::vector<std::byte> skipped_;
  z_stream stream_{};
  std::uint64_t read_ = 0;          // offset in the compressed file of the next byte to read
  std::uint64_t position_ = 0;      // offset in the decompressed content of the next byte
  bool is_between_streams_ = true;  // true if the file may end here
};

/// Returns true if the bytes begin with a header of gzip (RFC 1952) or zlib (RFC 1950).
bool is_compressed(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < 2) { return false; }
  const auto first = std::to_integer<unsigned>(bytes[0]);
  const auto second = std::to_integer<unsigned>(bytes[1]);
  const bool is_gzip = first == 0x1f && second == 0x8b;
  const bool is_zlib = (first & 0x0fU) == 8 && first >> 4 <= 7 && (first * 256 + second) % 31 == 0;
  return is_gzip || is_zlib;
}

}  // namespace

result<std::unique_ptr<io::file>> inflate_if_compressed(std::unique_ptr<io::file> file) {
  std::array<std::byte, format::record_header_size> begin{};
  const auto count = file->read_at(0, begin);
  if (!count) { return count.error(); }
  format::record_decoder decoder;
  decoder.feed(std::span(begin).first(*count));
  if (decoder.next_length() || !is_compressed(std::span(begin).first(*count))) { return file; }
  return std::unique_ptr<io::file>(std::make_unique<inflated_file>(std::move(file)));
}

}  // namespace stepwell::data::detail
