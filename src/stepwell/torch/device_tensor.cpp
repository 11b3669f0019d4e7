// SPDX-License-Identifier: Apache-2.0
//
// Snapshots and averages of tensors on a device, by the streams and events that c10 has for all devices. No header of CUDA is needed.
#include "stepwell/torch/detail/device_tensor.hpp"

#include "stepwell/base/log.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace stepwell::libtorch::detail {
namespace {

constexpr std::size_t small = 4096;  // bytes up to which a tensor is copied on the current stream, which costs one event less

c10::Stream current_stream(at::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

/// Something that a device may lack, or fail to do at times. After a failure it is left out for a number of requests, which doubles with each
/// further failure in succession. @threads One at a time.
class attempts {
public:
  /// Returns true if the next attempt is due.
  [[nodiscard]] bool is_due() noexcept { return left_out_ == 0 || --left_out_ == 0; }
  void note_success() noexcept { failures_ = 0; }
  /// Logs a failure to do `what`, unless it is the same one as before.
  void note_failure(const char* what, const c10::Error& failure) {
    constexpr int most_doubled = 20;
    left_out_ = std::uint64_t{1000} << std::min(failures_++, most_doubled);
    auto text = std::string("LibTorch could not ") + what +
                ". Checkpoints are correct, but take longer, until a later attempt succeeds. (" + failure.what_without_backtrace() + ")";
    if (text != std::exchange(logged_, text)) { log_info(logged_); }
  }

private:
  std::uint64_t left_out_ = 0;
  int failures_ = 0;
  std::string logged_;
};

/// The stream of a device for copies to the host.
struct copy_stream_entry {
  std::optional<c10::Stream> stream;
  attempts made;
};

/// Returns the stream for copies from a device to the host. Empty if the device has no streams or no events, or could not make them.
std::optional<c10::Stream> copy_stream(at::Device device) {
  static std::mutex mutex;
  static std::map<std::pair<at::DeviceType, at::DeviceIndex>, copy_stream_entry> streams;
  const std::lock_guard lock(mutex);
  auto& entry = streams[{device.type(), device.index()}];
  if (entry.stream || !entry.made.is_due()) { return entry.stream; }
  try {
    const auto made = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
    c10::Event(device.type()).record(made);
    entry.stream = made;
  } catch (const c10::Error& failure) { entry.made.note_failure("make a stream or an event for copies to the host", failure); }
  return entry.stream;
}

void wait_for(c10::Stream stream) { c10::impl::VirtualGuardImpl(stream.device_type()).synchronizeStream(stream); }

/// Blocks until the work of `stream` before `event` is done. LibTorch before 2.4 can wait only for all work of the stream.
template<class Event>
void wait_for(const Event& event, c10::Stream stream) {
  if constexpr (requires { event.synchronize(); }) {
    event.synchronize();
  } else {
    wait_for(stream);
  }
}

/// A copy on `stream`. It keeps the storage of the tensor, so the allocator of the device cannot give it to another tensor before it is read.
class started_copy final : public device_copy {
public:
  started_copy(const at::Tensor& from, const at::Tensor& to, c10::Stream stream)
      : from_(from.storage()), device_(from.device()), stream_(stream), copied_(from.device().type()) {
    if (const auto computing = current_stream(device_); computing != stream_) {
      c10::Event is_computed(device_.type());
      is_computed.record(computing);
      is_computed.block(stream_);
    }
    const c10::StreamGuard on_stream(stream_);
    try {
      to.copy_(from, /*non_blocking=*/true);
      copied_.record(stream_);
    } catch (...) {
      wait_for(stream_);  // a copy may have begun
      throw;
    }
  }

  void hold_back_updates() override {
    copied_tensor::attempt("delay changes of a LibTorch tensor until it is copied", [this] {
      if (const auto computing = current_stream(device_); computing != stream_) { copied_.block(computing); }
    });
  }

  void wait() override {
    const std::lock_guard lock(mutex_);
    if (!from_) { return; }
    copied_tensor::attempt("copy a LibTorch tensor to the host", [this] { wait_for(copied_, stream_); });
    from_.reset();
  }

private:
  std::mutex mutex_;                  // held while a thread waits; `hold_back_updates` does not lock it
  std::optional<c10::Storage> from_;  // empty: it is copied. Guarded by the mutex
  at::Device device_;
  c10::Stream stream_;
  c10::Event copied_;
};

}  // namespace

device_tensor::device_tensor(tensor_view description, at::Tensor value)
    : copied_tensor(
          std::move(description), value.scalar_type(), [value] { return value; }, [value](const at::Tensor& copy) { value.copy_(copy); }),
      value_(std::move(value)) {}

std::shared_ptr<device_copy> device_tensor::start_copy_to(std::span<std::byte> to) const {
  if (value_.is_conj() || value_.is_neg()) { return nullptr; }  // LibTorch changes the copy on the host, after it is made
  std::shared_ptr<device_copy> copy;
  attempt("begin to copy a LibTorch tensor to the host", [&] {
    if (const auto stream = copy_stream(value_.device())) {
      copy = std::make_shared<started_copy>(value_, on_host(to.data()), to.size() <= small ? current_stream(value_.device()) : *stream);
    }
  });
  return copy;
}

std::shared_ptr<std::byte> device_tensor::host_memory(std::size_t size) const {
  static std::mutex mutex;
  static attempts made;
  if (!copy_stream(value_.device())) { return nullptr; }
  const std::lock_guard lock(mutex);
  if (!made.is_due()) { return nullptr; }
  constexpr std::size_t page = 4096;
  try {
    const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(true);
    const auto memory = std::make_shared<at::Tensor>(at::empty({static_cast<std::int64_t>(size + page)}, options));
    made.note_success();
    void* first = memory->data_ptr();
    std::size_t space = size + page;
    return {memory, static_cast<std::byte*>(std::align(page, size, first, space))};
  } catch (const c10::Error& failure) {
    made.note_failure("allocate pinned memory", failure);
    return nullptr;
  }
}

std::shared_ptr<device_elements> device_tensor::make_average() const {
  std::shared_ptr<device_elements> average;
  attempt("make an average of a LibTorch tensor", [&] { average = std::make_shared<device_tensor>(description(), value_.clone()); });
  return average;
}

void device_tensor::add_to_average(device_elements& average, double weight) const {
  attempt("compute an average of a LibTorch tensor", [&] { static_cast<device_tensor&>(average).value_.lerp_(value_, weight); });
}

void device_tensor::exchange_with_average(device_elements& average) {
  attempt("exchange a LibTorch tensor with its average", [&] {
    auto& other = static_cast<device_tensor&>(average).value_;
    const auto own = value_.clone();
    value_.copy_(other);
    other.copy_(own);
  });
}

}  // namespace stepwell::libtorch::detail
