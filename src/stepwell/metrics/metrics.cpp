// SPDX-License-Identifier: Apache-2.0
#include "stepwell/metrics/metrics.hpp"

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/float_bits.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/kernel/detail/simd.hpp"
#include "stepwell/kernel/detail/statistics.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <string_view>

namespace stepwell::metrics {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

double fraction(double part, double whole) noexcept { return whole > 0 ? part / whole : 0; }
double fraction_or_nan(double part, double whole) noexcept { return whole > 0 ? part / whole : no_value; }

/// The variable of the number of examples with a NaN. It is optional, because checkpoints of earlier versions lack it.
variable_ref saved_nan_examples(std::int64_t& number) { return variable_ref("nan_examples", number).optional(); }

void check_sizes(std::string_view metric, std::size_t one, std::size_t other) {
  if (one == other) { return; }
  throw invalid_argument_error(fmt::format("{}: {} values and {} labels or targets; give one for each", metric, one, other));
}

/// Returns the number of scores for each label.
std::size_t columns_of(std::string_view metric, std::size_t scores, std::size_t labels) {
  if (labels == 0 && scores == 0) { return 0; }
  if (labels != 0 && scores != 0 && scores % labels == 0) { return scores / labels; }
  throw invalid_argument_error(
      fmt::format("{}: {} scores for {} labels; give a row with one score of each class for each label", metric, scores, labels));
}

/// Returns `rows` * `columns` zeros. @errors `resource_exhausted_error` if there is no memory for them.
template<class T>
std::vector<T> zeros(std::string_view tried, std::size_t rows, std::size_t columns = 1) {
  return detail::with_memory(tried, {}, [&] {
    std::size_t size = 0;
    if (__builtin_mul_overflow(rows, columns, &size)) { throw std::bad_alloc(); }
    return std::vector<T>(size);
  });
}

std::vector<std::int64_t> empty_bins(std::size_t count) { return zeros<std::int64_t>("auc: could not allocate the bins", count); }

double sum_of(std::span<const float> values) noexcept {
  const detail::default_float_mode mode;
  return kernel::simd().floats.sum(values.data(), values.size());
}
double sum_of(std::span<const double> values) noexcept {
  const detail::default_float_mode mode;
  return kernel::simd().doubles.sum(values.data(), values.size());
}

/// Calls `add` with spans of `error(prediction - target)`. @pre Both spans have the same size.
template<class Error, class Add>
void add_errors(std::span<const float> predictions, std::span<const float> targets, Error error, Add add) {
  std::array<double, 512> errors;  // NOLINT(cppcoreguidelines-pro-type-member-init): written in the loop
  for (std::size_t begin = 0; begin < targets.size(); begin += errors.size()) {
    const auto size = std::min(errors.size(), targets.size() - begin);
    for (std::size_t i = 0; i < size; ++i) {
      errors[i] = error(static_cast<double>(predictions[begin + i]) - static_cast<double>(targets[begin + i]));
    }
    add(std::span<const double>(errors).first(size));
  }
}

}  // namespace

// ---- sum

void sum::update(double value) noexcept {
  const double next = sum_ + value;
  if (std::isfinite(next)) { lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - next) + value : (value - next) + sum_; }
  sum_ = next;
}
void sum::update(std::span<const float> values) noexcept { update(sum_of(values)); }
void sum::update(std::span<const double> values) noexcept { update(sum_of(values)); }
void sum::merge(const sum& other) noexcept {
  update(other.sum_);
  lost_ += other.lost_;
}
variable_list sum::variables() { return stepwell::variables({{"sum", sum_}, {"lost", lost_}}); }

// ---- mean

void mean::update(double value, double weight) noexcept {
  if (weight == 0) { return; }  // 0 * NaN is NaN
  sum_.update(value * weight);
  weight_.update(weight);
}
void mean::update(std::span<const float> values) noexcept {
  sum_.update(values);
  weight_.update(static_cast<double>(values.size()));
}
void mean::update(std::span<const double> values) noexcept {
  sum_.update(values);
  weight_.update(static_cast<double>(values.size()));
}
void mean::merge(const mean& other) noexcept {
  sum_.merge(other.sum_);
  weight_.merge(other.weight_);
}
double mean::value() const noexcept { return sum_.value() / weight_.value(); }
variable_list mean::variables() { return stepwell::variables({{"total", sum_.variables()}, {"weight", weight_.variables()}}); }

// ---- min_max

