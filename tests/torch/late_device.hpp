// SPDX-License-Identifier: Apache-2.0
//
// A device of LibTorch (PrivateUse1) that does its work late. As with a GPU, the host gives work to streams and goes on: copies, and operations
// that write to their arguments. The work of one stream is done in order. Work of different streams is done in an order that the test selects
// by a seed, except where a stream waits for an event. Work that nobody needs is done last, or never.
//
// The device is done with some work when a host thread waits for it, and at random times when a host thread gives it more. So it needs no thread.
// A block of memory that is freed is given to the next tensor of its size, as LibTorch's allocator for CUDA does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <thread>

namespace stepwell::test::late_device {

/// Returns a tensor on the device with these elements.
[[nodiscard]] at::Tensor on_device(const at::Tensor& value);

/// Does all work, and makes the following work be done in the order of `seed`. All counters are 0 afterwards. The calling thread is the one that
/// runs the steps.
void restart(std::uint64_t seed);
/// After `hold`, no copy to the host is made until `release`. A wait for such a copy blocks, and fails on the thread that runs the steps.
void hold();
void release();

/// Makes the next record of an event fail.
void fail_next_event();
/// Returns how many events were recorded.
[[nodiscard]] std::int64_t recorded_events();

/// Returns how often a thread has waited for the device: for a stream, an event, or a copy that is not `non_blocking`.
[[nodiscard]] std::int64_t waits_of(std::thread::id thread);
[[nodiscard]] std::int64_t all_waits();
/// Returns the number of bytes that were copied to the host, or read as a number there.
[[nodiscard]] std::int64_t bytes_to_host();
/// Returns the number of copies to the host that were made after later work of another stream.
[[nodiscard]] std::int64_t overtaken_copies();

}  // namespace stepwell::test::late_device
