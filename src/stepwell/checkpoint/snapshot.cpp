// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/snapshot.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/platform.hpp"
#include "stepwell/base/detail/wait_or_stop.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/detail/name_index.hpp"
#include "stepwell/checkpoint/detail/pending_copy.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/update_fence.hpp"
#include "stepwell/io/pool.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace stepwell {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t small = 4096;  // bytes up to which a variable is copied before a step

bool has_layout_of(const std::vector<snapshot_entry>& entries, const variable_list& variables) noexcept {
  return std::ranges::equal(entries, variables, [](const snapshot_entry& entry, const variable_ref& variable) {
    return entry.bytes.size() == variable.size_bytes() && entry.dtype == variable.dtype() && entry.shape == shape_view(variable.shape()) &&
           entry.name == variable.name();
  });
}

void check_names(const variable_list& variables) {
  const auto name_of = [&variables](std::uint32_t i) -> std::string_view { return variables[i].name(); };
  detail::name_index names(name_of, variables.size());
  for (std::uint32_t i = 0; i < variables.size(); ++i) {
    if (name_of(i).empty()) { throw invalid_argument_error("a variable to save has no name"); }
    if (names.add(i)) { throw invalid_argument_error(fmt::format("two variables to save have the name \"{}\"; rename one", name_of(i))); }
  }
}

/// Returns the elements of a variable that any thread may copy by their address. Returns an empty span for a small variable, which is cheaper
/// to copy at once. `may_wait`: the copy may be made later, so elements of a device and early variables have to be copied now.
std::span<const std::byte> shared_bytes(const variable_ref& variable, bool may_wait) {
  if (variable.holds_strings() || variable.size_bytes() <= small) { return {}; }
  if (may_wait) { return variable.is_addressable() && !variable.is_early() ? variable.bytes() : std::span<const std::byte>(); }
  return variable.host_bytes();
}

/// Returns the least offset, not below `offset`, for a tensor of `size` bytes in a snapshot.
std::size_t start_of(std::size_t offset, std::size_t size) noexcept {
  return detail::tensor_start(offset, size, size < alignment ? std::bit_ceil(size) : alignment);
}

constexpr std::size_t least_pieced = std::size_t{8} << 20;   // bytes from which large variables are copied in pieces
constexpr std::size_t least_shared = std::size_t{32} << 20;  // bytes from which other threads take part in a copy

std::span<std::byte> writable(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // valid: it is memory of the buffer
}

bool has_several_processors() noexcept {
  static const bool has = std::thread::hardware_concurrency() > 1;
  return has;
}

}  // namespace

/// The memory of one snapshot, and the layout of the last capture into it.
struct snapshot_pool::memory {
  memory() = default;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { release(); }

  /// Allocates at least `wanted` bytes, from a device if one of `variables` is there and has host memory of its own. Does nothing if the
  /// buffer is large enough, and of this kind. Otherwise the previous content is lost.
  /// @errors `resource_exhausted_error`. Errors of the device.
  void reserve(std::size_t wanted, const variable_list& variables = {}) {
    const bool fits = wanted <= capacity && bytes;
    for (auto variable = variables.begin(); !(fits && is_of_device) && variable != variables.end(); ++variable) {
      // With a page more, which aligned memory may need, this is a power of two: allocators of pinned memory, such as that of CUDA in LibTorch,
      // round up to one. So the buffer uses all of the memory, and `held` counts it.
      constexpr std::size_t page = 4096;
      const auto least = std::bit_ceil(std::max(wanted, alignment) + page) - page;
      if (auto taken = variable->host_memory(least)) {
        release();
        bytes = std::move(taken);
        capacity = least;
        is_of_device = true;
        if (held) { *held += capacity; }
        return;
      }
    }
    if (fits) { return; }
    release();
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    const auto unit = wanted >= huge_page ? huge_page : alignment;
    if (wanted <= std::numeric_limits<std::size_t>::max() - unit) {
      capacity = std::max(unit, (wanted + unit - 1) / unit * unit);
      bytes.reset(static_cast<std::byte*>(std::aligned_alloc(unit, capacity)), &std::free);
    }
    if (!bytes) {
      capacity = 0;
      throw resource_exhausted_error(fmt::format("there is no memory for a snapshot of {} bytes", wanted));
    }
    if (unit == huge_page) { detail::platform::prefer_huge_pages({bytes.get(), capacity}); }
    if (held) { *held += capacity; }
  }

