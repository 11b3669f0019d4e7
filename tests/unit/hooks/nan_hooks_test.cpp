// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/tensor.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sw = stepwell;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// A model whose step returns its batch.
struct echo_model {
  struct result {
    float loss;
    std::array<double, 3> gradient;
    int count;
  };
  float unused = 0;
  result step(const float& value) { return {value, {1, value, 3}, 7}; }
  sw::variable_list variables() { return sw::variables({{"unused", unused}}); }
};

/// A tensor of another library, whose adapter gives the elements without their shape.
struct plain_tensor {
  std::vector<float> values;
  int* views;
};

/// Boundary work that always saves, and counts the saves.
struct save_counter final : sw::boundary_work {
  int saved = 0;
  bool try_save(const sw::boundary_state&) override {
    ++saved;
    return true;
  }
};
struct saving_hook {
  static constexpr auto phase = sw::hook_phase::persist;
  save_counter* work;
  void after_run(auto& context, const auto&) { context.request_save(*work); }
  void end(auto& session) { session.request_save(*work); }
};

template<class Hook>
bool stops_at(Hook hook, float value) {
  echo_model model;
  sw::monitored_session session(model, std::move(hook));
  session.run(value);
  return session.stop_reason().cause == sw::stop_cause::nan;
}

}  // namespace

template<>
struct stepwell::tensor_adapter<plain_tensor> {
  [[maybe_unused]] static constexpr bool is_writable = true;
  [[maybe_unused]] static constexpr bool is_borrowed = false;

  static tensor_view view(const plain_tensor& value) {
    ++*value.views;
    return {dtype::float32, {static_cast<std::int64_t>(value.values.size())}, std::as_bytes(std::span(value.values))};
  }
  static elements_view elements(const plain_tensor& value) { return {dtype::float32, std::as_bytes(std::span(value.values))}; }
};

TEST_CASE("D-7 a tensor whose adapter gives the elements alone is watched without its shape", "[hooks][nan]") {
  sw::test::log_capture log;
  int views = 0;
  const auto as_tensor = [&views](const echo_model::result& result) { return plain_tensor{{1, result.loss, 3}, &views}; };
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, as_tensor}, 1.0f));
  CHECK(views == 0);
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, as_tensor}, infinity));  // the message shows the tensor
}

TEST_CASE("HOOK-NAN-1 a NaN loss ends training with nan_loss_error", "[hooks][nan]") {
  sw::test::log_capture log;
  echo_model model;
  sw::monitored_session session(model, sw::nan_tensor_hook{&echo_model::result::loss});
  session.run(1.0f);
  CHECK_THROWS_AS(session.run(nan_value), sw::nan_loss_error);
  CHECK(log.contains(sw::log_level::error, "NaN loss during training."));
  CHECK(log.contains(sw::log_level::error, "step 2"));
}

TEST_CASE("a watched value with a name is called by it", "[hooks][nan]") {
  sw::test::log_capture log;
  echo_model model;
  sw::monitored_session session(model, sw::nan_tensor_hook{sw::tag("the loss", &echo_model::result::loss)});
  CHECK_THROWS_AS(session.run(nan_value), sw::nan_loss_error);
  CHECK(log.contains(sw::log_level::error, "the loss is nan"));
  CHECK(session.stop_reason().cause == sw::stop_cause::nan);
}

TEST_CASE("HOOK-NAN-1 with fail_on_nan_loss off, a NaN causes a warning and a stop", "[hooks][nan]") {
  sw::test::log_capture log;
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &echo_model::result::loss}, nan_value));
  CHECK(log.contains(sw::log_level::warning, "NaN loss during training."));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &echo_model::result::loss}, 1.0f));
}

TEST_CASE("a NaN in the last step is the reason of the stop", "[hooks][nan]") {
  const sw::test::log_capture log;
  echo_model model;
  sw::monitored_session session(model, sw::stop_at_step(1), sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &echo_model::result::loss});
  session.run(nan_value);
  CHECK(session.stop_reason().cause == sw::stop_cause::nan);
}

TEST_CASE("D-7 infinity and tensors of any shape are watched; nan_only lets infinity pass", "[hooks][nan]") {
  sw::test::log_capture log;
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &echo_model::result::loss}, infinity));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false, .nan_only = true}, &echo_model::result::loss}, infinity));
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &echo_model::result::gradient}, nan_value));
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &echo_model::result::gradient}, -infinity));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false, .nan_only = true}, &echo_model::result::gradient}, infinity));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &echo_model::result::count}, nan_value));
}

TEST_CASE("D-7 a tensor of one element is watched like a number", "[hooks][nan]") {
  sw::test::log_capture log;
  const auto as_tensor = [](const echo_model::result& result) { return sw::tensor::scalar(result.loss); };
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, as_tensor}, infinity));
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false, .nan_only = true}, as_tensor}, nan_value));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false, .nan_only = true}, as_tensor}, infinity));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, as_tensor}, 1.0f));
}

TEST_CASE("a NaN is seen in the elements of every dtype that has one", "[hooks][nan]") {
  sw::test::log_capture log;
  using enum sw::dtype;
  for (const auto type : {float32, float64, half, bfloat16, complex64, complex128, float8_e5m2, float8_e4m3fn, float8_e4m3fnuz,
                          float8_e4m3b11fnuz, float8_e5m2fnuz}) {
    CAPTURE(sw::to_string(type));
    const bool is_minus_zero = type == float8_e4m3fnuz || type == float8_e4m3b11fnuz || type == float8_e5m2fnuz;
    for (const std::int64_t size : {1, 2, 100}) {
      const auto watched = [&](const echo_model::result& result) {
        sw::tensor made(type, {size});
        if (std::isnan(result.loss)) { std::ranges::fill(made.bytes().last(sw::size_of(type)), std::byte(is_minus_zero ? 0x80 : 0xff)); }
        return made;
      };
      for (const bool nan_only : {false, true}) {
        CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false, .nan_only = nan_only}, watched}, nan_value));
        CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false, .nan_only = nan_only}, watched}, 1.0f));
      }
    }
  }
}

TEST_CASE("a NaN is seen in a complex number, and in a range of them", "[hooks][nan]") {
  sw::test::log_capture log;
  const auto number = [](const echo_model::result& result) { return std::complex<float>(1, result.loss); };
  const auto range = [](const echo_model::result& result) { return std::vector<std::complex<double>>{{1, 2}, {result.loss, 2}}; };
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, number}, nan_value));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, number}, 1.0f));
  CHECK(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, range}, nan_value));
  CHECK_FALSE(stops_at(sw::nan_tensor_hook{{.fail_on_nan_loss = false, .nan_only = true}, range}, infinity));
}

TEST_CASE("a state that a guard found bad is never saved, neither at the boundary nor at end", "[hooks][nan]") {
  sw::test::log_capture log;
  for (const bool fail : {true, false}) {
    save_counter work;
    echo_model model;
    sw::monitored_session session(model, saving_hook{&work}, sw::nan_tensor_hook{{.fail_on_nan_loss = fail}, &echo_model::result::loss});
    session.run(1.0f);
    CHECK(work.saved == 1);
    try {
      session.run(nan_value);
    } catch (const sw::nan_loss_error&) {}
    session.close();
    CHECK(work.saved == 1);
  }
  CHECK(log.contains(sw::log_level::warning, "the state was rejected"));
}
