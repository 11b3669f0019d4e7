// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/watched_values.hpp"

#include "stepwell/base/detail/locks.hpp"

#include <algorithm>
#include <array>

namespace stepwell {

std::vector<history_value> watched_values::read() const {
  reads_.fetch_add(1, std::memory_order_relaxed);
  std::vector<history_value> all;
  const detail::mutex_lock lock(mutex_);
  for (const auto& [name, value, step] : values_) {
    if (value) { all.push_back({name, *value, step}); }
  }
  return all;
}

std::size_t watched_values::add(std::string name) {
  const detail::mutex_lock lock(mutex_);
  const auto known = std::ranges::find(values_, name, &watched_value::name);
  const auto slot = static_cast<std::size_t>(known - values_.begin());
  if (known == values_.end()) { values_.push_back({std::move(name)}); }
  return slot;
}

void watched_values::store(std::span<const std::size_t> slots, std::span<const std::optional<double>> values, std::int64_t step) {
  const detail::mutex_lock lock(mutex_);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!values[i]) { continue; }
    values_[slots[i]].value = values[i];
    values_[slots[i]].step = step;
  }
}

void watched_values::clear() {
  const detail::mutex_lock lock(mutex_);
  for (auto& one : values_) { one.value.reset(); }
}

void value_publisher::start(std::shared_ptr<watched_values> values, const std::vector<std::string>& names) {
  values_ = std::move(values);
  slots_.clear();
  for (const auto& name : names) { slots_.push_back(values_->add(name)); }
  all_reads_ = &values_->reads_;
  reads_ = all_reads_->load(std::memory_order_relaxed);
  if (reads_ > 0) { --reads_; }  // a reader waits for values again, because a recovery has dropped those that were published
}

void value_publisher::publish(std::span<const std::optional<double>> values, std::int64_t step) {
  if (!values_) { return; }
  reads_ = all_reads_->load(std::memory_order_relaxed);
  values_->store(slots_, values, step);
}

void value_publisher::publish_one(double value, std::int64_t step) { publish(std::array{std::optional(value)}, step); }

}  // namespace stepwell
