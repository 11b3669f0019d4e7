// SPDX-License-Identifier: Apache-2.0
//
// `group::merged` with all metrics of the library.
#include "rig.hpp"
#include "support/catch.hpp"

#include <stepwell/metrics/metrics.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// Returns a copy of `metric` that has got the examples of one rank.
template<class Metric>
Metric with_examples_of(int rank, Metric metric) {
  for (int i = 0; i < 3 + rank; ++i) {
    const double value = 0.1 * (i + 1) + rank;
    const std::int64_t label = (i + rank) % 3;
    const std::int64_t prediction = i % 3;
    const std::vector<float> scores{0.1F * static_cast<float>(i), 0.2F, 0.3F};
    if constexpr (std::same_as<Metric, sw::metrics::top_k_accuracy>) {
      metric.update(std::span(scores), std::span(&label, 1));
    } else if constexpr (std::same_as<Metric, sw::metrics::auc>) {
      metric.update(value / 4, label == 1);
    } else if constexpr (std::same_as<Metric, sw::metrics::precision_recall>) {
      metric.update(prediction == 1, label == 1);
    } else if constexpr (requires { metric.classes(); } || std::same_as<Metric, sw::metrics::accuracy>) {
      metric.update(prediction, label);
    } else if constexpr (requires { metric.update(value, value); }) {
      metric.update(value, value * value);
    } else {
      metric.update(value);
    }
  }
  return metric;
}

template<class Metric>
std::vector<std::byte> bytes_of(Metric metric) {
  std::vector<std::byte> all;
  for (const auto& variable : metric.variables()) {
    std::vector<std::byte> bytes(variable.size_bytes());
    variable.copy_to(bytes);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

constexpr int ranks = 3;

template<class Metric>
void check_merged(sw::group& group, const Metric& empty) {
  auto expected = with_examples_of(0, empty);
  for (int rank = 1; rank < ranks; ++rank) { expected.merge(with_examples_of(rank, empty)); }
  const auto mine = with_examples_of(group.rank(), empty);
  CHECK(bytes_of(group.merged(mine)) == bytes_of(expected));
  CHECK(bytes_of(mine) != bytes_of(expected));
}

template<class... Metrics>
void check_all(sw::group& group, const Metrics&... empty) {
  (check_merged(group, empty), ...);
}

/// A metric whose state is a text.
struct longest_word {
  std::string word = "none";
  void reset() { word.clear(); }
  void update(const std::string& next) { word = next.size() > word.size() ? next : word; }
  void merge(const longest_word& other) { update(other.word); }
  [[nodiscard]] double value() const { return static_cast<double>(word.size()); }
  sw::variable_list variables() { return sw::variables({{"word", word}}); }
};

}  // namespace

TEST_CASE("a group refuses to merge a metric whose state is a text", "[group]") {
  group_rig rig(ranks);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    one.is_stepping = false;
    CHECK_THROWS_WITH(one.group.merged(longest_word()), ContainsSubstring("the variable \"word\" of the metric holds strings"));
    CHECK(one.group.merged(with_examples_of(one.group.rank(), sw::metrics::sum())).value() != 0);
  });
  rig.run_well();
}

TEST_CASE("a group merges every metric in the order of the ranks, with the same bits in all processes", "[group]") {
  group_rig rig(ranks);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    one.is_stepping = false;
    using namespace sw::metrics;
    check_all(one.group, sum(), mean(), min_max(), windowed_mean(4), exponential_mean(0.9), variance(), accuracy(), top_k_accuracy(2),
              precision_recall(), confusion_matrix(3), auc(10), perplexity(), mean_absolute_error(), mean_squared_error(), r_squared());
  });
  rig.run_well();
}