  /// Records the total length of the strings of a capture, which are stored outside of the buffer.
  void count_strings(std::size_t length) noexcept {
    if (held) { *held += length - string_bytes; }
    string_bytes = length;
  }

  void touch() const noexcept { std::memset(bytes.get(), 0, capacity); }

  /// Returns the memory to the system.
  void release() noexcept {
    cancel_copy();
    if (held) { *held -= capacity; }
    capacity = 0;
    bytes.reset();
    is_of_device = false;
    count_strings(0);
    entries = {};
    names = {};
    sizes = {};
  }

  /// Prevents that other threads write to the memory.
  void cancel_copy() const noexcept {
    if (copy) { copy->cancel(); }
  }
  /// Makes `copy` an empty copy that no other object refers to.
  void begin_copy(bool checks) {
    if (!copy || copy.use_count() > 1) { copy = std::make_shared<detail::pending_copy>(); }
    copy->clear(checks);
  }

  /// Computes the layout of a capture of `variables`.
  void lay_out(const variable_list& variables) {
    check_names(variables);
    entries.clear();
    reserve(snapshot_size(variables), variables);
    intern(variables);
    entries.reserve(variables.size());
    const char* name = names.data();
    const std::int64_t* shape = sizes.data();
    std::size_t offset = 0;
    size_bytes = 0;
    for (const auto& variable : variables) {
      const auto size = variable.size_bytes();
      offset = start_of(offset, size);
      const auto rank = variable.shape().size();
      auto& entry = entries.emplace_back(
          snapshot_entry{{name, variable.name().size()}, variable.dtype(), {shape, rank}, {bytes.get() + offset, size}});
      if (variable.holds_strings()) { entry.strings.resize(static_cast<std::size_t>(element_count(entry.shape))); }
      name += variable.name().size();
      shape += rank;
      offset += size;
      size_bytes += size;
    }
  }

  /// Copies the names and the shapes, one behind another.
  void intern(const variable_list& variables) {
    std::size_t name_bytes = 0;
    std::size_t ranks = 0;
    for (const auto& variable : variables) {
      name_bytes += variable.name().size();
      ranks += variable.shape().size();
    }
    names = {};
    names.reserve(name_bytes);
    sizes = {};
    sizes.reserve(ranks);
    for (const auto& variable : variables) {
      names.insert(names.end(), variable.name().begin(), variable.name().end());
      sizes.insert(sizes.end(), variable.shape().begin(), variable.shape().end());
    }
  }

  std::shared_ptr<std::byte> bytes;
  std::size_t capacity = 0;
  bool is_of_device = false;                   ///< `device_elements::host_memory` returned the memory.
  std::vector<snapshot_entry> entries;         ///< Kept between captures, so that an unchanged model needs no allocation.
  std::vector<char> names;                     ///< Of the entries.
  std::vector<std::int64_t> sizes;             ///< Of the dimensions of the entries.
  std::size_t size_bytes = 0;                  ///< Of the variables of numbers.
  std::size_t string_bytes = 0;                ///< Total length of the strings.
  std::atomic<std::size_t>* held = nullptr;    ///< Counter of the pool; null outside a pool.
  std::shared_ptr<detail::pending_copy> copy;  ///< The part of the last capture that any thread may copy; null if there was no capture.
};

struct snapshot_pool::state {
  /// @errors `invalid_argument_error` if `buffers` is 0.
  explicit state(std::size_t buffers) : unmade(buffers) {
    if (buffers == 0) { throw invalid_argument_error("a snapshot pool needs at least one buffer"); }
  }

  [[nodiscard]] std::unique_ptr<memory> make() {
    auto created = std::make_unique<memory>();
    created->held = &held;
    return created;
  }

  /// Decides at a capture whether buffers keep their memory.
  void note_capture() {
    if (!time) { return; }
    const detail::mutex_lock lock(mutex);
    const auto now = time->now();
    keeps = last_capture && now - *last_capture < keep_for;
    last_capture = now;
  }

