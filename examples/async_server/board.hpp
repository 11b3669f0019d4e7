// SPDX-License-Identifier: Apache-2.0
//
// What those who train tell those who answer. Everybody who touches it is on the event loop: there are no locks.
#pragma once

#include "curve.hpp"

#include <stepwell/checkpoint/snapshot.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace async_server {

/// A snapshot, and a model made of it. Nobody changes either any more, so both can be held for as long as one likes.
struct predictor {
  std::shared_ptr<const stepwell::snapshot> taken;
  curve model;
};

/// How far the model of a snapshot was from points that it was never trained with.
struct examined {
  std::int64_t step;
  double error;
};

/// Lets others call something, for as long as this lives.
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
  std::int64_t started_from = 0;  // the step of the checkpoint; 0: from the beginning
  std::int64_t step = 0;
  float loss = 0;
  double steps_per_second = 0;
  std::shared_ptr<const predictor> latest;  // null: training has not begun
  std::optional<examined> on_test_points;
  bool is_trained = false;
  std::function<void()> when_trained = [] {};
  std::function<void()> stop_training = [] {};
};

}  // namespace async_server