void min_max::update(double value) noexcept {
  if (count_++ == 0 || std::isnan(value)) {
    min_ = max_ = value;
  } else if (!std::isnan(min_)) {
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }
}
void min_max::update(std::span<const float> values) noexcept {
  const auto found = kernel::moments(values);
  if (found.count == 0 || found.nonfinite > 0) {
    for (const auto value : values) { update(detail::widened(value)); }
    return;
  }
  update(found.min);
  update(found.max);
  count_ += static_cast<std::int64_t>(values.size()) - 2;
}
void min_max::update(std::span<const double> values) noexcept {
  const auto found = kernel::moments(values);
  if (found.count == 0 || found.nonfinite > 0) {
    for (const auto value : values) { update(value); }
    return;
  }
  update(found.min);
  update(found.max);
  count_ += static_cast<std::int64_t>(values.size()) - 2;
}
double min_max::min() const noexcept { return count_ == 0 ? no_value : min_; }
double min_max::max() const noexcept { return count_ == 0 ? no_value : max_; }
double min_max::value() const noexcept { return max() - min(); }
void min_max::merge(const min_max& other) noexcept {
  if (other.count_ == 0) { return; }
  update(other.min_);
  update(other.max_);
  count_ += other.count_ - 2;
}
variable_list min_max::variables() { return stepwell::variables({{"min", min_}, {"max", max_}, {"count", count_}}); }

// ---- windowed_mean

windowed_mean::windowed_mean(std::size_t size) : values_(zeros<double>("windowed_mean: could not allocate the window", size)) {
  if (size == 0) { throw invalid_argument_error("windowed_mean: size is 0; give it at least 1"); }
}
void windowed_mean::update(double value) noexcept {
  values_[static_cast<std::size_t>(count_) % values_.size()] = value;
  ++count_;
}
double windowed_mean::value() const noexcept {
  const auto present = std::min(values_.size(), static_cast<std::size_t>(count_));
  const auto end = values_.begin() + static_cast<std::ptrdiff_t>(present);
  return fraction_or_nan(std::accumulate(values_.begin(), end, 0.0), static_cast<double>(present));
}
void windowed_mean::merge(const windowed_mean& other) noexcept {
  const auto theirs = other.values_.size();
  const auto end = static_cast<std::size_t>(other.count_);
  for (auto i = end - std::min(end, theirs); i < end; ++i) { update(other.values_[i % theirs]); }
}
variable_list windowed_mean::variables() { return stepwell::variables({{"values", values_}, {"count", count_}}); }

// ---- exponential_mean

exponential_mean::exponential_mean(double decay) : decay_(decay) {
  if (decay >= 0 && decay < 1) { return; }
  throw invalid_argument_error(fmt::format("exponential_mean: decay is {}; it must be at least 0 and below 1", decay));
}
void exponential_mean::update(double value) noexcept {
  if (decay_ == 0) { reset(); }  // earlier values have the weight 0, and 0 * NaN is NaN
  mean_ = decay_ * mean_ + (1 - decay_) * value;
  weight_ = decay_ * weight_ + (1 - decay_);
}
void exponential_mean::merge(const exponential_mean& other) noexcept {
  if (decay_ == 0 && other.weight_ > 0) {  // as in `update`
    *this = other;
    return;
  }
  const double left = 1 - other.weight_;  // decay^count of the other mean
  mean_ = left * mean_ + other.mean_;
  weight_ = left * weight_ + other.weight_;
}
double exponential_mean::value() const noexcept { return mean_ / weight_; }
variable_list exponential_mean::variables() { return stepwell::variables({{"mean", mean_}, {"weight", weight_}}); }

// ---- variance

void variance::update(double value) noexcept {
  ++count_;
  const double distance = value - mean_;
  mean_ += distance / static_cast<double>(count_);
  squares_ += distance * (value - mean_);
}
void variance::update(std::span<const float> values) noexcept {
  for (const auto value : values) { update(detail::widened(value)); }
}
void variance::update(std::span<const double> values) noexcept {
  for (const auto value : values) { update(value); }
}
double variance::value() const noexcept { return fraction_or_nan(squares_, static_cast<double>(count_)); }
double variance::of_sample() const noexcept { return fraction_or_nan(squares_, static_cast<double>(count_ - 1)); }
double variance::standard_deviation() const noexcept { return std::sqrt(value()); }
double variance::mean() const noexcept { return count_ == 0 ? no_value : mean_; }
void variance::merge(const variance& other) noexcept {
  if (other.count_ == 0) { return; }
  if (count_ == 0) {  // the square of a great distance from 0 is infinite
    *this = other;
    return;
  }
  const auto mine = static_cast<double>(count_);
  const auto theirs = static_cast<double>(other.count_);
  const double distance = other.mean_ - mean_;
  count_ += other.count_;
  mean_ += distance * (theirs / (mine + theirs));
  squares_ += other.squares_ + distance * distance * (mine * theirs / (mine + theirs));
}
variable_list variance::variables() { return stepwell::variables({{"count", count_}, {"mean", mean_}, {"squares", squares_}}); }

