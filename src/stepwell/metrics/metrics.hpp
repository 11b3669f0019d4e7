// SPDX-License-Identifier: Apache-2.0
//
// Streaming metrics: numbers that are computed from many values without keeping the values.
//
// Each metric has these functions:
// * `update(...)` adds values.
// * `value()` returns the result. Before the first value, the result is NaN; that of `sum` is 0.
// * `reset()` removes all values.
// * `merge(other)` adds the values of another metric of the same type, for example of another thread or process.
// * `variables()` returns the state. If a model or a hook lists the state in its variables, a resumed run continues the metric:
//   `sw::variables({{"weights", weights}, {"accuracy", accuracy.variables()}})`.
//
// Most updates with spans use vector instructions, with the same bits on all machines. If an update takes two spans, they must have the
// same size. There is one exception: `scores` may have several elements (a row) for each label.
//
// An example with a NaN among its scores is counted, and is never correct: the result of a diverged model is the worst one, not an error.
// `nan_examples()` of the metrics that take scores returns the number of these examples. Checkpoints of earlier versions lack this number.
// A restore from such a checkpoint does not change the number of the metric; that of a new metric is 0. A value with weight 0 changes
// nothing, even if it is NaN.
#pragma once

#include "stepwell/base/variable.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stepwell::metrics {

/// The functions that all metrics have.
template<class Metric>
concept streaming_metric = std::copyable<Metric> && requires(Metric& metric, const Metric& other) {
  { other.value() } -> std::same_as<double>;
  metric.reset();
  metric.merge(other);
  { metric.variables() } -> std::same_as<variable_list>;
};