  detail::checked_mutex mutex;
  std::condition_variable returned;
  std::atomic<std::size_t> held = 0;
  std::shared_ptr<clock> time;  // null: buffers always keep their memory
  clock::duration keep_for = {};
  std::optional<clock::time_point> last_capture STEPWELL_GUARDED_BY(mutex);
  bool keeps STEPWELL_GUARDED_BY(mutex) = true;
  std::vector<std::unique_ptr<memory>> free STEPWELL_GUARDED_BY(mutex);  // its capacity suffices for all buffers that are made
  std::size_t made_count STEPWELL_GUARDED_BY(mutex) = 0;
  std::size_t unmade STEPWELL_GUARDED_BY(mutex);  // number of buffers that may still be made
  std::vector<std::function<void()>> wakers STEPWELL_GUARDED_BY(mutex);

  [[nodiscard]] bool has_free() const noexcept STEPWELL_HOLDS(mutex) { return !free.empty() || unmade != 0; }
  /// @pre `has_free()`.
  [[nodiscard]] std::unique_ptr<memory> take() STEPWELL_HOLDS(mutex) {
    if (free.empty()) { make_free(); }
    auto taken = std::move(free.back());
    free.pop_back();
    return taken;
  }
  /// Makes a buffer. @pre `unmade` is not 0.
  void make_free() STEPWELL_HOLDS(mutex) {
    free.reserve(made_count + 1);
    free.push_back(make());
    ++made_count;
    --unmade;
  }
  /// Releases the memory of all free buffers.
  void release_free() noexcept STEPWELL_HOLDS(mutex) {
    while (!free.empty()) {
      auto released = std::move(free.back());
      free.pop_back();
      {
        const detail::mutex_unlock unlocked(mutex);  // releasing may take long
        released.reset();
      }
      --made_count;
      ++unmade;
    }
  }
};

snapshot_pool::buffer::buffer() noexcept = default;
snapshot_pool::buffer::buffer(std::shared_ptr<state> pool, std::unique_ptr<memory> taken) noexcept
    : pool_(std::move(pool)), memory_(std::move(taken)) {}
snapshot_pool::buffer::buffer(buffer&&) noexcept = default;
snapshot_pool::buffer::~buffer() { give_back(); }

snapshot_pool::buffer& snapshot_pool::buffer::operator=(buffer&& other) noexcept {
  if (this != &other) {
    give_back();
    pool_ = std::move(other.pool_);
    memory_ = std::move(other.memory_);
  }
  return *this;
}

std::size_t snapshot_pool::buffer::capacity() const noexcept { return memory_ ? memory_->capacity : 0; }

void snapshot_pool::buffer::give_back() noexcept {
  if (!memory_) { return; }
  memory_->cancel_copy();
  if (!pool_) { return memory_.reset(); }  // it has left its pool
  std::vector<std::function<void()>> wakers;
  detail::mutex_lock lock(pool_->mutex);
  pool_->free.push_back(std::move(memory_));  // never allocates: `make_free` reserved enough capacity
  if (!pool_->keeps) { pool_->release_free(); }
  wakers.swap(pool_->wakers);
  lock.unlock();
  pool_->returned.notify_all();
  for (const auto& wake : wakers) { wake(); }
  pool_.reset();
}

snapshot_pool::snapshot_pool(std::size_t bytes, std::size_t buffers) : state_(std::make_shared<state>(buffers)) {
  while (state_->unmade != 0) { state_->make_free(); }
  for (const auto& memory : state_->free) {
    memory->reserve(bytes);
    memory->touch();
  }
}

snapshot_pool snapshot_pool::on_demand(std::size_t buffers, std::shared_ptr<clock> time, clock::duration keep_for) {
  auto pool_state = std::make_shared<state>(buffers);
  pool_state->time = std::move(time);
  pool_state->keep_for = keep_for;
  const detail::mutex_lock lock(pool_state->mutex);
  pool_state->keeps = false;
  return snapshot_pool(std::move(pool_state));
}