// ---- accuracy

void accuracy::update(std::int64_t prediction, std::int64_t label) noexcept {
  correct_ += prediction == label ? 1 : 0;
  ++count_;
}
void accuracy::update(std::span<const std::int64_t> predictions, std::span<const std::int64_t> labels) {
  check_sizes("accuracy", predictions.size(), labels.size());
  correct_ += static_cast<std::int64_t>(kernel::simd().count_equal(predictions.data(), labels.data(), labels.size()));
  count_ += static_cast<std::int64_t>(labels.size());
}
void accuracy::update(std::span<const float> scores, std::span<const std::int64_t> labels) {
  const auto columns = columns_of("accuracy", scores.size(), labels.size());
  const auto& kernels = kernel::simd();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto greatest = kernels.argmax(&scores[i * columns], columns);
    if (greatest.has_nan) {
      ++nan_examples_;
      ++count_;  // never correct
    } else {
      update(static_cast<std::int64_t>(greatest.index), labels[i]);
    }
  }
}
double accuracy::value() const noexcept { return fraction_or_nan(static_cast<double>(correct_), static_cast<double>(count_)); }
void accuracy::merge(const accuracy& other) noexcept {
  correct_ += other.correct_;
  count_ += other.count_;
  nan_examples_ += other.nan_examples_;
}
variable_list accuracy::variables() {
  return stepwell::variables({{"correct", correct_}, {"count", count_}, saved_nan_examples(nan_examples_)});
}

// ---- top_k_accuracy

top_k_accuracy::top_k_accuracy(std::size_t k) : k_(k) {
  if (k == 0) { throw invalid_argument_error("top_k_accuracy: k is 0; give it at least 1"); }
}
void top_k_accuracy::update(std::span<const float> scores, std::span<const std::int64_t> labels) {
  const auto columns = columns_of("top_k_accuracy", scores.size(), labels.size());
  const auto is_column = [columns](std::int64_t label) { return label >= 0 && static_cast<std::size_t>(label) < columns; };
  if (const auto bad = std::ranges::find_if_not(labels, is_column); bad != labels.end()) {
    throw invalid_argument_error(fmt::format("top_k_accuracy: the label {} is not one of {} classes", *bad, columns));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = scores.subspan(i * columns, columns);
    const auto own = row[static_cast<std::size_t>(labels[i])];
    const auto greater = kernel::simd().count_greater(row.data(), row.size(), own);
    const bool has_nan = kernel::any_nan(row);
    nan_examples_ += has_nan ? 1 : 0;
    correct_ += std::isfinite(own) && !has_nan && greater < k_ ? 1 : 0;
    ++count_;
  }
}
double top_k_accuracy::value() const noexcept { return fraction_or_nan(static_cast<double>(correct_), static_cast<double>(count_)); }
void top_k_accuracy::merge(const top_k_accuracy& other) noexcept {
  correct_ += other.correct_;
  count_ += other.count_;
  nan_examples_ += other.nan_examples_;
}
variable_list top_k_accuracy::variables() {
  return stepwell::variables({{"correct", correct_}, {"count", count_}, saved_nan_examples(nan_examples_)});
}

// ---- precision_recall

