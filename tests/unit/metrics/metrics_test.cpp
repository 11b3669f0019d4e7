// SPDX-License-Identifier: Apache-2.0
//
// Reference values: computed with Python's statistics and math modules from the definitions, or by hand where a comment says so.
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/metrics/metrics.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace sw = stepwell;
namespace metrics = stepwell::metrics;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

const std::vector<double> sample{2.5, -1.0, 4.0, 4.0, 0.5, 7.25};
const std::vector<float> scores{0.1F, 0.4F, 0.35F, 0.8F, 0.65F, 0.9F, 0.5F, 0.2F};
const std::vector<std::int64_t> labels{0, 0, 1, 1, 0, 1, 1, 0};
const std::vector<std::int64_t> predicted_classes{0, 1, 2, 2, 1, 0, 2, 1, 1};
const std::vector<std::int64_t> true_classes{0, 1, 2, 1, 1, 2, 2, 0, 1};
const std::vector<float> predictions{2.5F, 0.0F, 2.0F, 8.0F};
const std::vector<float> targets{3.0F, -0.5F, 2.0F, 7.0F};

std::vector<std::byte> state_of(sw::variable_list variables) {
  std::vector<std::byte> all;
  for (const auto& variable : variables) { all.insert(all.end(), variable.bytes().begin(), variable.bytes().end()); }
  return all;
}

/// Checks the properties that all metrics share. `add(metric, i)` adds value number `i` of `count`.
template<class Metric, class Add>
void check_common(const Metric& empty, std::size_t count, Add add) {
  static_assert(metrics::streaming_metric<Metric>);
  auto whole = empty;
  for (std::size_t i = 0; i < count; ++i) { add(whole, i); }
  for (std::size_t split = 0; split <= count; ++split) {
    auto first = empty;
    auto second = empty;
    for (std::size_t i = 0; i < split; ++i) { add(first, i); }
    for (std::size_t i = split; i < count; ++i) { add(second, i); }
    first.merge(second);
    CHECK(first.value() == Approx(whole.value()));
  }
  auto restored = empty;  // as after a restart
  auto from = whole.variables();
  auto to = restored.variables();
  REQUIRE(from.size() == to.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    CHECK(from[i].name() == to[i].name());
    to[i].copy_from(from[i].bytes());
  }
  CHECK(restored.value() == whole.value());
  add(restored, 0);
  add(whole, 0);
  CHECK(state_of(restored.variables()) == state_of(whole.variables()));
  whole.reset();
  auto fresh = empty;
  const auto are_same = [](double one, double other) { return one == other || (std::isnan(one) && std::isnan(other)); };
  CHECK(are_same(whole.value(), fresh.value()));
  for (std::size_t i = 1; i < count; ++i) {
    add(whole, i);
    add(fresh, i);
    CHECK(are_same(whole.value(), fresh.value()));
  }
  CHECK_FALSE(std::isnan(whole.value()));
}

const auto add_sample = [](auto& metric, std::size_t i) { metric.update(sample[i]); };

}  // namespace

TEST_CASE("every metric merges, is saved and restored, and can be reset", "[kernel][metrics]") {
  const auto add_score = [](auto& metric, std::size_t i) {
    metric.update(std::span(scores).subspan(i, 1), std::span(labels).subspan(i, 1));
  };
  const auto add_class = [](auto& metric, std::size_t i) { metric.update(predicted_classes[i], true_classes[i]); };
  const auto add_prediction = [](auto& metric, std::size_t i) { metric.update(predictions[i], targets[i]); };
  check_common(metrics::sum(), sample.size(), add_sample);
  check_common(metrics::mean(), sample.size(), add_sample);
  check_common(metrics::min_max(), sample.size(), add_sample);
  check_common(metrics::windowed_mean(3), sample.size(), add_sample);
  check_common(metrics::exponential_mean(0.9), sample.size(), add_sample);
  check_common(metrics::variance(), sample.size(), add_sample);
  check_common(metrics::accuracy(), true_classes.size(), add_class);
  check_common(metrics::top_k_accuracy(1), 4,
               [](auto& metric, std::size_t i) { metric.update(std::span(scores).subspan(2 * i, 2), std::span(labels).subspan(i, 1)); });
  check_common(metrics::precision_recall(), scores.size(), add_score);
  check_common(metrics::confusion_matrix(3), true_classes.size(), add_class);
  check_common(metrics::auc(100), scores.size(), add_score);
  check_common(metrics::perplexity(), sample.size(), add_sample);
  check_common(metrics::mean_absolute_error(), targets.size(), add_prediction);
  check_common(metrics::mean_squared_error(), targets.size(), add_prediction);
  check_common(metrics::r_squared(), targets.size(), add_prediction);
}

