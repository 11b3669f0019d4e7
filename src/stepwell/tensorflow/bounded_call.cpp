// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/bounded_call.hpp"

#include "stepwell/base/detail/thread.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <utility>

namespace stepwell::tensorflow::detail {

bool ends_within(std::chrono::milliseconds limit, std::function<void()> action) {
  const auto call = std::make_shared<std::packaged_task<void()>>(std::move(action));
  const auto ended = call->get_future();
  auto thread = stepwell::detail::start_thread("a call of TensorFlow", [call] { (*call)(); });
  if (!thread) {
    (*call)();
    return true;
  }
  thread->detach();
  return ended.wait_for(limit) == std::future_status::ready;
}

}  // namespace stepwell::tensorflow::detail