void precision_recall::update(bool prediction, bool label) noexcept {
  auto& count = prediction ? (label ? true_positives_ : false_positives_) : (label ? false_negatives_ : true_negatives_);
  ++count;
}
void precision_recall::update(std::span<const float> scores, std::span<const std::int64_t> labels, double threshold) {
  check_sizes("precision_recall", scores.size(), labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool label = labels[i] != 0;
    const bool is_nan = std::isnan(scores[i]);
    nan_examples_ += is_nan ? 1 : 0;
    update(is_nan ? !label : static_cast<double>(scores[i]) > threshold, label);
  }
}
double precision_recall::precision() const noexcept {
  return fraction(static_cast<double>(true_positives_), static_cast<double>(true_positives_ + false_positives_));
}
double precision_recall::recall() const noexcept {
  return fraction(static_cast<double>(true_positives_), static_cast<double>(true_positives_ + false_negatives_));
}
double precision_recall::f(double beta) const noexcept {
  const double weight = beta * beta;
  const auto hits = (1 + weight) * static_cast<double>(true_positives_);
  return fraction(hits, hits + weight * static_cast<double>(false_negatives_) + static_cast<double>(false_positives_));
}
double precision_recall::value() const noexcept {
  const bool is_empty = true_positives_ + false_positives_ + true_negatives_ + false_negatives_ == 0;
  return is_empty ? no_value : f(1);
}
void precision_recall::merge(const precision_recall& other) noexcept {
  true_positives_ += other.true_positives_;
  false_positives_ += other.false_positives_;
  true_negatives_ += other.true_negatives_;
  false_negatives_ += other.false_negatives_;
  nan_examples_ += other.nan_examples_;
}
variable_list precision_recall::variables() {
  return stepwell::variables({{"true_positives", true_positives_},
                              {"false_positives", false_positives_},
                              {"true_negatives", true_negatives_},
                              {"false_negatives", false_negatives_},
                              saved_nan_examples(nan_examples_)});
}

// ---- confusion_matrix

confusion_matrix::confusion_matrix(std::size_t classes)
    : classes_(classes), counts_(zeros<std::int64_t>("confusion_matrix: could not allocate the matrix", classes, classes)) {
  if (classes == 0) { throw invalid_argument_error("confusion_matrix: classes is 0; give it at least 1"); }
}
std::size_t confusion_matrix::place(std::int64_t label, std::int64_t prediction) const noexcept {
  return static_cast<std::size_t>(label) * classes_ + static_cast<std::size_t>(prediction);
}
void confusion_matrix::check(std::int64_t prediction, std::int64_t label) const {
  const auto is_class = [this](std::int64_t number) { return number >= 0 && static_cast<std::size_t>(number) < classes_; };
  if (is_class(prediction) && is_class(label)) { return; }
  throw invalid_argument_error(
      fmt::format("confusion_matrix: the prediction {} or the label {} is not one of {} classes", prediction, label, classes_));
}
void confusion_matrix::update(std::int64_t prediction, std::int64_t label) {
  check(prediction, label);
  ++counts_[place(label, prediction)];
}
void confusion_matrix::update(std::span<const std::int64_t> predictions, std::span<const std::int64_t> labels) {
  check_sizes("confusion_matrix", predictions.size(), labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) { check(predictions[i], labels[i]); }
  for (std::size_t i = 0; i < labels.size(); ++i) { ++counts_[place(labels[i], predictions[i])]; }
}
std::int64_t confusion_matrix::count(std::int64_t label, std::int64_t prediction) const noexcept {
  return counts_[place(label, prediction)];
}
double confusion_matrix::labelled(std::int64_t label) const noexcept {
  double all = 0;
  for (std::size_t i = 0; i < classes_; ++i) { all += static_cast<double>(count(label, static_cast<std::int64_t>(i))); }
  return all;
}
double confusion_matrix::predicted(std::int64_t prediction) const noexcept {
  double all = 0;
  for (std::size_t i = 0; i < classes_; ++i) { all += static_cast<double>(count(static_cast<std::int64_t>(i), prediction)); }
  return all;
}
double confusion_matrix::precision(std::int64_t of_class) const noexcept {
  return fraction(static_cast<double>(count(of_class, of_class)), predicted(of_class));
}
double confusion_matrix::recall(std::int64_t of_class) const noexcept {
  return fraction(static_cast<double>(count(of_class, of_class)), labelled(of_class));
}
double confusion_matrix::f1(std::int64_t of_class) const noexcept {
  return fraction(2 * static_cast<double>(count(of_class, of_class)), predicted(of_class) + labelled(of_class));
}
double confusion_matrix::macro_f1(double zero_division) const noexcept {
  double all = 0;
  double classes = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(classes_); ++i) {
    const double here = predicted(i) + labelled(i) > 0 ? f1(i) : zero_division;
    if (std::isnan(here)) { continue; }
    all += here;
    ++classes;
  }
  return fraction_or_nan(all, classes);
}
double confusion_matrix::value() const noexcept {
  double correct = 0;
  for (std::size_t i = 0; i < classes_; ++i) { correct += static_cast<double>(counts_[i * classes_ + i]); }
  return fraction_or_nan(correct, static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0})));
}
void confusion_matrix::reset() noexcept { std::ranges::fill(counts_, 0); }
void confusion_matrix::merge(const confusion_matrix& other) {
  if (classes_ != other.classes_) {
    throw invalid_argument_error(fmt::format("confusion_matrix: cannot merge {} classes into {}", other.classes_, classes_));
  }
  for (std::size_t i = 0; i < counts_.size(); ++i) { counts_[i] += other.counts_[i]; }
}
variable_list confusion_matrix::variables() { return stepwell::variables({{"counts", counts_}}); }

