// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/thread.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <system_error>
#include <utility>

namespace stepwell {

result<detail::owned_thread> detail::start_thread(std::string_view name, std::function<void()> body) {
  try {
    return owned_thread(std::thread(std::move(body)));
  } catch (const std::system_error& refused) {
    return status(errc::resource_exhausted,
                  "could not start the thread \"" + std::string(name) + "\": " + refused.what() +
                      "; end other threads, or raise the process limit (ulimit -u, or the limit of the container)");
  }
}

namespace {

thread_local detail::wait_observer* observer_of_this_thread = nullptr;

}  // namespace

void detail::observe_waits_of_this_thread(wait_observer& observer) noexcept { observer_of_this_thread = &observer; }

detail::observed_wait::observed_wait() noexcept {
  if (observer_of_this_thread != nullptr) { observer_of_this_thread->begin_wait(); }
}
detail::observed_wait::~observed_wait() {
  if (observer_of_this_thread != nullptr) { observer_of_this_thread->end_wait(); }
}

namespace {

std::string& name_of_this_thread() {
  thread_local std::string name;
  return name;
}

}  // namespace

void set_thread_name(std::string_view name) { name_of_this_thread() = name; }

std::string current_thread_name() {
  const auto& given = name_of_this_thread();
  return given.empty() ? "thread " + std::to_string(current_thread_id()) : given;
}

std::uint32_t current_thread_id() noexcept {
  static std::atomic<std::uint32_t> last = 0;
  thread_local const std::uint32_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

bool detail::ends_within(std::chrono::milliseconds limit, std::string_view name, std::function<void()> action) {
  const auto call = std::make_shared<std::packaged_task<void()>>(std::move(action));
  const auto ended = call->get_future();
  auto thread = detail::start_thread(name, [call] { (*call)(); });
  if (!thread) {
    (*call)();
    return true;
  }
  thread->detach();
  return ended.wait_for(limit) == std::future_status::ready;
}

}  // namespace stepwell
