// SPDX-License-Identifier: Apache-2.0
//
// Tests of a session whose model, batches and results use xtensor types.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"
#include "unit/xtensor/xtensor_headers.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/protocol/feed.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace sw = stepwell;
using sw::test::scalars_in;
using sw::test::tagged_in;
using sw::test::temporary_directory;

namespace {

/// A model whose parameters are a row-major and a column-major matrix. Its gradient is the batch.
struct linear_model {
  struct batch {
    xt::xtensor<float, 2> inputs;
  };
  struct result {
    float rate;
    const xt::xtensor<float, 2>& weights;
    xt::xtensor<float, 2> gradient;
  };
  float rate = 0.5F;
  xt::xtensor<float, 2> weights = xt::zeros<float>({2, 3});
  xt::xtensor<double, 2, xt::layout_type::column_major> momentum = xt::zeros<double>({2, 3});
  xt::xarray<std::int32_t> counts = xt::zeros<std::int32_t>({4, 4});
  std::mt19937 engine{1};

  result step(const batch& given) {
    momentum = momentum * 0.5 + given.inputs;
    xt::noalias(weights) += rate * given.inputs + xt::random::rand<float>({2, 3}, 0, 1, engine);
    xt::view(counts, xt::all(), 1) += 1;
    return {rate, weights, given.inputs};
  }
  auto variables() {
    return sw::variables({{"weights", weights}, {"momentum", momentum}, {"counts", xt::view(counts, xt::all(), 1)}, {"engine", engine}});
  }
};
using result = linear_model::result;

/// The expression that the hooks of the tests fetch.
constexpr auto update = [](const result& r) { return r.rate * r.gradient; };
constexpr auto column = [](const result& r) { return xt::view(r.weights, xt::all(), 1); };

linear_model::batch batch_of(float value) { return {value * xt::ones<float>({2, 3})}; }

template<class... Hooks>
void train(linear_model& model, const std::string& directory, std::int64_t last_step, Hooks... hooks) {
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory, .saves = {.save_steps = 2}},
                                                sw::stop_at_step_hook{{.last_step = last_step}}, std::move(hooks)...);
  for ([[maybe_unused]] const auto& step : session.steps(std::vector(10, batch_of(2)))) {}
  session.close();
}

/// A model with square arrays of several types. A step writes one number to all elements, except those of the integers, which are always 2.
struct form_model {
  struct result {
    const xt::xtensor<float, 2>& rows;
    const xt::xtensor<double, 2, xt::layout_type::column_major>& columns;
    const xt::xarray<xtl::half_float>& halves;
    const xt::xtensor<std::int64_t, 1>& whole;
    const std::vector<float>& memory;
  };
  explicit form_model(std::size_t size)
      : rows({size, size}), columns({size, size}), halves(xt::xarray<xtl::half_float>::from_shape({size})), whole({size}, 2), memory(size) {
  }

  result step(float value) {
    rows.fill(value);
    columns.fill(static_cast<double>(value));
    halves.fill(xtl::half_float(value));
    std::ranges::fill(memory, value);
    return {rows, columns, halves, whole, memory};
  }
  sw::variable_list variables() { return sw::variables({{"rows", rows}}); }

  xt::xtensor<float, 2> rows;
  xt::xtensor<double, 2, xt::layout_type::column_major> columns;
  xt::xarray<xtl::half_float> halves;
  xt::xtensor<std::int64_t, 1> whole;
  std::vector<float> memory;
};

template<class Read>
struct form {
  const char* name;
  Read read;
};

}  // namespace

TEST_CASE("containers, strided views and the engine of xt::random resume with the same bits", "[xtensor]") {
  const temporary_directory whole, parts;
  linear_model never_stopped, first, second;
  train(never_stopped, whole.path(), 6);
  train(first, parts.path(), 4);
  train(second, parts.path(), 6);
  CHECK((second.weights == never_stopped.weights));
  CHECK((second.momentum == never_stopped.momentum));
  CHECK((xt::view(second.counts, xt::all(), 1) == xt::xtensor<std::int32_t, 1>{6, 6, 6, 6}));
  CHECK(second.counts(0, 0) == 0);
  CHECK(second.engine == never_stopped.engine);

  const sw::checkpoint_reader newest(sw::latest_checkpoint(parts.path()).value());
  const auto momentum = newest.read("momentum");
  CHECK(momentum.shape() == sw::tensor_shape{2, 3});
  CHECK(momentum.as<double>()[0] == second.momentum(0, 0));
  CHECK(newest.read("counts").shape() == sw::tensor_shape{4});
}

