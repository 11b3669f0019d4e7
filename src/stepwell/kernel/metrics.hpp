// SPDX-License-Identifier: Apache-2.0
//
// Streaming metrics: numbers that are computed from many values without keeping the values.
//
// Each metric has `update(...)`, which adds values; `value()`, the result, NaN as long as no value was added; `reset()`; `merge(other)`, which
// adds the values of another metric, for example of another thread or process; and `variables()`, its state. List it in the variables of a
// model or a hook, and a resumed run continues it: `sw::variables({{"weights", weights}, {"accuracy", accuracy.variables()}})`.
// Spans are read in one pass, sums of them with vector instructions. Two spans of an update must have the same size.
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

/// The sum of the values. Rounding errors do not grow with the number of values (Neumaier's compensated summation).
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

/// The mean of the values, weighted.
class mean {
public:
  void update(double value, double weight = 1) noexcept;
  void update(std::span<const float> values) noexcept;
  void update(std::span<const double> values) noexcept;
  [[nodiscard]] double value() const noexcept { return sum_.value() / weight_.value(); }
  /// Returns the sum of the weights: without weights, the number of values.
  [[nodiscard]] double weight() const noexcept { return weight_.value(); }
  void reset() noexcept { *this = {}; }
  void merge(const mean& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  sum sum_;
  sum weight_;
};

/// The least and the greatest value. One NaN makes both NaN.
class min_max {
public:
  void update(double value) noexcept;
  void update(std::span<const float> values) noexcept;
  void update(std::span<const double> values) noexcept;
  [[nodiscard]] double min() const noexcept;
  [[nodiscard]] double max() const noexcept;
  /// Returns `max()` - `min()`.
  [[nodiscard]] double value() const noexcept { return max() - min(); }
  void reset() noexcept { *this = {}; }
  void merge(const min_max& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  double min_ = 0;
  double max_ = 0;
  std::int64_t count_ = 0;
};

/// The mean of the last `size` values. A merge appends the values of the other window.
/// @cost `value()` reads all values of the window.
class windowed_mean {
public:
  /// @errors `invalid_argument_error` if `size` is 0.
  explicit windowed_mean(std::size_t size);
  void update(double value) noexcept;
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept { count_ = 0; }
  void merge(const windowed_mean& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::vector<double> values_;  // a ring; `count_` % size is the next place
  std::int64_t count_ = 0;      // of all values
};

/// The mean of all values, where each value counts `decay` times as much as the value after it. The first values are not biased towards
/// zero. A merge appends the values of the other mean, which must have the same decay.
class exponential_mean {
public:
  /// @errors `invalid_argument_error` unless `decay` is at least 0 and below 1.
  explicit exponential_mean(double decay = 0.99);
  void update(double value) noexcept;
  [[nodiscard]] double value() const noexcept { return mean_ / weight_; }
  void reset() noexcept { mean_ = weight_ = 0; }
  void merge(const exponential_mean& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  double decay_;
  double mean_ = 0;
  double weight_ = 0;  // 1 - decay^count
};

/// Mean and variance in one stable pass (Welford, 1962); merges by the formula of Chan, Golub and LeVeque (1979).
class variance {
public:
  void update(double value) noexcept;
  void update(std::span<const float> values) noexcept;
  void update(std::span<const double> values) noexcept;
  /// Returns the variance of the values as a population: the mean of the squared distances from their mean.
  [[nodiscard]] double value() const noexcept;
  /// Returns the estimate of the variance of the population of which the values are a sample: divided by count - 1. NaN below two values.
  [[nodiscard]] double of_sample() const noexcept;
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
  /// Adds one example for each label. `scores` has a row of scores for each label; the prediction is the first greatest score of the row.
  /// @errors `invalid_argument_error` if the size of `scores` is not a multiple of the number of labels.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels);
  [[nodiscard]] double value() const noexcept;
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  void reset() noexcept { *this = {}; }
  void merge(const accuracy& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::int64_t correct_ = 0;
  std::int64_t count_ = 0;
};

/// The fraction of examples whose label is among the `k` greatest scores. As in TensorFlow's `in_top_k`, a label that ties with the k-th
/// score counts, and a row in which the score of the label is not finite does not.
class top_k_accuracy {
public:
  /// @errors `invalid_argument_error` if `k` is 0.
  explicit top_k_accuracy(std::size_t k = 5);
  /// Adds one example for each label. `scores` has a row of scores for each label.
  /// @errors `invalid_argument_error` if the size of `scores` is not a multiple of the number of labels, or a label is not a column.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels);
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept { correct_ = count_ = 0; }
  void merge(const top_k_accuracy& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::size_t k_;
  std::int64_t correct_ = 0;
  std::int64_t count_ = 0;
};

/// Precision, recall and F1 of predictions of two classes. As in Keras, a fraction without cases is 0.
class precision_recall {
public:
  void update(bool prediction, bool label) noexcept;
  /// Adds examples with the label `labels[i] != 0`, predicted true if `scores[i]` is above `threshold`.
  /// @errors `invalid_argument_error` if the sizes differ.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels, double threshold = 0.5);
  /// Returns the fraction of the predicted cases that are true.
  [[nodiscard]] double precision() const noexcept;
  /// Returns the fraction of the true cases that are predicted.
  [[nodiscard]] double recall() const noexcept;
  /// Returns the F measure, in which recall counts `beta` times as much as precision.
  [[nodiscard]] double f(double beta) const noexcept;
  /// Returns F1, the harmonic mean of precision and recall. NaN without an example.
  [[nodiscard]] double value() const noexcept;
  [[nodiscard]] std::int64_t true_positives() const noexcept { return true_positives_; }
  [[nodiscard]] std::int64_t false_positives() const noexcept { return false_positives_; }
  [[nodiscard]] std::int64_t true_negatives() const noexcept { return true_negatives_; }
  [[nodiscard]] std::int64_t false_negatives() const noexcept { return false_negatives_; }
  void reset() noexcept { *this = {}; }
  void merge(const precision_recall& other) noexcept;
  [[nodiscard]] variable_list variables();

private:
  std::int64_t true_positives_ = 0;
  std::int64_t false_positives_ = 0;
  std::int64_t true_negatives_ = 0;
  std::int64_t false_negatives_ = 0;
};

/// The number of examples of each pair of label and prediction, and the measures of several classes that follow from it.
class confusion_matrix {
public:
  /// @errors `invalid_argument_error` if `classes` is 0.
  explicit confusion_matrix(std::size_t classes);
  /// @errors `invalid_argument_error` if the prediction or the label is not a class.
  void update(std::int64_t prediction, std::int64_t label);
  /// @errors The same, and if the sizes differ. Nothing is added then.
  void update(std::span<const std::int64_t> predictions, std::span<const std::int64_t> labels);
  [[nodiscard]] std::size_t classes() const noexcept { return classes_; }
  /// @pre Both are classes.
  [[nodiscard]] std::int64_t count(std::int64_t label, std::int64_t prediction) const noexcept;
  /// Return the measures of one class against all others. A fraction without cases is 0.
  [[nodiscard]] double precision(std::int64_t of_class) const noexcept;
  [[nodiscard]] double recall(std::int64_t of_class) const noexcept;
  [[nodiscard]] double f1(std::int64_t of_class) const noexcept;
  /// Returns the mean of F1 over all classes.
  [[nodiscard]] double macro_f1() const noexcept;
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

/// The area under the curve of the receiver operating characteristic: the probability that a true example has a greater score than a false
/// one. Scores are from 0 to 1 and counted in bins of equal width; two scores in one bin count as equal, so the error is at most half of
/// the probability that this happens. NaN without an example of each class.
class auc {
public:
  /// @errors `invalid_argument_error` if `bins` is below 2.
  explicit auc(std::size_t bins = 1000);
  /// Adds a score; one below 0 counts as 0, one above 1 as 1. @errors `invalid_argument_error` for NaN.
  void update(double score, bool label);
  /// @errors `invalid_argument_error` if the sizes differ or a score is NaN; nothing is added then.
  void update(std::span<const float> scores, std::span<const std::int64_t> labels);
  [[nodiscard]] double value() const noexcept;
  void reset() noexcept;
  /// @errors `invalid_argument_error` if the other metric has another number of bins.
  void merge(const auc& other);
  [[nodiscard]] variable_list variables();

private:
  std::vector<std::int64_t> positives_;  // by bin
  std::vector<std::int64_t> negatives_;
};

/// The perplexity: e to the power of the mean negative log likelihood of a token.
class perplexity {
public:
  /// Adds `tokens` tokens with the mean negative log likelihood `loss`, in nats.
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
  /// Returns the square root of the value.
  [[nodiscard]] double root() const noexcept;
  void reset() noexcept { mean_.reset(); }
  void merge(const mean_squared_error& other) noexcept { mean_.merge(other.mean_); }
  [[nodiscard]] variable_list variables() { return mean_.variables(); }

private:
  mean mean_;
};

/// The coefficient of determination, R2: 1 minus the squared errors divided by the squared distances of the targets from their mean. NaN if
/// all targets are equal.
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