// ---- auc

auc::auc(std::size_t bins) : positives_(empty_bins(bins)), negatives_(empty_bins(bins)) {
  if (bins < 2) { throw invalid_argument_error(fmt::format("auc: bins is {}; give it at least 2", bins)); }
}
void auc::update(double score, bool label) {
  if (std::isnan(score)) {
    ++nan_examples_;
    score = label ? 0 : 1;  // the wrong end
  }
  const auto bins = static_cast<double>(positives_.size());
  const auto bin = static_cast<std::size_t>(std::min(std::clamp(score, 0.0, 1.0) * bins, bins - 1));
  ++(label ? positives_ : negatives_)[bin];
}
void auc::update(std::span<const float> scores, std::span<const std::int64_t> labels) {
  check_sizes("auc", scores.size(), labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) { update(static_cast<double>(scores[i]), labels[i] != 0); }
}
double auc::value() const noexcept {
  double above = 0;  // positives in greater bins
  double pairs = 0;
  double negatives = 0;
  for (std::size_t i = positives_.size(); i-- > 0;) {
    const auto here = static_cast<double>(positives_[i]);
    pairs += static_cast<double>(negatives_[i]) * (above + here / 2);
    above += here;
    negatives += static_cast<double>(negatives_[i]);
  }
  return fraction_or_nan(pairs, above * negatives);
}
void auc::reset() noexcept {
  std::ranges::fill(positives_, 0);
  std::ranges::fill(negatives_, 0);
  nan_examples_ = 0;
}
void auc::merge(const auc& other) {
  if (positives_.size() != other.positives_.size()) {
    throw invalid_argument_error(fmt::format("auc: cannot merge {} bins into {}", other.positives_.size(), positives_.size()));
  }
  for (std::size_t i = 0; i < positives_.size(); ++i) {
    positives_[i] += other.positives_[i];
    negatives_[i] += other.negatives_[i];
  }
  nan_examples_ += other.nan_examples_;
}
variable_list auc::variables() {
  return stepwell::variables({{"positives", positives_}, {"negatives", negatives_}, saved_nan_examples(nan_examples_)});
}

// ---- perplexity and errors of regressions

double perplexity::value() const noexcept { return std::exp(mean_.value()); }

void mean_absolute_error::update(double prediction, double target) noexcept { mean_.update(std::abs(prediction - target)); }
void mean_absolute_error::update(std::span<const float> predictions, std::span<const float> targets) {
  check_sizes("mean_absolute_error", predictions.size(), targets.size());
  add_errors(predictions, targets, [](double error) { return std::abs(error); }, [this](auto errors) { mean_.update(errors); });
}

void mean_squared_error::update(double prediction, double target) noexcept {
  const double error = prediction - target;
  mean_.update(error * error);
}
void mean_squared_error::update(std::span<const float> predictions, std::span<const float> targets) {
  check_sizes("mean_squared_error", predictions.size(), targets.size());
  add_errors(predictions, targets, [](double error) { return error * error; }, [this](auto errors) { mean_.update(errors); });
}
double mean_squared_error::root() const noexcept { return std::sqrt(value()); }

void r_squared::update(double prediction, double target) noexcept {
  const double error = prediction - target;
  errors_.update(error * error);
  targets_.update(target);
}
void r_squared::update(std::span<const float> predictions, std::span<const float> targets) {
  check_sizes("r_squared", predictions.size(), targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) { update(static_cast<double>(predictions[i]), static_cast<double>(targets[i])); }
}
double r_squared::value() const noexcept { return 1 - fraction_or_nan(errors_.value(), targets_.sum_of_squares()); }
void r_squared::merge(const r_squared& other) noexcept {
  errors_.merge(other.errors_);
  targets_.merge(other.targets_);
}
variable_list r_squared::variables() { return stepwell::variables({{"errors", errors_.variables()}, {"targets", targets_.variables()}}); }

}  // namespace stepwell::metrics