std::optional<snapshot_pool::buffer> snapshot_pool::try_acquire() {
  const detail::mutex_lock lock(state_->mutex);
  return state_->has_free() ? std::optional(buffer(state_, state_->take())) : std::nullopt;
}

snapshot_pool::buffer snapshot_pool::acquire() {
  detail::mutex_lock lock(state_->mutex);
  state_->returned.wait(lock, [this]() STEPWELL_HOLDS(state_->mutex) { return state_->has_free(); });
  return {state_, state_->take()};
}

std::optional<snapshot_pool::buffer> snapshot_pool::acquire_until(clock& source, clock::time_point when, const std::stop_token& stop) {
  std::optional<buffer> acquired;
  detail::wait_or_stop(source, state_->mutex, state_->returned, when, stop, [&]() STEPWELL_HOLDS(state_->mutex) {
    if (state_->has_free()) { acquired = buffer(state_, state_->take()); }
    return acquired.has_value();
  });
  return acquired;
}

void snapshot_pool::when_available(std::function<void()> wake) {
  {
    const detail::mutex_lock lock(state_->mutex);
    if (!state_->has_free()) { return state_->wakers.push_back(std::move(wake)); }
  }
  wake();
}

std::size_t snapshot_pool::available() const {
  const detail::mutex_lock lock(state_->mutex);
  return state_->free.size() + state_->unmade;
}

std::size_t snapshot_pool::held_bytes() const noexcept { return state_->held; }

std::size_t snapshot_size(const variable_list& variables) {
  std::size_t bytes = 0;
  for (const auto& variable : variables) { bytes = start_of(bytes, variable.size_bytes()) + variable.size_bytes(); }
  return bytes;
}

snapshot snapshot::capture(snapshot_pool::buffer buffer, const variable_list& variables, std::int64_t step, io::pool* helpers) {
  return capture_with(std::move(buffer), variables, step, helpers, nullptr);
}
snapshot snapshot::capture(snapshot_pool::buffer buffer, const variable_list& variables, std::int64_t step, update_fence& fence) {
  return capture_with(std::move(buffer), variables, step, nullptr, &fence);
}

/// Copies the variables. `fence`, if not null, delays the copy of those that are late.
snapshot snapshot::capture_with(snapshot_pool::buffer buffer, const variable_list& variables, std::int64_t step, io::pool* helpers,
                                update_fence* fence) {
  if (!buffer.memory_) { throw failed_precondition_error("a snapshot needs a buffer; this one was moved from"); }
  auto& memory = *buffer.memory_;
  auto trace = current_trace();
  trace_span span(trace, "snapshot", "checkpoint");
  if (buffer.pool_) { buffer.pool_->note_capture(); }
  memory.cancel_copy();
  if (!memory.bytes || !has_layout_of(memory.entries, variables)) { memory.lay_out(variables); }
  memory.begin_copy(fence && fence->checks());
  const bool is_large = memory.size_bytes >= least_pieced;
  std::size_t string_bytes = 0;
  bool has_late = false;  // variables that a device reads while the step computes
  const auto is_late = [fence](const variable_ref& variable) {
    return fence && !variable.is_addressable() && !variable.is_early() && !variable.holds_strings() && variable.size_bytes() > small;
  };
  const auto copy_from_device = [&memory](const variable_ref& variable, const snapshot_entry& entry, bool is_held_back) {
    auto copy = variable.start_copy_to(writable(entry.bytes));
    if (!copy) { return variable.copy_to(writable(entry.bytes)); }
    memory.copy->add(entry.name, copy, is_held_back);
    if (is_held_back) { copy->hold_back_updates(); }
  };
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto& variable = variables[i];
    auto& entry = memory.entries[i];
    if (is_late(variable)) {
      has_late = true;
      continue;
    }
    const auto shared = fence != nullptr || is_large ? shared_bytes(variable, fence != nullptr) : std::span<const std::byte>();
    if (variable.holds_strings()) {
      variable.copy_to(entry.strings);
      for (const auto& one : entry.strings) { string_bytes += one.size(); }
    } else if (!shared.empty()) {
      memory.copy->add(entry.name, shared, writable(entry.bytes), fence ? variable.owner() : nullptr);
    } else if (!variable.is_addressable()) {
      copy_from_device(variable, entry, fence != nullptr);
    } else {
      variable.copy_to(writable(entry.bytes));
    }
  }
  // Last, because a device that copies in this order would otherwise delay updates of the early variables until the late ones are read.
  for (std::size_t i = 0; has_late && i < variables.size(); ++i) {
    if (is_late(variables[i])) { copy_from_device(variables[i], memory.entries[i], false); }
  }
  memory.count_strings(string_bytes);
  if (fence == nullptr) { memory.copy->hold_back_updates(); }
  if (fence) {
    fence->add(memory.copy);
  } else if (helpers != nullptr && memory.size_bytes >= least_shared && has_several_processors()) {
    helpers->share([&copy = *memory.copy] { copy.complete(); });
  } else {
    memory.copy->complete();
  }
  span.argument("step", step);
  span.argument("bytes", memory.size_bytes + string_bytes);
  return snapshot(std::move(buffer), step, std::move(trace));
}

