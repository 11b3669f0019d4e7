// SPDX-License-Identifier: Apache-2.0
#include "late_device.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <torch/version.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace stepwell::test::late_device {
namespace {

constexpr auto device_type = c10::DeviceType::PrivateUse1;
const at::Device the_device(device_type, 0);

using stream_id = c10::StreamId;
thread_local stream_id current = 0;
std::atomic<int> failing_events = 0;
std::atomic<std::int64_t> events = 0;

/// The state of a stream at one time: complete when `count` pieces of its work are done.
struct mark {
  stream_id stream;
  std::uint64_t count;
};

struct work {
  std::function<void()> run;  // empty: wait for `after`
  mark after = {};
  bool is_to_host = false;
  std::uint64_t number = 0;  // in the order in which the host gave the work
};

struct queue {
  std::deque<work> pending;
  std::uint64_t given = 0;
  std::uint64_t done = 0;
};

/// The streams of the device. @threads Any.
class streams {
public:
  stream_id make() {
    const std::lock_guard lock(mutex_);
    const auto id = static_cast<stream_id>(queues_.size()) + 1;
    queues_[id];
    return id;
  }

  void give(work one) {
    std::unique_lock lock(mutex_);
    progress();
    one.number = ++numbers_;
    auto& to = queues_[current];
    to.pending.push_back(std::move(one));
    ++to.given;
  }
  mark now(stream_id stream) {
    const std::lock_guard lock(mutex_);
    return {stream, queues_[stream].given};
  }
  bool is_done(mark until) {
    const std::lock_guard lock(mutex_);
    return queues_[until.stream].done >= until.count;
  }

  /// Blocks until the work is done. `is_wait`: it counts as a wait of this thread.
  void finish(mark until, bool is_wait) {
    std::unique_lock lock(mutex_);
    if (is_wait) { ++waits_[std::this_thread::get_id()]; }
    progress();
    finish(until, lock);
  }

  void restart(std::uint64_t seed) {
    std::unique_lock lock(mutex_);
    is_held_ = false;
    for (auto& [stream, queue] : queues_) { finish({stream, queue.given}, lock); }
    random_.seed(seed);
    waits_.clear();
    overtaken_ = 0;
    newest_done_ = 0;
    bytes_to_host_ = 0;
    steps_ = std::this_thread::get_id();
  }
  void hold(bool is_held) {
    const std::lock_guard lock(mutex_);
    is_held_ = is_held;
    changed_.notify_all();
  }

