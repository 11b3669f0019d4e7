// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/trace.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"

#include <algorithm>
#include <new>

namespace stepwell {
namespace {

thread_local constinit const trace_scope* innermost = nullptr;

}  // namespace

trace_recorder::trace_recorder(std::shared_ptr<clock> time, std::size_t max_spans)
    : time_(std::move(time)), max_spans_(max_spans), origin_(time_->now()), wall_origin_(time_->wall_now()) {}

run_metadata trace_recorder::take() {
  const detail::mutex_lock lock(mutex_);
  taken_ += spans_.size();
  return {std::exchange(spans_, {}), origin_, wall_origin_, std::exchange(lost_, 0)};
}

std::uint64_t trace_recorder::position() const noexcept {
  const detail::mutex_lock lock(mutex_);
  return taken_ + spans_.size();
}

run_metadata trace_recorder::since(std::uint64_t position) const {
  const detail::mutex_lock lock(mutex_);
  const auto passed = std::min<std::uint64_t>(position > taken_ ? position - taken_ : 0, spans_.size());
  return {{spans_.begin() + static_cast<std::ptrdiff_t>(passed), spans_.end()}, origin_, wall_origin_, lost_};
}

void trace_recorder::add(trace_event ended) noexcept {
  const detail::mutex_lock lock(mutex_);
  if (spans_.size() >= max_spans_) {
    ++lost_;
    return;
  }
  try {
    spans_.push_back(std::move(ended));
  } catch (const std::bad_alloc&) { ++lost_; }
}

std::shared_ptr<trace_recorder> detail::trace_of_this_thread() noexcept { return innermost == nullptr ? nullptr : innermost->recorder_; }

void trace_scope::enter(const std::shared_ptr<trace_recorder>& recorder) noexcept {
  recorder_ = recorder;
  outer_ = std::exchange(innermost, this);
  detail::traced_scopes.fetch_add(1, std::memory_order_relaxed);
}

void trace_scope::leave() noexcept {
  detail::traced_scopes.fetch_sub(1, std::memory_order_relaxed);
  innermost = outer_;
}

void trace_span::begin(std::shared_ptr<trace_recorder> recorder, std::string_view name, std::string_view category) noexcept {
  if (!recorder) { return; }
  try {
    auto& time = *recorder->time();
    trace_event event{std::string(name), std::string(category), current_thread_id(), current_thread_name(), {}, {}};
    open_ = std::make_unique<open_span>(open_span{std::move(recorder), std::move(event)});
    open_->event.begin = time.now();
  } catch (const std::bad_alloc&) { open_.reset(); }
}

void trace_span::append(std::string_view key, std::string_view text) noexcept {
  try {
    open_->event.arguments.push_back({std::string(key), std::string(text)});
  } catch (const std::bad_alloc&) {  // the span is recorded without this argument
  }
}

void trace_span::end() noexcept {
  open_->event.end = open_->recorder->time()->now();
  open_->recorder->add(std::move(open_->event));
  open_.reset();
}

}  // namespace stepwell
