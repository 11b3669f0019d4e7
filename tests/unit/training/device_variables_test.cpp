// SPDX-License-Identifier: Apache-2.0
//
// Tests of variables whose elements the CPU cannot address, like those of a tensor on a GPU.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "training_rig.hpp"

#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/model/model.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::temporary_directory;

namespace {

/// A tensor of floats "on a device". Its elements are accessible only by copies, which are counted.
struct far_tensor {
  std::shared_ptr<std::vector<float>> device;
  std::shared_ptr<int> copies = std::make_shared<int>(0);
  bool is_lost = false;
  bool has_averages = false;  // the device computes averages
};

}  // namespace

template<>
struct stepwell::tensor_adapter<far_tensor> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = true;

  class far_elements final : public device_elements {
  public:
    explicit far_elements(far_tensor of) : of_(std::move(of)) {}
    [[nodiscard]] tensor_view description() const override { return {dtype::float32, {static_cast<std::int64_t>(of_.device->size())}, {}}; }
    void copy_to(std::span<std::byte> to) const override {
      if (of_.is_lost) { throw internal_error("the device is lost"); }
      ++*of_.copies;
      std::memcpy(to.data(), of_.device->data(), to.size());
    }
    void copy_from(std::span<const std::byte> from) override {
      ++*of_.copies;
      std::memcpy(of_.device->data(), from.data(), from.size());
    }
    [[nodiscard]] std::shared_ptr<device_elements> make_average() const override {
      if (!of_.has_averages) { return nullptr; }
      auto average = of_;
      average.device = std::make_shared<std::vector<float>>(*of_.device);
      return std::make_shared<far_elements>(average);
    }
    void add_to_average(device_elements& average, double weight) const override {
      auto& to = *static_cast<far_elements&>(average).of_.device;
      for (std::size_t i = 0; i < to.size(); ++i) { to[i] += static_cast<float>(weight) * ((*of_.device)[i] - to[i]); }
    }
    void exchange_with_average(device_elements& average) override { of_.device->swap(*static_cast<far_elements&>(average).of_.device); }

  private:
    far_tensor of_;
  };

  static tensor_view view(const far_tensor&) { throw invalid_argument_error("a tensor that is far away"); }
  static std::shared_ptr<device_elements> on_device(const far_tensor& value) { return std::make_shared<far_elements>(value); }
};

namespace {

struct far_model {
  far_tensor weights{std::make_shared<std::vector<float>>(3, 1.0f)};
  std::int64_t seen = 0;

  float step(const std::int64_t& batch) {
    seen += batch;
    for (auto& weight : *weights.device) { weight += static_cast<float>(batch); }
    return weights.device->front();
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}, {"seen", seen}}); }
};

void train(far_model& model, const std::string& directory, std::int64_t last_step, auto... hooks) {
  sw::test::named_source source;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory, .saves = {.save_steps = 2}},
                                                sw::stop_at_step_hook{{.last_step = last_step}}, std::move(hooks)...);
  for (const auto& step : session.steps(source)) { (void)step; }
  session.close();
}

}  // namespace

TEST_CASE("a variable on a device is copied for a checkpoint, and back when it is restored", "[training][device]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  far_model whole;
  train(whole, directory / "whole", 6);
  far_model first;
  train(first, directory / "parts", 3);
  far_model second;
  train(second, directory / "parts", 6);
  CHECK(*second.weights.device == *whole.weights.device);
  CHECK(second.seen == 21);
  CHECK(*second.weights.copies > 0);
}

TEST_CASE("a variable on a device goes into a snapshot, and back", "[training][device]") {
  far_model model;
  sw::monitored_session session(model);
  session.run(std::int64_t{4});
  const auto taken = session.snapshot();
  session.run(std::int64_t{4});
  far_model other;
  sw::restore(other, taken);
  CHECK(*other.weights.device == std::vector<float>(3, 5.0f));
  CHECK(sw::variable_ref("weights", other.weights).size_bytes() == 12);
  CHECK(sw::variable_ref("weights", other.weights).bytes().empty());
}

TEST_CASE("a variable on a device has an average, which takes its place and goes again", "[training][device]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  far_model model;
  sw::ema_hook average({.decay = 0.5}, model);
  train(model, directory.path(), 2, std::ref(average));
  CHECK(model.weights.device->front() == 4);
  average.swap_in();
  CHECK(model.weights.device->front() == 2.75f);  // the average of 1, 2 and 4 with decay 0.5
  average.swap_out();
  CHECK(model.weights.device->front() == 4);
}

TEST_CASE("a device that computes averages keeps them, and no step copies elements to the host", "[training][device]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  far_model model;
  model.weights.has_averages = true;
  sw::ema_hook average({.decay = 0.5}, model);
  {
    sw::monitored_session session(model, std::ref(average));
    const auto before = *model.weights.copies;
    session.run(std::int64_t{1});
    session.run(std::int64_t{2});
    CHECK(*model.weights.copies == before);
    average.swap_in();
    CHECK(model.weights.device->front() == 2.75f);
    average.swap_out();
    CHECK(model.weights.device->front() == 4);
    CHECK(*model.weights.copies == before);
    far_model other;
    average.copy_to(other);
    CHECK(other.weights.device->front() == 2.75f);
  }
  SECTION("a resumed run has the average of an uninterrupted one") {
    const auto average_after = [&](const std::string& name, std::vector<std::int64_t> ends) {
      float value = 0;
      for (const auto end : ends) {
        far_model trained;
        trained.weights.has_averages = true;
        sw::ema_hook averages({.decay = 0.5}, trained);
        train(trained, directory / name, end, std::ref(averages));
        averages.swap_in();
        value = trained.weights.device->front();
      }
      return value;
    };
    CHECK(average_after("whole", {6}) == average_after("parts", {3, 6}));
  }
  SECTION("a variable that leaves the device after the hook is made is an error") {
    model.weights.has_averages = false;
    CHECK_THROWS_WITH(sw::monitored_session(model, std::ref(average)), ContainsSubstring("no longer on the device of its average"));
  }
}

TEST_CASE("a device that fails to copy is an error that names the variable", "[training][device]") {
  far_model model;
  model.weights.is_lost = true;
  try {
    const sw::monitored_session session(model);  // copies the initial state
    FAIL("a copy of a lost device");
  } catch (const sw::internal_error& failure) { CHECK(failure.cause().message == "variable \"weights\": the device is lost"); }
}
