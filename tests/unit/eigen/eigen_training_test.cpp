// SPDX-License-Identifier: Apache-2.0
//
// Tests of a session whose model and results use Eigen types.
#include <stepwell/eigen/eigen.hpp>

#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace sw = stepwell;
using sw::test::tagged_in;
using sw::test::temporary_directory;

namespace {

/// A model that counts the steps in every element. A step can set one element to a wrong value.
struct counting_matrices {
  struct result {
    Eigen::Vector3d gradient;
    Eigen::Array<int, 2, 2, Eigen::RowMajor> whole;
    const Eigen::Matrix<float, 2, 3, Eigen::RowMajor>& weights;
  };
  Eigen::Matrix<float, 2, 3, Eigen::RowMajor> weights = Eigen::Matrix<float, 2, 3, Eigen::RowMajor>::Zero();
  Eigen::MatrixXd turned = Eigen::MatrixXd::Zero(2, 3);

  result step(double gradient) {
    weights.array() += 1;
    turned(0, 2) += 1;
    return {Eigen::Vector3d::Constant(gradient), Eigen::Array<int, 2, 2, Eigen::RowMajor>::Ones(), weights};
  }
  auto variables() { return sw::variables({{"weights", weights}, {"turned", sw::eigen::column_major_as_transposed(turned)}}); }
};

template<class... Hooks>
void train(counting_matrices& model, const std::string& directory, std::int64_t last_step, Hooks... hooks) {
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory, .saves = {.save_steps = 2}},
                                                sw::stop_at_step_hook{{.last_step = last_step}}, std::move(hooks)...);
  for ([[maybe_unused]] const auto& step : session.steps(std::vector<double>(10, 1.0))) {}
  session.close();
}

}  // namespace

TEST_CASE("matrices are saved and restored into the memory of a new model, turned or not", "[eigen]") {
  const temporary_directory directory;
  counting_matrices first, second;
  train(first, directory.path(), 4);
  train(second, directory.path(), 6);
  CHECK(second.weights == Eigen::Matrix<float, 2, 3, Eigen::RowMajor>::Constant(6));
  CHECK(second.turned(0, 2) == 6);
  CHECK(second.turned.sum() == 6);

  const sw::checkpoint_reader newest(sw::latest_checkpoint(directory.path()).value());
  const auto turned = newest.read("turned");
  CHECK(turned.shape() == sw::tensor_shape{3, 2});
  CHECK(turned.as<double>()[4] == 6);
}

TEST_CASE("fetched matrices are summed up and logged", "[eigen]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  counting_matrices model;
  train(model, directory.path(), 4,
        sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 2},
                               sw::summary::histogram("weights", &counting_matrices::weights),
                               sw::summary::histogram("gradient", [](const counting_matrices::result& r) { return r.gradient; })},
        sw::logging_tensor_hook{{.every_n_iter = 1}, sw::tag("gradient", &counting_matrices::result::gradient)});
  CHECK(tagged_in(directory.path(), "weights").size() == 3);  // of the steps 1, 3 and 4, the last one
  CHECK(tagged_in(directory.path(), "gradient").size() == 3);
  CHECK(log.contains(sw::log_level::info, "gradient = [1 1 1]"));
}

TEST_CASE("a histogram of complex numbers is an error that names it", "[eigen]") {
  const temporary_directory directory;
  counting_matrices model;
  const auto write = [&] {
    train(model, directory.path(), 4,
          sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 1},
                                 sw::summary::histogram("wave", [](const counting_matrices::result&) { return Eigen::Vector2cf(1, 2); })});
  };
  CHECK_THROWS_WITH(write(), ContainsSubstring("summary \"wave\": a histogram is made of real numbers, but the elements are of complex64"));
}

TEST_CASE("HOOK-NAN-1 a fetched matrix is watched in each element", "[eigen][nan]") {
  counting_matrices model;
  sw::monitored_session session(model, sw::nan_tensor_hook{&counting_matrices::result::gradient},
                                sw::nan_tensor_hook{&counting_matrices::result::whole}, sw::nan_tensor_hook{&counting_matrices::weights});
  session.run(1.0);
  model.weights(1, 2) = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(session.run(1.0), sw::nan_loss_error);
}

TEST_CASE("numbers and matrices of half and bfloat16 are watched, logged, and written as scalars and histograms", "[eigen][numbers]") {
  const temporary_directory directory;
  const sw::test::log_capture log;
  struct half_model {
    struct result {
      Eigen::half loss;
      Eigen::bfloat16 error;
      Eigen::Vector<Eigen::half, 3> halves;
      Eigen::Array<Eigen::bfloat16, 2, 2, Eigen::RowMajor> brains;
      Eigen::Vector2i whole;
      std::vector<Eigen::half> list;
    };
    float value = 2;
    result step(float scale) {
      const auto now = Eigen::half(value * scale);
      return {now,
              Eigen::bfloat16(value),
              Eigen::Vector<Eigen::half, 3>::Constant(now),
              Eigen::Array<Eigen::bfloat16, 2, 2, Eigen::RowMajor>::Constant(Eigen::bfloat16(value * scale)),
              {2, 2},
              {now, now}};
    }
    sw::variable_list variables() { return sw::variables({{"value", value}}); }
  };
  using result = half_model::result;
  half_model model;
  auto session = sw::monitored_training_session(
      model, {.summary_dir = directory.path()}, sw::early_stopping_hook{{.patience = 2}, &result::loss},
      sw::early_stopping_hook{{.patience = 9, .name = "other"}, &result::error},
      sw::summary_saver_hook{{.save_steps = 1},
                             sw::summary::scalar("loss", &result::loss),
                             sw::summary::scalar("error", &result::error),
                             sw::summary::histogram("halves", &result::halves),
                             sw::summary::histogram("brains", &result::brains),
                             sw::summary::histogram("whole", &result::whole),
                             sw::summary::histogram("list", &result::list)},
      sw::logging_tensor_hook{{.every_n_iter = 1}, sw::tag("loss", &result::loss), sw::tag("halves", &result::halves)},
      sw::nan_tensor_hook{&result::loss}, sw::nan_tensor_hook{&result::halves}, sw::nan_tensor_hook{&result::list},
      sw::nan_tensor_hook{&result::brains});
  CHECK(session.run_all(std::vector<float>(9, 1.0f)).steps == 3);
  session.close();
  CHECK(session.stop_reason().cause == sw::stop_cause::no_progress);
  CHECK(log.contains(sw::log_level::info, "loss = 2, halves = [2 2 2]"));
  const auto sum_of = [&](const std::string& tag) {
    return std::get<sw::format::histogram_value>(tagged_in(directory.path(), tag).at(0).second.value).sum;
  };
  CHECK(sw::test::scalars_in(directory.path(), "loss").at(1) == 2);
  CHECK(sw::test::scalars_in(directory.path(), "error").at(3) == 2);
  CHECK(sum_of("halves") == 6);
  CHECK(sum_of("brains") == 8);
  CHECK(sum_of("whole") == 4);
  CHECK(sum_of("list") == 4);

  const auto fails = [&](auto watched) {
    sw::monitored_session guarded(model, sw::nan_tensor_hook{watched});
    CHECK_THROWS_AS(guarded.run(std::numeric_limits<float>::quiet_NaN()), sw::nan_loss_error);
  };
  fails(&result::loss);
  fails(&result::halves);
  fails(&result::brains);
  fails(&result::list);
}