TEST_CASE("sum and mean have the value of the definition, and weights count", "[kernel][metrics]") {
  metrics::sum sum;
  metrics::mean mean;
  CHECK(sum.value() == 0);
  CHECK(std::isnan(mean.value()));
  sum.update(sample);
  mean.update(sample);
  CHECK(sum.value() == 17.25);
  CHECK(mean.value() == 2.875);
  mean.update(12.875, 2);  // (17.25 + 25.75) / 8
  CHECK(mean.value() == 5.375);
  CHECK(mean.weight() == 8);
  mean.reset();
  mean.update(std::vector<float>(1000, 0.25F));
  CHECK(mean.value() == 0.25);
}

TEST_CASE("a sum does not lose small values beside great ones, and keeps infinity and NaN", "[kernel][metrics]") {
  metrics::sum sum;
  sum.update(1e100);
  for (int i = 0; i < 10; ++i) { sum.update(1.0); }
  sum.update(-1e100);
  CHECK(sum.value() == 10);
  sum.update(infinity);
  CHECK(sum.value() == infinity);
  sum.update(std::vector<double>{1, -infinity});
  CHECK(std::isnan(sum.value()));
}

TEST_CASE("min_max has the least and the greatest value, or NaN after a NaN", "[kernel][metrics]") {
  metrics::min_max range;
  CHECK(std::isnan(range.min()));
  range.update(sample);
  CHECK(range.min() == -1);
  CHECK(range.max() == 7.25);
  CHECK(range.value() == 8.25);
  range.update(not_a_number);
  range.update(3);
  CHECK(std::isnan(range.min()));
  CHECK(std::isnan(range.max()));
}

TEST_CASE("windowed_mean is the mean of the last values", "[kernel][metrics]") {
  metrics::windowed_mean window(3);
  CHECK(std::isnan(window.value()));
  window.update(2.5);
  CHECK(window.value() == 2.5);
  for (std::size_t i = 1; i < sample.size(); ++i) { window.update(sample[i]); }
  CHECK(window.value() == Approx(3.9166666666666665));
  CHECK_THROWS_WITH(metrics::windowed_mean(0), ContainsSubstring("size is 0"));
}

TEST_CASE("exponential_mean weighs each value by its age and is not biased at the start", "[kernel][metrics]") {
  metrics::exponential_mean mean(0.9);
  CHECK(std::isnan(mean.value()));
  mean.update(sample[0]);
  CHECK(mean.value() == Approx(2.5));
  for (std::size_t i = 1; i < sample.size(); ++i) { mean.update(sample[i]); }
  CHECK(mean.value() == Approx(3.132182926803242));
  CHECK_THROWS_WITH(metrics::exponential_mean(1), ContainsSubstring("decay is 1"));
  CHECK_THROWS_WITH(metrics::exponential_mean(not_a_number), ContainsSubstring("decay is nan"));
}

TEST_CASE("variance is stable for values far from zero", "[kernel][metrics]") {
  const double offset = GENERATE(0.0, 1e9);
  metrics::variance variance;
  CHECK(std::isnan(variance.value()));
  for (const auto value : sample) { variance.update(offset + value); }
  CHECK(variance.value() == Approx(7.078125).epsilon(1e-8));
  CHECK(variance.of_sample() == Approx(8.49375).epsilon(1e-8));
  CHECK(variance.standard_deviation() == Approx(2.6604745817240953).epsilon(1e-8));
  CHECK(variance.mean() == Approx(offset + 2.875));
  CHECK(variance.count() == 6);
  metrics::variance in_one_call;
  in_one_call.update(sample);
  CHECK(in_one_call.value() == Approx(7.078125));
  CHECK(in_one_call.mean() == Approx(2.875));
  in_one_call.update(std::vector<float>{1, 2});  // (7.078125 * 6 + squared distances of 1 and 2 and of the means) / 8
  CHECK(in_one_call.count() == 8);
  CHECK(in_one_call.mean() == Approx(20.25 / 8));
  CHECK(in_one_call.sum_of_squares() == Approx(6 * 7.078125 + 0.5 + 1.375 * 1.375 * 6 * 2 / 8));
  metrics::variance one;
  one.update(std::vector<float>{3});
  CHECK(one.value() == 0);
  CHECK(std::isnan(one.of_sample()));
}