/// The sum of the values. Rounding errors do not grow with the number of updates (Neumaier's compensated summation). Only the sum of each
/// span is added with compensation. Within a span, the values are added as plain doubles.
class sum {
public:
  void update(double value) noexcept;
  void update(std::span<const float> values) noexcept;
  void update(std::span<const double> values) noexcept;
  /// Returns the sum; 0 without a value.
  [[nodiscard]] double value() const noexcept { return sum_ + lost_; }
  void reset() noexcept { *this = {}; }
  void merge(const sum& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  double sum_ = 0;
  double lost_ = 0;  // the low bits that `sum_` cannot hold
};

/// The weighted mean of the values. The weight of a value is 1 by default.
class mean {
public:
  void update(double value, double weight = 1) noexcept;
  void update(std::span<const float> values) noexcept;
  void update(std::span<const double> values) noexcept;
  [[nodiscard]] double value() const noexcept;
  /// Returns the sum of the weights. If all weights are 1, it is the number of values.
  [[nodiscard]] double weight() const noexcept { return weight_.value(); }
  void reset() noexcept { *this = {}; }
  void merge(const mean& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  sum sum_;
  sum weight_;
};

/// The least and the greatest value. After a NaN, both are NaN until `reset`.
class min_max {
public:
  void update(double value) noexcept;
  void update(std::span<const float> values) noexcept;
  void update(std::span<const double> values) noexcept;
  [[nodiscard]] double min() const noexcept;
  [[nodiscard]] double max() const noexcept;
  /// Returns `max()` - `min()`.
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept { *this = {}; }
  void merge(const min_max& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  double min_ = 0;
  double max_ = 0;
  std::int64_t count_ = 0;
};

/// The mean of the last `size` values. A merge appends the values in the window of the other metric.
/// @cost `value()` reads all values of the window.
class windowed_mean {
public:
  /// @errors `invalid_argument_error` if `size` is 0. `resource_exhausted_error` if there is no memory for the window.
  explicit windowed_mean(std::size_t size);
  void update(double value) noexcept;
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept { count_ = 0; }
  void merge(const windowed_mean& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::vector<double> values_;  // a ring; `count_` % size is the next place
  std::int64_t count_ = 0;      // number of all values so far
};

/// The weighted mean of all values. The newest value has the greatest weight. Each other value has `decay` times the weight of the value
/// after it. The mean of the first values is not biased towards zero. A merge appends the values of the other metric, which must have the
/// same decay.
class exponential_mean {
public:
  /// @errors `invalid_argument_error` unless `decay` is at least 0 and below 1.
  explicit exponential_mean(double decay = 0.99);
  void update(double value) noexcept;
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept { mean_ = weight_ = 0; }
  void merge(const exponential_mean& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  double decay_;
  double mean_ = 0;
  double weight_ = 0;  // 1 - decay^count
};

/// The variance and the mean of the values, computed in one numerically stable pass (Welford, 1962). A merge uses the formula of Chan,
/// Golub and LeVeque (1979).
class variance {
public:
  void update(double value) noexcept;
  void update(std::span<const float> values) noexcept;
  void update(std::span<const double> values) noexcept;
  /// Returns the variance of the values: the mean of the squared distances from their mean.
  [[nodiscard]] double value() const noexcept;
  /// Returns the estimated variance of a population from which the values are a sample: the sum of the squared distances divided by
  /// `count()` - 1. NaN if there are fewer than two values.
  [[nodiscard]] double of_sample() const noexcept;
  /// Returns the square root of `value()`.
  [[nodiscard]] double standard_deviation() const noexcept;
  [[nodiscard]] double mean() const noexcept;
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// Returns the sum of the squared distances from the mean.
  [[nodiscard]] double sum_of_squares() const noexcept { return squares_; }
  void reset() noexcept { *this = {}; }
  void merge(const variance& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

/// The fraction of predictions that are correct.
class accuracy {
public:
  void update(std::int64_t prediction, std::int64_t label) noexcept;
  /// @errors `invalid_argument_error` if the sizes differ.
  void update(std::span<const std::int64_t> predictions, std::span<const std::int64_t> labels);
  /// Adds one example for each label. `scores` has one row for each label, with one score for each class. The prediction is the class with
  /// the greatest score. If several classes have this score, the first of them is the prediction.
  /// @errors `invalid_argument_error` unless the size of `scores` is the number of labels times a number of classes that is at least 1.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels);
  [[nodiscard]] double value() const noexcept;
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// Returns the number of examples with a NaN among their scores.
  [[nodiscard]] std::int64_t nan_examples() const noexcept { return nan_examples_; }
  void reset() noexcept { *this = {}; }
  void merge(const accuracy& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::int64_t correct_ = 0;
  std::int64_t count_ = 0;
  std::int64_t nan_examples_ = 0;
};

/// The fraction of examples whose label is among the `k` classes with the greatest scores. Two rules are those of TensorFlow's `in_top_k`:
/// if the score of the label equals the k-th greatest score, the example counts as correct; if the score of the label is not finite, the
/// example counts as wrong. An example with any NaN score counts as wrong, too.
class top_k_accuracy {
public:
  /// @errors `invalid_argument_error` if `k` is 0.
  explicit top_k_accuracy(std::size_t k = 5);
  /// Adds one example for each label. `scores` has one row for each label, with one score for each class.
  /// @errors `invalid_argument_error` unless the size of `scores` is the number of labels times a number of classes that is at least 1.
  /// Also if a label is not a class. Nothing is added then.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels);
  [[nodiscard]] double value() const noexcept;
  /// Returns the number of examples with a NaN among their scores.
  [[nodiscard]] std::int64_t nan_examples() const noexcept { return nan_examples_; }
  void reset() noexcept { correct_ = count_ = nan_examples_ = 0; }
  void merge(const top_k_accuracy& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::size_t k_;
  std::int64_t correct_ = 0;
  std::int64_t count_ = 0;
  std::int64_t nan_examples_ = 0;
};

/// Precision, recall and F1 of a classifier with the two classes true and false. As in Keras, the result of a division by 0 is 0.
class precision_recall {
public:
  void update(bool prediction, bool label) noexcept;
  /// Adds one example for each label. The label is true if `labels[i] != 0`; the prediction is true if `scores[i]` is above `threshold`.
  /// @errors `invalid_argument_error` if the sizes differ.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels, double threshold = 0.5);
  /// Of the examples that are predicted as true, returns the fraction whose label is true.
  [[nodiscard]] double precision() const noexcept;
  /// Of the examples whose label is true, returns the fraction that is predicted as true.
  [[nodiscard]] double recall() const noexcept;
  /// Returns the F measure, in which recall counts `beta` times as much as precision.
  [[nodiscard]] double f(double beta) const noexcept;
  /// Returns F1, the harmonic mean of precision and recall. NaN if there is no example.
  [[nodiscard]] double value() const noexcept;
  [[nodiscard]] std::int64_t true_positives() const noexcept { return true_positives_; }
  [[nodiscard]] std::int64_t false_positives() const noexcept { return false_positives_; }
  [[nodiscard]] std::int64_t true_negatives() const noexcept { return true_negatives_; }
  [[nodiscard]] std::int64_t false_negatives() const noexcept { return false_negatives_; }
  /// Returns the number of examples with a NaN among their scores.
  [[nodiscard]] std::int64_t nan_examples() const noexcept { return nan_examples_; }
  void reset() noexcept { *this = {}; }
  void merge(const precision_recall& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::int64_t true_positives_ = 0;
  std::int64_t false_positives_ = 0;
  std::int64_t true_negatives_ = 0;
  std::int64_t false_negatives_ = 0;
  std::int64_t nan_examples_ = 0;
};

/// The number of examples for each pair of label and prediction, for any number of classes, and the measures that follow from these
/// numbers. The classes are 0, 1, ..., `classes` - 1.
class confusion_matrix {
public:
  /// @errors `invalid_argument_error` if `classes` is 0. `resource_exhausted_error` if there is no memory for the matrix.
  explicit confusion_matrix(std::size_t classes);
  /// @errors `invalid_argument_error` if the prediction or the label is not a class.
  void update(std::int64_t prediction, std::int64_t label);
  /// @errors `invalid_argument_error` if the sizes differ, or if a prediction or a label is not a class. Nothing is added then.
  void update(std::span<const std::int64_t> predictions, std::span<const std::int64_t> labels);
  [[nodiscard]] std::size_t classes() const noexcept { return classes_; }
  /// Returns the number of examples with this label and this prediction.
  /// @pre `label` and `prediction` are classes.
  [[nodiscard]] std::int64_t count(std::int64_t label, std::int64_t prediction) const noexcept;
  /// Return the measures of one class against all other classes. The result of a division by 0 is 0.
  /// @pre `of_class` is a class.
  [[nodiscard]] double precision(std::int64_t of_class) const noexcept;
  [[nodiscard]] double recall(std::int64_t of_class) const noexcept;
  [[nodiscard]] double f1(std::int64_t of_class) const noexcept;
  /// Returns the mean of F1 over all classes. A class that is neither a label nor a prediction of any example has the F1 `zero_division`: 0
  /// or 1, or NaN to leave such classes out of the mean. The result is that of scikit-learn's `f1_score` with `average="macro"` and
  /// `labels=range(classes)`. Without `labels`, scikit-learn leaves such classes out. NaN if all classes are left out.
  [[nodiscard]] double macro_f1(double zero_division = 0) const noexcept;
  /// Returns the fraction of correct predictions.
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept;
  /// @errors `invalid_argument_error` if the other matrix has another number of classes.
  void merge(const confusion_matrix& other);
  [[nodiscard]] variable_list variables();

private:
  [[nodiscard]] std::size_t place(std::int64_t label, std::int64_t prediction) const noexcept;
  void check(std::int64_t prediction, std::int64_t label) const;
  [[nodiscard]] double labelled(std::int64_t label) const noexcept;
  [[nodiscard]] double predicted(std::int64_t prediction) const noexcept;

  std::size_t classes_;
  std::vector<std::int64_t> counts_;  // [label][prediction]
};

/// The area under the curve of the receiver operating characteristic (ROC): the probability that an example with a true label has a greater
/// score than an example with a false label. Scores are from 0 to 1, and are counted in bins of equal width. A pair of a true and a false
/// example in the same bin counts as one half. The error is at most half the fraction of pairs that share a bin. NaN if there is no example
/// with a true label, or none with a false label.
class auc {
public:
  /// @errors `invalid_argument_error` if `bins` is below 2. `resource_exhausted_error` if there is no memory for the bins.
  explicit auc(std::size_t bins = 1000);
  /// Adds an example. A score below 0 counts as 0, and a score above 1 counts as 1. NaN counts as 0 for a true label, and as 1 for a false
  /// label.
  void update(double score, bool label);
  /// Adds one example for each label. The label is true if `labels[i] != 0`.
  /// @errors `invalid_argument_error` if the sizes differ. Nothing is added then.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels);
  [[nodiscard]] double value() const noexcept;
  /// Returns the number of examples with a NaN among their scores.
  [[nodiscard]] std::int64_t nan_examples() const noexcept { return nan_examples_; }
  void reset() noexcept;
  /// @errors `invalid_argument_error` if the other metric has another number of bins.
  void merge(const auc& other);
  [[nodiscard]] variable_list variables();

private:
  std::vector<std::int64_t> positives_;  // number of examples with a true label, by bin
  std::vector<std::int64_t> negatives_;  // number of examples with a false label, by bin
  std::int64_t nan_examples_ = 0;
};

/// The perplexity: e to the power of the mean negative log likelihood per token.
class perplexity {
public:
  /// Adds `tokens` tokens. `loss` is their mean negative log likelihood, in nats.
  void update(double loss, double tokens = 1) noexcept { mean_.update(loss, tokens); }
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept { mean_.reset(); }
  void merge(const perplexity& other) noexcept { mean_.merge(other.mean_); }
  [[nodiscard]] variable_list variables() { return mean_.variables(); }

private:
  mean mean_;
};

/// The mean of |prediction - target|.
class mean_absolute_error {
public:
  void update(double prediction, double target) noexcept;
  /// @errors `invalid_argument_error` if the sizes differ.
  void update(std::span<const float> predictions, std::span<const float> targets);
  [[nodiscard]] double value() const noexcept { return mean_.value(); }
  void reset() noexcept { mean_.reset(); }
  void merge(const mean_absolute_error& other) noexcept { mean_.merge(other.mean_); }
  [[nodiscard]] variable_list variables() { return mean_.variables(); }

private:
  mean mean_;
};

/// The mean of (prediction - target)^2.
class mean_squared_error {
public:
  void update(double prediction, double target) noexcept;
  /// @errors `invalid_argument_error` if the sizes differ.
  void update(std::span<const float> predictions, std::span<const float> targets);
  [[nodiscard]] double value() const noexcept { return mean_.value(); }
  /// Returns the square root of `value()`.
  [[nodiscard]] double root() const noexcept;
  void reset() noexcept { mean_.reset(); }
  void merge(const mean_squared_error& other) noexcept { mean_.merge(other.mean_); }
  [[nodiscard]] variable_list variables() { return mean_.variables(); }

private:
  mean mean_;
};

/// The coefficient of determination, R2: 1 - E / D. E is the sum of the squared errors. D is the sum of the squared distances of the
/// targets from their mean. NaN if all targets are equal.
class r_squared {
public:
  void update(double prediction, double target) noexcept;
  /// @errors `invalid_argument_error` if the sizes differ.
  void update(std::span<const float> predictions, std::span<const float> targets);
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept { *this = {}; }
  void merge(const r_squared& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  sum errors_;
  variance targets_;
};

}  // namespace stepwell::metrics
