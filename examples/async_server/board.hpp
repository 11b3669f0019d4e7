// SPDX-License-Identifier: Apache-2.0
//
// State shared by the training, the examination and the answers. All code that uses it runs on the event loop, so it
// needs no locks.
#pragma once

#include "curve.hpp"

#include <stepwell/checkpoint/snapshot.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace async_server {

/// A snapshot and a model made from it. Both are immutable, so a holder may keep them as long as necessary.
struct predictor {
  std::shared_ptr<const stepwell::snapshot> taken;
  curve model;
};

/// The error of a snapshot's model on points that are not training data.
struct examined {
  std::int64_t step;
  double error;
};

/// A function object that others may call during the lifetime of this object. The destructor replaces it by one that
/// does nothing.
class offer {
public:
  offer(std::function<void()>& where, std::function<void()> what) : where_(where) { where_ = std::move(what); }
  offer(const offer&) = delete;
  offer& operator=(const offer&) = delete;
  ~offer() {
    where_ = [] {};
  }

private:
  std::function<void()>& where_;
};

struct board {
  std::int64_t started_from = 0;  // the step of the restored checkpoint; 0 without a checkpoint
  std::int64_t step = 0;
  float loss = 0;
  double steps_per_second = 0;
  std::shared_ptr<const predictor> latest;  // null until training has begun
  std::optional<examined> on_test_points;
  bool is_trained = false;
  std::function<void()> when_trained = [] {};
  std::function<void()> stop_training = [] {};
};

}  // namespace async_server