TEST_CASE("accuracy counts correct classes, given or as the greatest score of a row", "[kernel][metrics]") {
  metrics::accuracy accuracy;
  accuracy.update(predicted_classes, true_classes);
  CHECK(accuracy.value() == Approx(6.0 / 9));
  accuracy.reset();
  accuracy.update(std::vector<float>{0.1F, 0.7F, 0.2F, 0.5F, 0.5F, 0.1F}, std::vector<std::int64_t>{1, 1});
  CHECK(accuracy.value() == 0.5);  // of equal scores, the first is the prediction
  CHECK(accuracy.count() == 2);
  CHECK_THROWS_WITH(accuracy.update(scores, std::vector<std::int64_t>{1, 2, 3}), ContainsSubstring("8 scores for 3 labels"));
  CHECK_THROWS_AS(accuracy.update(predicted_classes, labels), sw::invalid_argument_error);
}

TEST_CASE("top_k_accuracy counts labels among the k greatest scores, ties included", "[kernel][metrics]") {
  // By hand, after the documentation of tf.math.in_top_k.
  const std::vector<float> rows{0.1F, 0.4F,
                                0.3F, 0.2F,  // label 2: second
                                0.4F, 0.3F,
                                0.2F, 0.1F,  // label 2: third
                                0.5F, 0.3F,
                                0.3F, 0.3F,  // label 3: ties with the second
                                0.5F, std::numeric_limits<float>::quiet_NaN(),
                                0.1F, 0.2F};  // label 1: not finite
  const std::vector<std::int64_t> of_rows{2, 2, 3, 1};
  metrics::top_k_accuracy top2(2);
  top2.update(rows, of_rows);
  CHECK(top2.value() == 0.5);
  metrics::top_k_accuracy top3(3);
  top3.update(rows, of_rows);
  CHECK(top3.value() == 0.75);
  CHECK_THROWS_WITH(top3.update(rows, std::vector<std::int64_t>{0, 0, 0, 4}), ContainsSubstring("label 4 is not one of 4"));
  CHECK_THROWS_WITH(metrics::top_k_accuracy(0), ContainsSubstring("k is 0"));
}

TEST_CASE("precision, recall and F measures have the values of their definitions", "[kernel][metrics]") {
  metrics::precision_recall found;
  CHECK(std::isnan(found.value()));
  found.update(scores, labels, 0.3);  // by hand: 4 true and 2 false positives, 2 true and no false negatives
  CHECK(found.true_positives() == 4);
  CHECK(found.false_positives() == 2);
  CHECK(found.true_negatives() == 2);
  CHECK(found.false_negatives() == 0);
  CHECK(found.precision() == Approx(2.0 / 3));
  CHECK(found.recall() == 1);
  CHECK(found.value() == Approx(0.8));
  CHECK(found.f(2) == Approx(10.0 / 11));
  metrics::precision_recall none;
  none.update(false, false);
  CHECK(none.precision() == 0);
  CHECK(none.value() == 0);
}

TEST_CASE("confusion_matrix counts pairs and gives the measures of each class", "[kernel][metrics]") {
  metrics::confusion_matrix matrix(3);
  matrix.update(predicted_classes, true_classes);
  CHECK(matrix.count(1, 2) == 1);
  CHECK(matrix.count(2, 1) == 0);
  CHECK(matrix.count(2, 2) == 2);
  CHECK(matrix.precision(1) == 0.75);
  CHECK(matrix.recall(0) == 0.5);
  CHECK(matrix.f1(2) == Approx(0.6666666666666666));
  CHECK(matrix.macro_f1() == Approx(0.6388888888888888));
  CHECK(matrix.value() == Approx(0.6666666666666666));
  CHECK_THROWS_WITH(matrix.update(3, 0), ContainsSubstring("not one of 3 classes"));
  CHECK_THROWS_WITH(matrix.update(0, -1), ContainsSubstring("label -1"));
  CHECK_THROWS_AS(matrix.merge(metrics::confusion_matrix(2)), sw::invalid_argument_error);
  CHECK_THROWS_WITH(metrics::confusion_matrix(0), ContainsSubstring("classes is 0"));
}

