// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/pool.hpp"

#include "stepwell/base/detail/start_thread.hpp"
#include "stepwell/base/detail/thread_name.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/io/detail/pool_implementation.hpp"

#include <exception>
#include <string>
#include <thread>
#include <utility>

namespace stepwell::io {
namespace {

void run_guarded(const std::function<void()>& job) noexcept {
  try {
    job();
  } catch (const std::exception& failure) {
    log_error(std::string("a background job ended with an exception, which is dropped: ") + failure.what());
  } catch (...) { log_error("a background job ended with an exception of an unknown type, which is dropped"); }
}

}  // namespace

pool::pool(std::size_t threads) : threads_(std::make_shared<implementation>(threads)) {
  threads_->threads.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    const auto name = "stepwell io " + std::to_string(i);
    auto started = stepwell::detail::start_thread(name, [name, kept = threads_] {
      set_thread_name(name);
      kept->context.run();
    });
    if (!started) { join(); }
    threads_->threads.push_back(value_or_throw(std::move(started)));
  }
}

pool::~pool() {
  if (!running_in_this_thread()) {
    join();
    return;
  }
  threads_->take_no_more();
  for (auto& thread : threads_->threads) { thread.detach(); }
  threads_->threads.clear();
}

void pool::post(std::function<void()> job) {
  auto guarded = [job = std::move(job)] { run_guarded(job); };
  if (!threads_->try_post(guarded)) { guarded(); }
}

void pool::join() {
  threads_->take_no_more();
  for (auto& thread : threads_->threads) { thread.join(); }
  threads_->threads.clear();
}

bool pool::running_in_this_thread() const noexcept { return threads_->context.get_executor().running_in_this_thread(); }

std::shared_ptr<pool> pool::shared() {
  // Never destroyed: its threads may run while static objects are destroyed.
  static const auto* const instance = new std::shared_ptr<pool>(std::make_shared<pool>());
  return *instance;
}

}  // namespace stepwell::io
