// SPDX-License-Identifier: Apache-2.0
//
// Training with tensors on a device that makes its copies late and out of order, under control of the test.
#include "late_device.hpp"

#include "../unit/torch/torch_and_catch.hpp"

#include <stepwell/torch/torch.hpp>

#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace late = sw::test::late_device;
using sw::test::temporary_directory;

namespace {

/// Each element of each variable is the number of steps.
struct counting_model {
  at::Tensor weights = late::on_device(at::zeros({4096}));
  at::Tensor transposed = late::on_device(at::zeros({64, 64})).t();
  at::Tensor means = late::on_device(at::zeros({2048}));   // changes before the fence
  at::Tensor few = late::on_device(at::zeros({8}));        // changes before the fence
  at::Tensor hidden = late::on_device(at::zeros({4096}));  // replaced before the fence
  std::vector<float> on_host = std::vector<float>(4096, 0.0f);

  void before_fence() {
    const at::NoGradGuard without_gradients;
    means.add_(1);
    few.add_(1);
    hidden = hidden.add(2);
    hidden = hidden.sub(1);  // in the memory of the one that is copied, if the copy does not keep it
  }
  void after_fence() {
    const at::NoGradGuard without_gradients;
    weights.add_(1);
    transposed.add_(1);
    for (auto& one : on_host) { one += 1; }
  }
  sw::variable_list variables() {
    return sw::variables({{"weights", weights},
                          {"transposed", transposed},
                          sw::variable_ref("means", means).early(),
                          {"few", few},
                          {"hidden", hidden},
                          {"on_host", on_host}});
  }
};
struct fenced_model : counting_model {
  void step(std::int64_t /*batch*/, sw::update_fence& fence) {
    before_fence();
    fence.wait();
    after_fence();
  }
};
struct plain_model : counting_model {
  void step(std::int64_t /*batch*/) {
    before_fence();
    after_fence();
  }
};

/// Returns the names of the variables in a checkpoint whose elements are not its step.
std::string inconsistent(const sw::checkpoint_reader& reader, std::int64_t step) {
  std::string names;
  for (const auto* name : {"weights", "transposed", "means", "few", "hidden", "on_host"}) {
    const auto value = reader.read(name);
    const auto is_right = [step](float one) { return one == static_cast<float>(step); };
    if (!std::ranges::all_of(value.as<float>(), is_right)) { names += std::string(name) + " of step " + std::to_string(step) + "; "; }
  }
  return names;
}

/// Trains, with a checkpoint after each step. Each checkpoint must be consistent, and the thread of the steps must not wait for the device.
template<class Model>
void check_checkpoints(std::uint64_t seed, std::int64_t steps) {
  const sw::test::log_capture log;
  const temporary_directory directory;
  late::restart(seed);
  Model model;
  auto session =
      sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1, .saver = {.max_to_keep = 0}}});
  const auto before = late::waits_of(std::this_thread::get_id());
  for (std::int64_t i = 0; i < steps; ++i) { session.run(i); }
  CHECK(late::waits_of(std::this_thread::get_id()) == before);
  CHECK(late::all_waits() - before > steps / 2);  // the writer has waited
  CHECK(late::overtaken_copies() > 0);
  session.close();
  std::string wrong;
  std::int64_t count = 0;
  for (const auto& prefix : sw::list_checkpoints(directory.path())) {
    wrong += inconsistent(sw::checkpoint_reader(prefix), *sw::step_of_checkpoint(prefix));
    ++count;
  }
  CHECK(count == steps + 1);
  CHECK(wrong == "");
}

sw::tensor elements(const at::Tensor& value) {
  auto copy = sw::tensor(sw::dtype::float32, {value.numel()});
  sw::tensor_adapter<at::Tensor>::on_device(value)->copy_to(copy.bytes());
  return copy;
}
float first(const at::Tensor& value) { return elements(value).as<float>().front(); }

}  // namespace

TEST_CASE("a failure of the device at the first copy is logged, and does not turn asynchronous copies off for ever", "[torch][late]") {
  const sw::test::log_capture log;
  late::restart(5);
  const auto weights = late::on_device(at::ones({2048}));
  const auto elements = sw::tensor_adapter<at::Tensor>::on_device(weights);
  std::vector<std::byte> to(2048 * sizeof(float));
  late::fail_next_event();
  CHECK(elements->start_copy_to(to) == nullptr);
  CHECK(log.contains(sw::log_level::info, "could not make a stream or an event for copies to the host"));
  int attempts = 1;
  auto copy = elements->start_copy_to(to);
  for (; attempts < 5000 && !copy; ++attempts) { copy = elements->start_copy_to(to); }
  REQUIRE(copy);
  copy->wait();
  CHECK(attempts == 1000);
}

TEST_CASE("a small tensor is copied with one event, on the stream that computes", "[torch][late]") {
  const sw::test::log_capture log;
  late::restart(6);
  const auto events_for = [](std::int64_t count) {
    const auto weights = late::on_device(at::ones({count}));
    std::vector<std::byte> to(static_cast<std::size_t>(count) * sizeof(float));
    const auto before = late::recorded_events();
    const auto copy = sw::tensor_adapter<at::Tensor>::on_device(weights)->start_copy_to(to);
    copy->hold_back_updates();
    const at::NoGradGuard without_gradients;
    weights.zero_();
    copy->wait();
    float first = 0;
    std::memcpy(&first, to.data(), sizeof first);
    CHECK(first == 1);
    return late::recorded_events() - before;
  };
  events_for(8);  // the first copy also tries whether the device has events
  CHECK(events_for(8) == 1);
  CHECK(events_for(4096) == 2);
}