TEST_CASE("auc is the probability that a true example has the greater score", "[kernel][metrics]") {
  metrics::auc curve;
  CHECK(std::isnan(curve.value()));
  curve.update(scores, labels);
  CHECK(curve.value() == Approx(0.8125));  // counted over all pairs
  metrics::auc coarse(2);
  coarse.update(scores, labels);  // by hand: 3 false and 1 true below 0.5, 1 false and 3 true above: (3 * (3 + 0.5) + 1 * 1.5) / 16
  CHECK(coarse.value() == Approx(0.75));
  metrics::auc clamped;
  clamped.update(7, true);
  clamped.update(-7, false);
  CHECK(clamped.value() == 1);
  CHECK_THROWS_WITH(curve.merge(coarse), ContainsSubstring("2 bins into 1000"));
  CHECK_THROWS_WITH(metrics::auc(1), ContainsSubstring("bins is 1"));
}

TEST_CASE("an example with a NaN score is counted and never correct", "[kernel][metrics]") {
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> all_nan(8, nan);
  const std::vector<std::int64_t> both{0, 1, 0, 1};
  metrics::accuracy correct;
  correct.update(all_nan, both);
  correct.update(std::vector<float>{nan, 1}, std::vector<std::int64_t>{1});
  CHECK(correct.value() == 0);
  CHECK(correct.count() == 5);
  metrics::top_k_accuracy top(2);
  top.update(all_nan, both);
  top.update(std::vector<float>{nan, 1}, std::vector<std::int64_t>{1});
  CHECK(top.value() == 0);
  const std::vector<float> four_nan(4, nan);
  metrics::precision_recall found;
  found.update(four_nan, both);
  CHECK(found.false_positives() == 2);
  CHECK(found.false_negatives() == 2);
  CHECK(found.value() == 0);
  metrics::auc curve;
  curve.update(four_nan, both);
  CHECK(curve.value() == 0);
  metrics::auc one;
  one.update(not_a_number, true);
  one.update(0.5, false);
  CHECK(one.value() == 0);
}

TEST_CASE("metrics of scores count the examples with a NaN, and a checkpoint may lack this number", "[kernel][metrics]") {
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows{nan, 1, 0, 1, 1, nan};
  const std::vector<float> scores{nan, 0.5f, nan};
  const std::vector<std::int64_t> labels{0, 1, 1};
  const auto check = [&](auto metric, const std::vector<float>& values) {
    auto other = metric;
    metric.update(values, labels);
    CHECK(metric.nan_examples() == 2);
    other.merge(metric);
    other.merge(metric);
    CHECK(other.nan_examples() == 4);
    const auto saved = sw::variables({{"metric", metric.variables()}});
    const auto number = std::ranges::find(saved, "metric/nan_examples", &sw::variable_ref::name);
    REQUIRE(number != saved.end());
    CHECK(number->is_optional());
    CHECK(std::ranges::count_if(saved, &sw::variable_ref::is_optional) == 1);
    metric.reset();
    CHECK(metric.nan_examples() == 0);
  };
  check(metrics::accuracy(), rows);
  check(metrics::top_k_accuracy(1), rows);
  check(metrics::precision_recall(), scores);
  check(metrics::auc(), scores);
}

TEST_CASE("a value with weight 0 changes nothing", "[kernel][metrics]") {
  metrics::mean mean;
  mean.update(2);
  mean.update(not_a_number, 0);
  mean.update(infinity, 0);
  CHECK(mean.value() == 2);
  metrics::perplexity perplexity;
  perplexity.update(0);
  perplexity.update(not_a_number, 0);
  CHECK(perplexity.value() == 1);
}

