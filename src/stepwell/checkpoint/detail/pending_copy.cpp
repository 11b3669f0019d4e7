// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/pending_copy.hpp"

#include "stepwell/kernel/detail/crc32c.hpp"
#include "stepwell/kernel/detail/stream_copy.hpp"

#include <algorithm>
#include <utility>

namespace stepwell::detail {

void pending_copy::clear(bool checks) noexcept {
  variables_.clear();
  pieces_.clear();
  owners_.clear();
  checks_ = checks;
  next_ = copied_ = 0;
}

void pending_copy::add(std::string_view name, std::span<const std::byte> from, std::span<std::byte> to, std::shared_ptr<const void> owner) {
  if (owner) { owners_.push_back(std::move(owner)); }
  if (checks_) { variables_.push_back({std::string(name), from.data(), to.data(), from.size(), kernel::crc32c(from)}); }
  for (std::size_t begin = 0; begin < from.size(); begin += piece_size) {
    pieces_.push_back({from.data() + begin, to.data() + begin, std::min(piece_size, from.size() - begin)});
  }
}

void pending_copy::complete() noexcept {
  std::unique_lock lock(mutex_);
  while (next_ < pieces_.size()) {
    const auto& piece = pieces_[next_++];
    lock.unlock();
    kernel::stream_copy({piece.from, piece.size}, {piece.to, piece.size});
    lock.lock();
    if (++copied_ == pieces_.size()) { done_.notify_all(); }
  }
  done_.wait(lock, [this] { return copied_ == pieces_.size(); });
}

void pending_copy::cancel() noexcept {
  std::unique_lock lock(mutex_);
  copied_ += pieces_.size() - next_;  // the pieces that are left out count as copied
  next_ = pieces_.size();
  done_.notify_all();
  done_.wait(lock, [this] { return copied_ == pieces_.size(); });
}

template<class Member>
std::optional<std::string> pending_copy::changed(Member variable::* bytes) const {
  for (const auto& captured : variables_) {
    if (kernel::crc32c({captured.*bytes, captured.size}) != captured.crc32c) { return captured.name; }
  }
  return std::nullopt;
}
template std::optional<std::string> pending_copy::changed(const std::byte* variable::*) const;
template std::optional<std::string> pending_copy::changed(std::byte* variable::*) const;

}  // namespace stepwell::detail
