// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/pending_copy.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"
#include "stepwell/kernel/detail/stream_copy.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

namespace stepwell::detail {
namespace {

/// Calls `action` with each copy. Throws the first error of a device afterwards, with the name of the variable.
template<class Copies, class Action>
void for_each_copy(Copies& copies, Action action) {
  std::exception_ptr first;
  for (auto& one : copies) {
    try {
      try {
        action(one);
      } catch (const error& failure) { throw_named(one.name, failure); }
    } catch (...) {
      if (!first) { first = std::current_exception(); }
    }
  }
  if (first) { std::rethrow_exception(first); }
}

}  // namespace

void pending_copy::clear(bool checks) noexcept {
  variables_.clear();
  pieces_.clear();
  owners_.clear();
  devices_.clear();
  checks_ = checks;
  const mutex_lock lock(mutex_);
  next_ = copied_ = 0;
}

void pending_copy::add(std::string_view name, std::span<const std::byte> from, std::span<std::byte> to, std::shared_ptr<const void> owner) {
  const bool has_owner = owner != nullptr;
  if (has_owner) { owners_.push_back(std::move(owner)); }
  if (checks_) {
    kernel::stream_copy(from, to);
    return variables_.push_back({std::string(name), from, kernel::crc32c(from), has_owner});
  }
  for (std::size_t begin = 0; begin < from.size(); begin += piece_size) {
    pieces_.push_back({from.data() + begin, to.data() + begin, std::min(piece_size, from.size() - begin)});
  }
}

void pending_copy::add(std::string_view name, std::shared_ptr<device_copy> copy, bool is_held_back) {
  devices_.push_back({std::string(name), std::move(copy), is_held_back});
}

void pending_copy::hold_back_updates() {
  for_each_copy(devices_, [](copied_by_device& one) {
    if (std::exchange(one.is_held_back, true)) { return; }
    try {
      one.copy->hold_back_updates();
    } catch (const error&) {
      one.copy->wait();  // the elements may then change, too
      throw;
    }
  });
}

void pending_copy::wait_for_devices() const {
  for_each_copy(devices_, [](const copied_by_device& one) { one.copy->wait(); });
}

void pending_copy::complete() noexcept {
  mutex_lock lock(mutex_);
  while (next_ < pieces_.size()) {
    const auto& piece = pieces_[next_++];
    lock.unlock();
    kernel::stream_copy({piece.from, piece.size}, {piece.to, piece.size});
    lock.lock();
    if (++copied_ == pieces_.size()) { done_.notify_all(); }
  }
  done_.wait(lock, [this]() STEPWELL_HOLDS(mutex_) { return copied_ == pieces_.size(); });
}

void pending_copy::cancel() noexcept {
  mutex_lock lock(mutex_);
  copied_ += pieces_.size() - next_;  // the pieces that are left out count as copied
  next_ = pieces_.size();
  done_.notify_all();
  done_.wait(lock, [this]() STEPWELL_HOLDS(mutex_) { return copied_ == pieces_.size(); });
  lock.unlock();
  try {
    wait_for_devices();
  } catch (const std::exception&) {}  // NOLINT(bugprone-empty-catch): nobody reads the copy; a device that failed no longer writes
}

std::optional<std::string> pending_copy::moved_source(const variable_list& now) const {
  std::map<std::string_view, std::span<const std::byte>> memory;
  for (const auto& variable : now) { memory.emplace(variable.name(), variable.bytes()); }
  for (const auto& captured : variables_) {
    if (captured.has_owner) { continue; }
    const auto found = memory.find(captured.name);
    if (found == memory.end() || found->second.data() != captured.from.data() || found->second.size() != captured.from.size()) {
      return captured.name;
    }
  }
  return std::nullopt;
}

std::optional<std::string> pending_copy::changed_source() const {
  for (const auto& captured : variables_) {
    if (kernel::crc32c(captured.from) != captured.crc32c) { return captured.name; }
  }
  return std::nullopt;
}

}  // namespace stepwell::detail
