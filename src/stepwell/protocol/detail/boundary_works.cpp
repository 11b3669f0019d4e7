// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/detail/boundary_works.hpp"

#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/log.hpp"

#include <algorithm>

namespace stepwell {

boundary_work::~boundary_work() = default;  // defined here, so that the virtual functions are compiled once

void boundary_works::add(std::shared_ptr<boundary_work> work) {
  const std::lock_guard lock(mutex_);
  std::erase(former_, work);
  if (std::ranges::find(works_, work) == works_.end()) { works_.push_back(std::move(work)); }
}

bool boundary_works::claim(const void* thing) {
  if (std::ranges::find(claimed_, thing) != claimed_.end()) { return false; }
  claimed_.push_back(thing);
  return true;
}

void boundary_works::begin_creation() {
  auto former = all();
  {
    const std::lock_guard lock(mutex_);
    former_ = std::move(former);
    works_.clear();
  }
  claimed_.clear();
}

void boundary_works::end_creation() noexcept {
  std::vector<std::shared_ptr<boundary_work>> former;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  former.swap(former_);
}

std::vector<std::shared_ptr<boundary_work>> boundary_works::all() const {
  auto all = former_;
  all.insert(all.end(), works_.begin(), works_.end());
  return all;
}

void boundary_works::end_body_of_all() noexcept {
  for (const auto& work : works_) { work->end_body(); }
}

void boundary_works::drop_held() noexcept {
  if (!signals_.take_held()) { return; }
  for (const auto& work : works_) { work->drop_held(); }
}

void boundary_works::process_events() {
  signals_.clear_notification();
  detail::error_collector failures;
  for (const auto& work : works_) {
    failures.attempt([&] { work->process_events(); });
  }
  for (auto& failure : signals_.take_failures()) { failures.add(std::move(failure)); }
  failures.rethrow();
}

std::function<void()> boundary_works::start_flush() const {
  std::vector<std::function<void()>> waits;
  for (const auto& work : works_) {
    if (auto wait = work->start_flush()) { waits.push_back(std::move(wait)); }
  }
  if (waits.empty()) { return nullptr; }
  return [waits = std::move(waits)] {
    for (const auto& wait : waits) { wait(); }
  };
}

void boundary_works::end_trace() const noexcept {
  for (const auto& work : works_) {
    try {
      work->end_trace();
    } catch (...) { log_warning("at the end of a traced run: " + detail::text_of(std::current_exception())); }
  }
}

void boundary_works::drain(const deadline& until) {
  detail::error_collector failures;
  for (const auto& work : all()) {
    failures.attempt([&] { work->drain(until); });
  }
  failures.attempt([&] { process_events(); });
  failures.rethrow();
}

void boundary_works::drain_and_flush(const deadline& until, run_ending ending) {
  detail::error_collector failures;
  failures.attempt([&] { drain(until); });
  if (failures.get()) { ending = {session_ending::failed, {stop_cause::error, detail::text_of(failures.get())}, ending.global_step}; }
  for (const auto& work : all()) {
    failures.attempt([&] { work->write_ending(ending); });
  }
  for (const auto& work : all()) {
    failures.attempt([&] { work->flush(until); });
  }
  for (auto& failure : signals_.take_failures()) { failures.add(std::move(failure)); }
  failures.rethrow();
}

void boundary_works::detach() noexcept {
  for (const auto& work : all()) {
    detail::log_failure("while shutting down a session", [&] { work->detach(); });
  }
  for (const auto& failure : signals_.take_failures()) { detail::log_exception("while shutting down a session", failure); }
}

void boundary_works::hold_until_released(const std::shared_ptr<void>& hold) const {
  for (const auto& work : all()) { work->hold_until_released(hold); }
}

void boundary_works::report(session_metrics& all_metrics) const {
  std::unique_lock lock(mutex_);
  const auto works = all();
  lock.unlock();
  for (const auto& work : works) { work->report(all_metrics); }
}

std::vector<history_value> boundary_works::history() const {
  std::vector<history_value> values;
  for (const auto& work : works_) { work->add_history(values); }
  return values;
}

}  // namespace stepwell
