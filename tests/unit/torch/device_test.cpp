// SPDX-License-Identifier: Apache-2.0
//
// Tests of tensors on a device other than the CPU. The test defines the device (LibTorch's PrivateUse1) with memory on
// the host. Every transfer uses the device's copy function, as for a GPU.
#include "torch_and_catch.hpp"
#include "twins.hpp"

#include <stepwell/torch/bucket.hpp>
#include <stepwell/torch/torch.hpp>

#include "support/temporary_directory.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/group/group.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

constexpr auto device_type = c10::DeviceType::PrivateUse1;
int copies = 0;

struct device_allocator final : at::Allocator {
#if TORCH_VERSION_MAJOR < 2
  at::DataPtr allocate(std::size_t size) const override { return made(size); }
#else
  at::DataPtr allocate(std::size_t size) override { return made(size); }
  void copy_data(void* to, const void* from, std::size_t size) const override { std::memcpy(to, from, size); }
#endif
  at::DeleterFnPtr raw_deleter() const override { return &std::free; }

private:
  static at::DataPtr made(std::size_t size) {
    void* const memory = std::malloc(size > 0 ? size : 1);
    return {memory, memory, &std::free, at::Device(device_type, 0)};
  }
};
device_allocator allocator;

at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> type, c10::optional<at::Layout> /*layout*/,
                 c10::optional<at::Device> /*device*/, c10::optional<bool> /*pinned*/, c10::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type.value_or(at::kFloat), format);
}

/// Returns a tensor of the host with the same memory.
at::Tensor on_host(const at::Tensor& value) {
  auto* const begin = static_cast<std::byte*>(value.storage().unsafeGetStorageImpl()->data_ptr().get());
  return at::from_blob(begin + value.storage_offset() * static_cast<std::int64_t>(value.itemsize()), value.sizes(), value.strides(),
                       at::TensorOptions().dtype(value.dtype()));
}

/// Copies from the host to the device or back.
at::Tensor copy(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  ++copies;
  on_host(to).copy_(on_host(from));
  return to;
}

at::Tensor& zero(at::Tensor& value) {
  on_host(value).zero_();
  return value;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("_copy_from", &copy);
  library.impl("zero_", &zero);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(&at::native::view));
}

at::Tensor on_device(const at::Tensor& value) {
  auto made = at::empty(value.sizes(), value.options().device(at::Device(device_type, 0)));
  made.copy_(value);
  return made;
}
sw::snapshot captured(const sw::variable_list& variables, std::int64_t step) {
  return sw::snapshot::capture(*sw::snapshot_pool(sw::snapshot_size(variables), 1).try_acquire(), variables, step);
}
std::vector<float> elements_of(const at::Tensor& value) {
  auto host = at::empty(value.sizes(), at::kFloat);
  host.copy_(value);
  return {host.data_ptr<float>(), host.data_ptr<float>() + host.numel()};
}

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, c10::impl::NoOpDeviceGuardImpl<device_type>);

TEST_CASE("a tensor on another device is copied to the host for a checkpoint, and back when it is restored", "[torch][device]") {
  const sw::test::temporary_directory directory;
  const auto weights = on_device(at::arange(6, at::kFloat).reshape({2, 3}));
  REQUIRE_FALSE(weights.device().is_cpu());
  copies = 0;
  {
    const auto variables = sw::variables({{"weights", weights}});
    CHECK(variables[0].shape() == sw::tensor_shape{2, 3});
    CHECK(copies == 0);  // nothing is copied before there is a snapshot
    sw::saver saver(directory.path());
    saver.save_and_wait(captured(variables, 7));
    CHECK(copies == 1);
  }
  const auto other = on_device(at::zeros({2, 3}));
  sw::restore(sw::variables({{"weights", other}}), sw::checkpoint_reader(directory / "model.ckpt-7"));
  CHECK(elements_of(other) == std::vector<float>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a module's parameters on another device are copied by name", "[torch][device]") {
  struct layer : torch::nn::Module {
    explicit layer(const at::Tensor& first) : weight(register_parameter("weight", on_device(first))) {}
    torch::Tensor weight;
  };
  const layer trained(at::full({2, 3}, 5.0f));
  REQUIRE(trained.weight.requires_grad());
  const auto taken = captured(sw::libtorch::variables(trained), 0);
  const layer other(at::zeros({2, 3}));
  sw::restore(sw::libtorch::variables(other), taken);
  CHECK(elements_of(other.weight.detach()) == std::vector<float>(6, 5.0f));
}

TEST_CASE("a fetched tensor on another device is refused, with what to do", "[torch][device]") {
  CHECK_THROWS_WITH(sw::view_of(on_device(at::zeros({2}))), ContainsSubstring("copy it to the CPU"));
}

TEST_CASE("a bucket on another device is copied to the host for its sum, and back", "[torch][device][group]") {
  int sums = 0;
  sw::group pair(std::make_unique<sw::test::twin_engine>(sums));
  pair.form({.time = std::make_shared<sw::manual_clock>(), .stop = {}}, {});
  const auto first = on_device(at::zeros({2})).requires_grad_();
  const auto second = on_device(at::zeros({1, 3})).requires_grad_();
  sw::libtorch::bucket bucket({first, second});
  REQUIRE(bucket.tensors().size() == 1);
  REQUIRE(bucket.tensors()[0].device() == first.device());
  CHECK(elements_of(bucket.tensors()[0]) == std::vector<float>(5, 0.0f));
  first.grad().copy_(at::full({2}, 1.0f));
  second.grad().copy_(at::full({1, 3}, 2.0f));
  copies = 0;
  bucket.sum(pair);
  CHECK(sums == 1);
  CHECK(copies == 2);
  CHECK(elements_of(first.grad()) == std::vector<float>{2, 2});
  CHECK(elements_of(second.grad()) == std::vector<float>{4, 4, 4});
  CHECK_THROWS_AS(sw::libtorch::bucket({first, at::zeros({2}).requires_grad_()}), sw::invalid_argument_error);
}