void snapshot::complete() const {
  if (!memory_.memory_ || !memory_.memory_->copy) { return; }
  auto& copy = *memory_.memory_->copy;
  copy.complete();
  copy.wait_for_devices();
}

std::span<const snapshot_entry> snapshot::entries() const {
  if (memory_.memory_ && memory_.memory_->copy) {
    memory_.memory_->copy->complete();
    memory_.memory_->copy->wait_for_devices();
  }
  return memory_.memory_ ? std::span<const snapshot_entry>(memory_.memory_->entries) : std::span<const snapshot_entry>();
}

const snapshot_entry* snapshot::find(std::string_view name) const {
  const auto all = entries();
  const auto entry = std::ranges::find(all, name, &snapshot_entry::name);
  return entry == all.end() ? nullptr : &*entry;
}

void snapshot::leave_pool() {
  if (!memory_.pool_) { return; }
  auto in_its_place = memory_.pool_->make();
  const auto pool = std::exchange(memory_.pool_, nullptr);
  pool->held -= held_bytes();
  memory_.memory_->held = nullptr;
  const snapshot_pool::buffer returned(pool, std::move(in_its_place));
}

std::size_t snapshot::size_bytes() const noexcept {
  return memory_.memory_ ? memory_.memory_->size_bytes + memory_.memory_->string_bytes : 0;
}

std::size_t snapshot::held_bytes() const noexcept {
  return memory_.memory_ ? memory_.memory_->capacity + memory_.memory_->string_bytes : 0;
}

namespace {

/// A checksum to which values are added. The size of a text is added before it, so that no two lists of texts are alike.
class running_checksum {
public:
  void add(std::span<const std::byte> bytes) { crc_ = kernel::crc32c(bytes, crc_); }
  template<class Number>
  void add_number(Number value) {
    add(std::as_bytes(std::span(&value, 1)));
  }
  void add_text(std::string_view text) {
    add_number(text.size());
    add(std::as_bytes(std::span(text)));
  }
  void add_elements(const variable_ref& variable) {
    if (variable.is_addressable()) { return add(variable.bytes()); }
    std::vector<std::byte> copy(variable.size_bytes());
    variable.copy_to(std::span(copy));
    add(copy);
  }
  void add_strings(const variable_ref& variable) {
    std::vector<std::string> copy(static_cast<std::size_t>(element_count(variable.shape())));
    variable.copy_to(std::span(copy));
    for (const auto& text : copy) { add_text(text); }
  }
  [[nodiscard]] std::uint32_t value() const noexcept { return crc_; }

private:
  std::uint32_t crc_ = 0;
};

}  // namespace

std::uint32_t checksum(const variable_list& variables) {
  running_checksum sum;
  for (const auto& variable : variables) {
    sum.add_text(variable.name());
    sum.add_number(static_cast<int>(variable.dtype()));
    sum.add_number(variable.shape().size());
    for (const auto size : variable.shape()) { sum.add_number(size); }
    if (variable.holds_strings()) {
      sum.add_strings(variable);
    } else {
      sum.add_elements(variable);
    }
  }
  return sum.value();
}

}  // namespace stepwell