TEST_CASE("an exponential_mean with the decay 0 is the newest value, also after a NaN", "[kernel][metrics]") {
  const double before = GENERATE(as<double>{}, not_a_number, infinity, 7.0);
  metrics::exponential_mean newest(0);
  newest.update(before);
  auto merged = newest;
  newest.update(2);
  CHECK(newest.value() == 2);
  newest.merge(metrics::exponential_mean(0));
  CHECK(newest.value() == 2);
  merged.merge(newest);
  CHECK(merged.value() == 2);
  metrics::exponential_mean old(0.5);  // a weight of 0.5^2000 is less than the least double, and is not 0
  old.update(not_a_number);
  metrics::exponential_mean later(0.5);
  for (int i = 0; i < 2000; ++i) { later.update(1); }
  old.merge(later);
  CHECK(std::isnan(old.value()));
}

TEST_CASE("a metric that is merged into an empty one has the same value for great numbers, too", "[kernel][metrics]") {
  const auto check = [](const auto& empty, const auto& add) {
    auto filled = empty;
    add(filled);
    auto merged = empty;
    merged.merge(filled);
    CHECK(std::isfinite(filled.value()));
    CHECK(merged.value() == filled.value());
    merged.merge(empty);
    CHECK(merged.value() == filled.value());
  };
  const auto add_great = [](auto& metric) {
    metric.update(1e200);
    metric.update(1e200);
  };
  const auto add_prediction = [](auto& metric) {
    metric.update(1.001e150, 1e150);
    metric.update(2.001e150, 2e150);
  };
  check(metrics::sum(), add_great);
  check(metrics::mean(), add_great);
  check(metrics::min_max(), add_great);
  check(metrics::windowed_mean(3), add_great);
  check(metrics::exponential_mean(0.5), add_great);
  check(metrics::variance(), add_great);
  check(metrics::mean_absolute_error(), add_prediction);
  check(metrics::mean_squared_error(), add_prediction);
  check(metrics::r_squared(), [](auto& metric) {
    metric.update(1e160 + 1e149, 1e160);
    metric.update(1e160 + 1.1e150, 1e160 + 1e150);
  });
}

TEST_CASE("a metric for which there is no memory is a resource_exhausted_error", "[kernel][metrics]") {
  const auto huge = std::numeric_limits<std::size_t>::max();
  for (const auto classes : {std::size_t{1} << 31, std::size_t{1} << 32, std::size_t{1} << 40, huge}) {
    CHECK_THROWS_AS(metrics::confusion_matrix(classes), sw::resource_exhausted_error);
  }
  CHECK_THROWS_AS(metrics::windowed_mean(huge), sw::resource_exhausted_error);
  CHECK_THROWS_WITH(metrics::auc(huge), ContainsSubstring("there is not enough memory"));
}

TEST_CASE("macro_f1 counts a class that never occurs as zero_division says", "[kernel][metrics]") {
  metrics::confusion_matrix matrix(4);  // by hand, as scikit-learn's f1_score(average="macro", labels=range(4))
  CHECK(std::isnan(matrix.macro_f1(not_a_number)));
  matrix.update(0, 0);
  matrix.update(1, 2);
  CHECK(matrix.macro_f1() == 0.25);
  CHECK(matrix.macro_f1(1) == 0.5);
  CHECK(matrix.macro_f1(not_a_number) == Approx(1.0 / 3));
}

TEST_CASE("perplexity is the inverse geometric mean of the probabilities of the tokens", "[kernel][metrics]") {
  metrics::perplexity perplexity;
  perplexity.update(1.3862943611198906);     // a token of probability 1/4
  perplexity.update(1.4606755448912938, 3);  // three tokens of 1/2, 1/8 and 1/5
  CHECK(perplexity.value() == Approx(4.229485053762256));
}

TEST_CASE("the errors of regressions have the values of their definitions", "[kernel][metrics]") {
  metrics::mean_absolute_error absolute;
  metrics::mean_squared_error squared;
  metrics::r_squared explained;
  absolute.update(predictions, targets);
  squared.update(predictions, targets);
  explained.update(predictions, targets);
  CHECK(absolute.value() == 0.5);
  CHECK(squared.value() == 0.375);
  CHECK(squared.root() == Approx(0.6123724356957945));
  CHECK(explained.value() == Approx(0.9486081370449679));
  CHECK_THROWS_AS(explained.update(predictions, scores), sw::invalid_argument_error);
  metrics::r_squared constant;
  constant.update(1, 2);
  constant.update(3, 2);
  CHECK(std::isnan(constant.value()));
}