TEST_CASE("of 1,000 checkpoints that a device copies late and out of order none is inconsistent, and no step waits", "[torch][late]") {
  check_checkpoints<fenced_model>(7, 1000);
}

TEST_CASE("without a fence no step waits for the device either", "[torch][late]") { check_checkpoints<plain_model>(8, 100); }

TEST_CASE("steps go on while no copy to the host is made", "[torch][late]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  late::restart(1);
  fenced_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 3}});
  session.run(std::int64_t{1});
  session.run(std::int64_t{2});
  late::hold();
  for (std::int64_t i = 3; i < 6; ++i) { session.run(i); }  // step 3 is saved; a wait for a copy would fail
  late::release();
  session.close();
  CHECK(inconsistent(sw::checkpoint_reader(directory / "model.ckpt-3"), 3) == "");
  CHECK(inconsistent(sw::checkpoint_reader(directory / "model.ckpt-5"), 5) == "");
}

TEST_CASE("a run on the device that is stopped and resumed ends like an uninterrupted one", "[torch][late]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  late::restart(2);
  for (const std::int64_t last : {4, 9}) {
    fenced_model model;
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 2}});
    while (session.global_step() < last) { session.run(session.global_step()); }
    session.close();
    CHECK(first(model.weights) == static_cast<float>(last));
    CHECK(first(model.hidden) == static_cast<float>(last));
  }
}

namespace {

struct result {
  at::Tensor loss;
};
struct losing_model {
  at::Tensor weights = late::on_device(at::ones({1000}));
  float bad = std::numeric_limits<float>::quiet_NaN();

  result step(std::int64_t batch) {
    const at::NoGradGuard without_gradients;
    if (batch == 3) { weights.narrow(0, 500, 1).fill_(bad); }
    return {weights.add(1)};
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}}); }
};

}  // namespace

TEST_CASE("a NaN guard of a tensor on a device copies one boolean for each step", "[torch][late]") {
  const sw::test::log_capture log;
  late::restart(3);
  losing_model model;
  SECTION("NaN") {
    sw::monitored_session session(model, sw::nan_tensor_hook{&result::loss});
    const auto before = late::bytes_to_host();
    session.run(std::int64_t{1});
    session.run(std::int64_t{2});
    CHECK(late::bytes_to_host() == before + 2);
    CHECK_THROWS_WITH(session.run(std::int64_t{3}), ContainsSubstring("The watched value is [2 2 2 2 2 2 ...] of shape [1000]"));
  }
  SECTION("infinity is bad unless nan_only is set") {
    model.bad = std::numeric_limits<float>::infinity();
    {
      sw::monitored_session lenient(model, sw::nan_tensor_hook{{.nan_only = true}, &result::loss});
      lenient.run(std::int64_t{3});
    }
    sw::monitored_session session(model, sw::nan_tensor_hook{&result::loss});
    CHECK_THROWS_AS(session.run(std::int64_t{1}), sw::nan_loss_error);
  }
  SECTION("integers are never bad") {
    CHECK(sw::tensor_adapter<at::Tensor>::any_bad_on_device(late::on_device(at::ones({3}, at::kInt)), false) == false);
    CHECK_FALSE(sw::tensor_adapter<at::Tensor>::any_bad_on_device(at::ones({3}), false).has_value());
  }
}

namespace {

/// The first element of the weights and of their average, and whether they are equal.
struct averaged_state {
  float weights;
  float average;
  bool operator==(const averaged_state&) const = default;
};

/// Trains up to `last`, and returns the state. No step copies the weights or their average to the host.
averaged_state train_averaged(const std::string& directory, std::int64_t last) {
  fenced_model model;
  sw::ema_hook average({.decay = 0.5, .only = [](std::string_view name) { return name == "weights"; }}, model);
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory, .saves = {.save_steps = 100}}, std::ref(average));
  const auto before = late::bytes_to_host();
  while (session.global_step() < last) { session.run(session.global_step()); }
  CHECK(late::bytes_to_host() == before);
  const auto weights = first(model.weights);
  average.swap_in();
  const auto averaged = first(model.weights);
  fenced_model other;
  CHECK_THROWS_WITH(average.copy_to(other), ContainsSubstring("call swap_out first"));
  average.swap_out();
  CHECK(first(model.weights) == weights);
  average.copy_to(other);
  CHECK(first(other.weights) == averaged);
  session.close();
  return {weights, averaged};
}

}  // namespace

TEST_CASE("an average of a tensor on a device is computed there, saved, and restored", "[torch][late]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  late::restart(4);
  const auto whole = train_averaged(directory / "whole", 4);
  CHECK(whole == averaged_state{4, 3.0625f});  // of 0, 1, 2, 3 and 4
  train_averaged(directory / "parts", 2);
  CHECK(train_averaged(directory / "parts", 4) == whole);
}