  std::int64_t waits(std::thread::id thread) {
    const std::lock_guard lock(mutex_);
    return waits_[thread];
  }
  std::int64_t waits() {
    const std::lock_guard lock(mutex_);
    std::int64_t all = 0;
    for (const auto& [thread, count] : waits_) { all += count; }
    return all;
  }
  std::int64_t overtaken() {
    const std::lock_guard lock(mutex_);
    return overtaken_;
  }
  void count_to_host(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_to_host_ += static_cast<std::int64_t>(bytes);
  }
  std::int64_t bytes_to_host() {
    const std::lock_guard lock(mutex_);
    return bytes_to_host_;
  }

private:
  [[nodiscard]] bool is_ready(const work& one) {
    if (is_held_ && one.is_to_host) { return false; }
    return one.run || queues_[one.after.stream].done >= one.after.count;
  }
  void do_first(queue& of) {
    auto one = std::move(of.pending.front());
    of.pending.pop_front();
    ++of.done;
    if (one.run) { one.run(); }
    if (one.is_to_host && one.number < newest_done_) { ++overtaken_; }
    newest_done_ = std::max(newest_done_, one.number);
  }
  /// Does the first pieces of work of random streams.
  void progress() {
    for (auto count = random_() % 4; count > 0; --count) {
      auto chosen = queues_.begin();
      std::advance(chosen, static_cast<std::ptrdiff_t>(random_() % queues_.size()));
      auto& of = chosen->second;
      if (!of.pending.empty() && is_ready(of.pending.front())) { do_first(of); }
    }
    changed_.notify_all();
  }
  void finish(mark until, std::unique_lock<std::mutex>& lock) {
    auto& of = queues_[until.stream];
    while (of.done < until.count) {
      const auto& first = of.pending.front();
      if (is_ready(first)) {
        do_first(of);
      } else if (!first.run) {
        finish(mark(first.after), lock);
      } else {
        TORCH_CHECK(std::this_thread::get_id() != steps_, "the thread that runs the steps waits for a copy to the host");
        changed_.wait(lock);
      }
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<stream_id, queue> queues_{{0, {}}};
  std::mt19937_64 random_;
  std::map<std::thread::id, std::int64_t> waits_;
  std::thread::id steps_;
  std::uint64_t numbers_ = 0;
  std::uint64_t newest_done_ = 0;
  std::int64_t overtaken_ = 0;
  std::int64_t bytes_to_host_ = 0;
  bool is_held_ = false;
};

/// Lives until the process ends: LibTorch may free tensors later than static objects.
streams& device() {
  static auto* const all = new streams;
  return *all;
}

/// Blocks of memory by their sizes.
struct {
  std::mutex mutex;
  std::map<std::size_t, std::vector<void*>> free;
  std::map<void*, std::size_t> sizes;
} memory;

void free_block(void* block) {
  const std::lock_guard lock(memory.mutex);
  memory.free[memory.sizes[block]].push_back(block);
}

struct device_allocator final : at::Allocator {
#if TORCH_VERSION_MAJOR < 2
  at::DataPtr allocate(std::size_t size) const override { return made(size); }
#else
  at::DataPtr allocate(std::size_t size) override { return made(size); }
  void copy_data(void* to, const void* from, std::size_t size) const override { std::memcpy(to, from, size); }
#endif
  at::DeleterFnPtr raw_deleter() const override { return &free_block; }

private:
  static at::DataPtr made(std::size_t size) {
    const std::lock_guard lock(memory.mutex);
    auto& free = memory.free[size];
    if (free.empty()) {
      free.push_back(std::malloc(size > 0 ? size : 1));
      memory.sizes[free.back()] = size;
    }
    void* const block = free.back();
    free.pop_back();
    return {block, block, &free_block, the_device};
  }
};
device_allocator allocator;

c10::Stream stream_of(stream_id id) { return c10::Stream(c10::Stream::UNSAFE, the_device, id); }

struct guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return device_type; }
  c10::Device exchangeDevice(c10::Device) const override { return the_device; }
  c10::Device getDevice() const override { return the_device; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const noexcept override { return stream_of(current); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream_of(device().make()); }
  c10::Stream exchangeStream(c10::Stream next) const noexcept override { return stream_of(std::exchange(current, next.id())); }
  bool queryStream(const c10::Stream& stream) const override { return device().is_done(device().now(stream.id())); }
  void synchronizeStream(const c10::Stream& stream) const override { device().finish(device().now(stream.id()), true); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    TORCH_CHECK(failing_events.exchange(0) == 0, "the device has no event now");
    ++events;
    if (*event == nullptr) { *event = new mark; }
    *static_cast<mark*>(*event) = device().now(stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    const auto outer = std::exchange(current, stream.id());
    device().give({.run = nullptr, .after = *static_cast<mark*>(event)});
    current = outer;
  }
  bool queryEvent(void* event) const override { return device().is_done(*static_cast<mark*>(event)); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<mark*>(event); }
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  void synchronizeEvent(void* event) const override { device().finish(*static_cast<mark*>(event), true); }
#endif
};

/// Returns the memory of a tensor as a tensor on the CPU, which does not keep the memory.
at::Tensor addressed(const at::Tensor& value) {
  if (!value.defined() || value.device().type() != device_type) { return value; }
  auto* const first = static_cast<char*>(value.storage().unsafeGetStorageImpl()->data_ptr().get());
  const auto offset = value.storage_offset() * static_cast<std::int64_t>(value.itemsize());
  return at::from_blob(first + offset, value.sizes(), value.strides(), at::TensorOptions().dtype(value.scalar_type()));
}

at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> type, c10::optional<at::Layout> /*layout*/,
                 c10::optional<at::Device> /*device*/, c10::optional<bool> /*pinned*/, c10::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type.value_or(at::kFloat), format);
}
at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> type,
                         c10::optional<at::Layout> /*layout*/, c10::optional<at::Device> /*device*/, c10::optional<bool> /*pinned*/) {
  return at::detail::empty_strided_generic(size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

/// Gives a copy to the current stream. The host waits for a copy to the host unless it is `non_blocking`.
at::Tensor copy(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const bool is_to_host = to.device().is_cpu();
  auto source = from.device().is_cpu() ? from.detach().clone() : addressed(from);  // memory of the host is read at once
  device().give({.run =
                     [source = std::move(source), target = addressed(to.detach())] {
                       const at::NoGradGuard without_gradients;
                       target.copy_(source);
                     },
                 .is_to_host = is_to_host});
  if (is_to_host) {
    device().count_to_host(to.nbytes());
    if (!non_blocking) { device().finish(device().now(current), true); }
  }
  return to;
}

/// Gives `to` the shape and the elements of `value`.
void become(const at::Tensor& to, const at::Tensor& value) {
  const auto made = on_device(value);
  to.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
  to.unsafeGetTensorImpl()->set_sizes_and_strides(made.sizes(), made.strides());
}

/// All other operations, by those of the CPU. An operation that only writes to its arguments is work of the current stream. For any other one,
/// the host waits until the current stream is done; this counts as no wait, because a real device would not need it.
void compute(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& schema = operation.schema();
  const auto given = torch::jit::last(*stack, schema.arguments().size()).vec();
  torch::jit::drop(*stack, given.size());
  torch::jit::Stack arguments;
  torch::jit::Stack written;
  bool has_new_size = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& argument = schema.arguments()[i];
    const bool is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (is_written) { written.push_back(given[i]); }
    if (is_written && argument.kwarg_only() && given[i].toTensor().numel() == 0) {  // the operation gives it a size
      has_new_size = true;
      arguments.emplace_back(at::empty({0}, given[i].toTensor().scalar_type()));
    } else if (given[i].isTensor()) {
      arguments.emplace_back(addressed(given[i].toTensor()));
    } else if (given[i].isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& one : given[i].toTensorList()) { list.push_back(addressed(one)); }
      arguments.emplace_back(std::move(list));
    } else if (given[i].isDevice()) {
      arguments.emplace_back(at::Device(at::kCPU));
    } else {
      arguments.push_back(given[i]);
    }
  }
  const auto run = [operation](torch::jit::Stack& on_host) {
    const at::NoGradGuard without_gradients;
    operation.callBoxed(&on_host);
  };
  const bool only_writes = !written.empty() && written.size() == schema.returns().size();
  if (only_writes && !has_new_size) {
    device().give({.run = [run, arguments]() mutable { run(arguments); }});
    stack->insert(stack->end(), written.begin(), written.end());
    return;
  }
  device().finish(device().now(current), false);
  if (operation.operator_name().name == "aten::_local_scalar_dense") { device().count_to_host(given[0].toTensor().nbytes()); }
  run(arguments);
  if (only_writes) {
    for (std::size_t i = 0; i < written.size(); ++i) {
      become(written[i].toTensor(), arguments[i].toTensor());
      stack->push_back(written[i]);
    }
    return;
  }
  for (auto& result : arguments) { stack->push_back(result.isTensor() ? at::IValue(on_device(result.toTensor())) : result); }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>()); }

C10_REGISTER_GUARD_IMPL(PrivateUse1, guard);

}  // namespace

at::Tensor on_device(const at::Tensor& value) {
  auto made = at::empty(value.sizes(), value.options().device(the_device));
  made.copy_(value);
  return made;
}

void restart(std::uint64_t seed) { device().restart(seed); }
void hold() { device().hold(true); }
void release() { device().hold(false); }
std::int64_t waits_of(std::thread::id thread) { return device().waits(thread); }
std::int64_t all_waits() { return device().waits(); }
std::int64_t bytes_to_host() { return device().bytes_to_host(); }
void fail_next_event() { failing_events = 1; }
std::int64_t recorded_events() { return events; }
std::int64_t overtaken_copies() { return device().overtaken(); }

}  // namespace stepwell::test::late_device
