// SPDX-License-Identifier: Apache-2.0
//
// Private to torch: a tensor on a device other than the CPU. The device copies it for a snapshot on a stream of its own, and computes its
// average.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/torch/detail/copied_tensor.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <span>

namespace stepwell::libtorch::detail {

/// The elements of a tensor on a device. Streams and events are those of c10, so they are those of CUDA for a tensor there. A copy is made on
/// one stream for each device, after the work that the current stream has at its begin. If a device has no streams or no events, the host
/// waits for each copy.
class device_tensor final : public copied_tensor {
public:
  device_tensor(tensor_view description, at::Tensor value);

  [[nodiscard]] std::shared_ptr<device_copy> start_copy_to(std::span<std::byte> to) const override;
  [[nodiscard]] std::shared_ptr<std::byte> host_memory(std::size_t size) const override;
  [[nodiscard]] std::shared_ptr<device_elements> make_average() const override;
  void add_to_average(device_elements& average, double weight) const override;
  void exchange_with_average(device_elements& average) override;

private:
  at::Tensor value_;
};

}  // namespace stepwell::libtorch::detail
