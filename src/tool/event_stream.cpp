// SPDX-License-Identifier: Apache-2.0
#include "tool/event_stream.hpp"

#include "stepwell/base/error.hpp"

#include <fmt/format.h>
#include <span>
#include <utility>

namespace stepwell::tool {
namespace {

constexpr std::size_t chunk_size = std::size_t{64} << 10;

}  // namespace

event_stream::event_stream(io::file_system& files, const std::string& path)
    : file_(value_or_throw(files.open(path, io::open_mode::read))), chunk_(chunk_size) {}

bool event_stream::read_more() {
  const auto count = value_or_throw(file_->read_at(read_, chunk_));
  decoder_.feed(std::span(chunk_).first(count));
  read_ += count;
  return count != 0;
}

std::optional<format::event> event_stream::next() {
  for (;;) {
    const auto begin = decoder_.position();
    const auto record = decoder_.next();
    if (!record && record.error().code == errc::truncated) {
      if (!read_more()) { return std::nullopt; }
      continue;
    }
    auto happened = record ? format::decode_event(*record) : result<format::event>(record.error());
    if (!happened) { throw data_loss_error(fmt::format("record {} at byte {}: {}", records_, begin, happened.error().message), path()); }
    ++records_;
    return std::move(happened).value();
  }
}

}  // namespace stepwell::tool