TEST_CASE("expressions and views are summaries, scalars and lines of the log", "[xtensor][summary]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  linear_model model;
  train(model, directory.path(), 4,
        sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 2},
                               sw::summary::histogram("update", update),
                               sw::summary::histogram("column", column),
                               sw::summary::histogram("momentum", &linear_model::momentum),
                               sw::summary::histogram("counts", [](const linear_model& m) { return m.counts * 2; }),
                               sw::summary::image("picture", [](const result& r) { return r.gradient / 4; }),
                               sw::summary::scalar("mean", [](const result& r) { return xt::mean(r.gradient); })},
        sw::logging_tensor_hook{
            {.every_n_iter = 1}, sw::tag("update", update), sw::tag("mean", [](const result& r) { return xt::mean(r.gradient); })});
  for (const std::string tag : {"column", "momentum", "counts"}) { CHECK(tagged_in(directory.path(), tag).size() == 3); }
  const auto updates = tagged_in(directory.path(), "update");
  REQUIRE(updates.size() == 3);  // of the steps 1, 3 and 4, the last one
  const auto& histogram = std::get<sw::format::histogram_value>(updates[0].second.value);
  CHECK(histogram.num == 6);
  CHECK(histogram.min == 1);
  CHECK(histogram.max == 1);
  CHECK(scalars_in(directory.path(), "mean") == std::map<std::int64_t, float>{{1, 2.0F}, {3, 2.0F}, {4, 2.0F}});
  CHECK(log.contains(sw::log_level::info, "update = [1 1 1 1 1 1], mean = 2"));
}

TEST_CASE("HOOK-NAN-1 an expression and a view are watched in each element", "[xtensor][nan]") {
  linear_model model;
  sw::monitored_session session(model, sw::nan_tensor_hook{update}, sw::nan_tensor_hook{column});
  session.run(batch_of(1));
  CHECK_THROWS_WITH(session.run(batch_of(std::numeric_limits<float>::infinity())), ContainsSubstring("inf"));
  linear_model other;
  sw::monitored_session of_other(other, sw::nan_tensor_hook{column});
  other.weights(1, 1) = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(of_other.run(batch_of(1)), sw::nan_loss_error);
}

TEST_CASE("a caller of run gets the values of expressions and views in containers of its own", "[xtensor][fetch]") {
  linear_model model;
  sw::monitored_session session(model);
  const auto [lazy, part, mean] = session.run(batch_of(2), sw::fetch(update, column, [](const result& r) { return xt::mean(r.gradient); }));
  static_assert(std::is_same_v<decltype(lazy), const xt::xtensor<float, 2>> && std::is_same_v<decltype(part), const xt::xtensor<float, 1>>);
  const xt::xtensor<float, 1> weights = xt::view(model.weights, xt::all(), 1);
  session.run(batch_of(100));
  CHECK((lazy == xt::ones<float>({2, 3})));
  CHECK((part == weights));
  CHECK(mean() == 2);
}

TEST_CASE("expressions and views are fed to members of the model and of the batch", "[xtensor][feed]") {
  linear_model model;
  sw::monitored_session session(model);
  const xt::xtensor<float, 2> ones = xt::ones<float>({2, 3});
  const auto [of_expression] = session.run(batch_of(2), sw::feed(&linear_model::batch::inputs, 3.F * ones), sw::fetch(&result::gradient));
  CHECK((of_expression == 3.F * ones));
  const xt::xtensor<float, 2> wide = xt::ones<float>({2, 6}) * 5.F;
  const auto [of_view] = session.run(batch_of(2), sw::feed(&linear_model::batch::inputs, xt::view(wide, xt::all(), xt::range(0, 6, 2))),
                                     sw::fetch(&result::gradient));
  CHECK((of_view == 5.F * ones));
}

TEST_CASE("metrics and evaluations read expressions and views with one element", "[xtensor][metric]") {
  linear_model model;
  const std::vector<linear_model::batch> test_set{batch_of(1), batch_of(3)};
  const auto evaluate = [](const linear_model&, const linear_model::batch& batch) { return batch; };
  auto hook =
      sw::evaluate_every(1, test_set, evaluate, sw::measure("mean", [](const linear_model::batch& b) { return xt::mean(b.inputs); }),
                         sw::measure("corner", [](const linear_model::batch& b) { return xt::view(b.inputs, 1, 2); }));
  sw::test::log_capture log;
  sw::monitored_session session(model, std::move(hook),
                                sw::early_stopping_hook{{.patience = 2}, [](const result& r) { return xt::sum(r.gradient); }});
  session.run(batch_of(1));
  CHECK(log.contains(sw::log_level::info, "mean = 2"));
  CHECK(log.contains(sw::log_level::info, "corner = 2"));
}

