// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/bounded_call.hpp"

#include "stepwell/base/detail/thread.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string_view>
#include <utility>

namespace stepwell::detail {

bool ends_within(std::chrono::milliseconds limit, std::string_view name, std::function<void()> action) {
  const auto call = std::make_shared<std::packaged_task<void()>>(std::move(action));
  const auto ended = call->get_future();
  auto thread = start_thread(name, [call] { (*call)(); });
  if (!thread) {
    (*call)();
    return true;
  }
  thread->detach();
  return ended.wait_for(limit) == std::future_status::ready;
}

}  // namespace stepwell::detail
