// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/script_coroutine.hpp"

#include <functional>
#include <new>

namespace stepwell::detail {

namespace {

/// The header before each frame, because `operator delete` does not receive the arguments of the coroutine.
struct alignas(std::max_align_t) frame_header {
  frame_arena* arena;
};

constexpr std::size_t rounded_up(std::size_t bytes) {
  return (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
}

}  // namespace

void* frame_arena::allocate(std::size_t bytes) {
  const auto needed = rounded_up(bytes);
  if (needed > memory_.size() - used_) { return ::operator new(bytes); }
  void* const frame = memory_.data() + used_;
  used_ += needed;
  return frame;
}

void frame_arena::deallocate(void* frame, std::size_t bytes) noexcept {
  const std::less<const void*> before;
  if (before(frame, memory_.data()) || !before(frame, memory_.data() + memory_.size())) { return ::operator delete(frame, bytes); }
  used_ -= rounded_up(bytes);
}

void* script::promise_type::operator new(std::size_t bytes, script_frames& host) {
  auto* const header = static_cast<frame_header*>(host.frames().allocate(bytes + sizeof(frame_header)));
  header->arena = &host.frames();
  return header + 1;
}
void* script::promise_type::operator new(std::size_t bytes, script_frames& host, step_attempt& /*attempt*/) {
  return operator new(bytes, host);
}

// NOLINTNEXTLINE(misc-new-delete-overloads): see the declaration
void script::promise_type::operator delete(void* frame, std::size_t bytes) noexcept {
  auto* const header = static_cast<frame_header*>(frame) - 1;
  header->arena->deallocate(header, bytes + sizeof(frame_header));
}

std::coroutine_handle<> script::promise_type::child_awaiter::await_suspend(handle_type parent) noexcept {
  auto& child = child_.handle_.promise();
  child.parent_ = parent;
  child.all_ = parent.promise().all_;
  child.all_->top = child_.handle_;
  return child_.handle_;
}

void script::promise_type::child_awaiter::await_resume() const {
  if (const auto& failure = child_.handle_.promise().failure_) { std::rethrow_exception(failure); }
}

std::coroutine_handle<> script::promise_type::at_end::await_suspend(handle_type self) noexcept {
  auto& promise = self.promise();
  if (!promise.parent_) { return std::noop_coroutine(); }
  promise.all_->top = promise.parent_;
  return promise.parent_;
}

bool script::resume(std::exception_ptr result) {
  auto& promise = handle_.promise();
  promise.own_.result = std::move(result);
  promise.own_.top.resume();
  if (!handle_.done()) { return true; }
  if (promise.failure_) { std::rethrow_exception(std::exchange(promise.failure_, nullptr)); }
  return false;
}

const action& script::pending() const noexcept { return handle_.promise().own_.pending; }

}  // namespace stepwell::detail