TEST_CASE("values of every form and kind of element are fetched, summarised, measured and watched for NaN", "[xtensor]") {
  const auto with_forms = [](auto use) {
    return use(form{"container", [](const form_model::result& r) -> const auto& { return r.rows; }},
               form{"column-major", [](const form_model::result& r) -> const auto& { return r.columns; }},
               form{"dynamic rank", [](const form_model::result& r) -> const auto& { return r.halves; }},
               form{"integers", [](const form_model::result& r) -> const auto& { return r.whole; }},
               form{"adaptor", [](const form_model::result& r) { return xt::adapt(r.memory); }},
               form{"contiguous view", [](const form_model::result& r) { return xt::view(r.rows, xt::range(0, 1)); }},
               form{"strided view", [](const form_model::result& r) { return xt::view(r.rows, xt::all(), 0); }},
               form{"dynamic view", [](const form_model::result& r) { return xt::strided_view(r.rows, {xt::all(), 0}); }},
               form{"expression", [](const form_model::result& r) { return 1.F * r.rows; }},
               form{"two layouts", [](const form_model::result& r) { return 0 * r.rows + r.columns; }},
               form{"of a view", [](const form_model::result& r) { return xt::view(r.columns, 0) * 1.0; }},
               form{"of integers", [](const form_model::result& r) { return 1 * r.whole; }},
               form{"cast", [](const form_model::result& r) { return xt::cast<double>(r.rows); }},
               form{"of halves", [](const form_model::result& r) { return r.halves + r.halves - r.halves; }});
  };
  const temporary_directory directory;
  form_model model(3);
  with_forms([&](auto... forms) {
    sw::monitored_session session(model, sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 1},
                                                                sw::summary::histogram(forms.name, forms.read)...});
    const auto fetched = session.run(2.F, sw::fetch(forms.read...));
    model.step(100);
    CHECK(std::apply([](const auto&... values) { return (... && xt::all(xt::equal(values, 2))); }, fetched));
    session.close();
    for (const std::string name : {forms.name...}) {
      INFO(name);
      const auto histograms = tagged_in(directory.path(), name);
      REQUIRE(histograms.size() == 1);
      const auto& histogram = std::get<sw::format::histogram_value>(histograms[0].second.value);
      CHECK(histogram.num >= 3);
      CHECK(histogram.sum == 2 * histogram.num);
    }
  });
  form_model small(1);
  with_forms([&](auto... forms) {
    sw::test::log_capture log;
    sw::monitored_session session(small,
                                  sw::evaluate_every(1, [](form_model& m) { return m.step(2); }, sw::measure(forms.name, forms.read)...));
    session.run(2.F);
    for (const std::string name : {forms.name...}) {
      INFO(name);
      CHECK(log.contains(sw::log_level::info, name + " = 2"));
    }
  });
  with_forms([&](auto... forms) {
    sw::test::log_capture log;
    sw::monitored_session session(model, sw::nan_tensor_hook{{.fail_on_nan_loss = false}, sw::tag(forms.name, forms.read)}...);
    session.run(2.F);
    CHECK_FALSE(log.contains(sw::log_level::warning, "NaN"));
    session.run(std::numeric_limits<float>::quiet_NaN());
    for (const std::string name : {forms.name...}) {
      INFO(name);
      CHECK(log.contains(sw::log_level::warning, name + " is ") == !name.ends_with("integers"));
    }
  });
}

TEST_CASE("batches are rows of a container, gathered by a view", "[xtensor][batch]") {
  struct rows {
    xt::xtensor<float, 2> all;
    [[nodiscard]] std::size_t size() const { return all.shape()[0]; }
    [[nodiscard]] xt::xtensor<float, 2> batch(sw::data::example_indices indices) const {
      return xt::view(all, xt::keep(std::vector<std::ptrdiff_t>(indices.begin(), indices.end())), xt::all());
    }
  };
  const xt::xtensor<float, 2> inputs = xt::arange<float>(0, 30).reshape({10, 3});
  sw::data::shuffled_source<rows> source(rows{inputs}, {.batch_size = 4, .epochs = 1});
  float sum = 0;
  std::vector<std::size_t> sizes;
  while (const auto* batch = source.peek()) {
    sum += xt::sum(*batch)();
    sizes.push_back(batch->shape()[0]);
    source.advance();
  }
  CHECK(sum == xt::sum(inputs)());
  CHECK(sizes == std::vector<std::size_t>{4, 4, 2});
}
