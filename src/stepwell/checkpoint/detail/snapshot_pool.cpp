// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/snapshot_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

namespace stepwell {
namespace detail {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

void snapshot_memory::reserve(std::size_t wanted) {
  if (wanted <= capacity && bytes) { return; }
  bytes.reset();
  capacity = 0;
  const auto alignment = wanted >= huge_page ? huge_page : std::size_t{64};
  if (wanted > std::numeric_limits<std::size_t>::max() - alignment) {
    throw resource_exhausted_error(fmt::format("there is no memory for a snapshot of {} bytes", wanted));
  }
  const auto rounded = std::max(alignment, (wanted + alignment - 1) / alignment * alignment);
  bytes.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!bytes) { throw resource_exhausted_error(fmt::format("there is no memory for a snapshot of {} bytes", wanted)); }
  if (alignment == huge_page) { static_cast<void>(::madvise(bytes.get(), rounded, MADV_HUGEPAGE)); }  // a hint; failure is harmless
  std::memset(bytes.get(), 0, rounded);
  capacity = rounded;
}

struct snapshot_pool_state {
  std::mutex mutex;
  std::condition_variable returned;
  std::vector<std::unique_ptr<snapshot_memory>> free;
  std::vector<std::function<void()>> wakers;
  std::size_t count = 0;

  /// @pre The mutex is held and a buffer is free.
  [[nodiscard]] std::unique_ptr<snapshot_memory> take() {
    auto memory = std::move(free.back());
    free.pop_back();
    return memory;
  }
};

}  // namespace detail

snapshot_pool::buffer::buffer() noexcept = default;
snapshot_pool::buffer::buffer(std::shared_ptr<detail::snapshot_pool_state> pool, std::unique_ptr<detail::snapshot_memory> memory) noexcept
    : pool_(std::move(pool)), memory_(std::move(memory)) {}
snapshot_pool::buffer::buffer(buffer&&) noexcept = default;

snapshot_pool::buffer& snapshot_pool::buffer::operator=(buffer&& other) noexcept {
  if (this != &other) {
    give_back();
    pool_ = std::move(other.pool_);
    memory_ = std::move(other.memory_);
  }
  return *this;
}

snapshot_pool::buffer::~buffer() { give_back(); }

std::size_t snapshot_pool::buffer::capacity() const noexcept { return memory_ ? memory_->capacity : 0; }

void snapshot_pool::buffer::give_back() noexcept {
  if (!memory_) { return; }
  std::vector<std::function<void()>> wakers;
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->free.push_back(std::move(memory_));  // never allocates: the constructor reserved enough capacity
    wakers.swap(pool_->wakers);
  }
  pool_->returned.notify_all();
  for (const auto& wake : wakers) { wake(); }
  pool_.reset();
}

snapshot_pool::snapshot_pool(std::size_t bytes, std::size_t buffers) : state_(std::make_shared<detail::snapshot_pool_state>()) {
  if (buffers == 0) { throw invalid_argument_error("a snapshot pool needs at least one buffer"); }
  state_->count = buffers;
  state_->free.reserve(buffers);
  for (std::size_t i = 0; i < buffers; ++i) {
    state_->free.push_back(std::make_unique<detail::snapshot_memory>());
    state_->free.back()->reserve(bytes);
  }
}

std::optional<snapshot_pool::buffer> snapshot_pool::try_acquire() {
  const std::lock_guard lock(state_->mutex);
  return state_->free.empty() ? std::nullopt : std::optional(buffer(state_, state_->take()));
}

snapshot_pool::buffer snapshot_pool::acquire() {
  std::unique_lock lock(state_->mutex);
  state_->returned.wait(lock, [this] { return !state_->free.empty(); });
  return {state_, state_->take()};
}

std::optional<snapshot_pool::buffer> snapshot_pool::acquire_until(clock& source, clock::time_point when) {
  std::unique_lock lock(state_->mutex);
  const bool is_free = source.wait_until(lock, state_->returned, when, [this] { return !state_->free.empty(); });
  return is_free ? std::optional(buffer(state_, state_->take())) : std::nullopt;
}

void snapshot_pool::when_available(std::function<void()> wake) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->free.empty()) {
      state_->wakers.push_back(std::move(wake));
      return;
    }
  }
  wake();
}

std::size_t snapshot_pool::buffers() const noexcept { return state_->count; }

std::size_t snapshot_pool::available() const {
  const std::lock_guard lock(state_->mutex);
  return state_->free.size();
}

}  // namespace stepwell
