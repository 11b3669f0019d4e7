// SPDX-License-Identifier: Apache-2.0
//
// A hook that computes the means of values over each epoch, as Keras does for its `History`.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/hooks/detail/value_history.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/metrics/metrics.hpp"
#include "stepwell/protocol/detail/boundary_work.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_context.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

namespace detail {

/// The means of the current epoch and of all complete ones.
class epoch_means final : public boundary_work {
public:
  explicit epoch_means(std::vector<std::string> names);

  /// Adds the values of a step that is part of an epoch. An empty value changes nothing.
  void add(std::span<const std::optional<double>> values);
  /// Ends the epoch, whose last step is `step`.
  void end_epoch(const session_requests& session, std::int64_t step);
  /// Begins or continues with a session.
  void start(const session_requests& session) { history_.start(session, last_, last_step_); }

  void add_history(std::vector<history_value>& all) const override { history_.add_to(all); }
  [[nodiscard]] variable_list variables();

private:
  std::vector<std::string> names_;
  std::vector<metrics::mean> means_;  // of the current epoch
  std::vector<double> last_;          // means of the last complete epoch; `unset_number`: none
  std::int64_t last_step_ = -1;
  value_history history_;
};

}  // namespace detail

/// Computes the mean of each value over each epoch: `epoch_mean_hook{tag("loss", &result::loss)}`. The means of all complete epochs are in
/// the result of `run_all`, also those of epochs before a restart: they are part of the checkpoints. A `progress_hook` displays them under
/// names such as "mean loss". A metric of an evaluation has its own name. Any other value without a name is called "loss". An empty `std::optional` does not count. A resumed run continues the
/// means in the middle of an epoch.
/// Copies of a hook share their means. Do not use them in two sessions.
/// A session has one such hook, with all values: two of them would save their state under the same name.
/// @cost In a loop over a source with epochs, each run fetches the values. In other runs, nothing is fetched.
template<class... Watched>
class epoch_mean_hook {
public:
  static constexpr auto phase = hook_phase::observe;
  using requests_only = epoch_mean_hook;

  /// @errors `invalid_argument_error` if two values have the same name, or a name is empty.
  explicit epoch_mean_hook(Watched... watched)
      : means_(std::make_shared<detail::epoch_means>(std::vector<std::string>{detail::name_of(watched, "loss")...})),
        watched_(stepwell::fetch(detail::untagged(watched)...)) {}

  void after_create_session(auto& session, auto& /*threads*/) {
    session.add_work(means_);
    means_->start(session);
  }
  auto before_run(auto& context) const { return context.epoch() ? std::optional(watched_) : std::nullopt; }
  void after_run(auto& context, const auto& values) {
    if (values.has_value()) { add(context, values, std::index_sequence_for<Watched...>{}); }
  }

  /// Returns the means of all complete epochs, as the result of `run_all` has them. For a loop with a body: pass a copy of the hook to the
  /// session, and call this function of your own copy after a step.
  [[nodiscard]] std::vector<history_value> history() const {
    std::vector<history_value> all;
    means_->add_history(all);
    return all;
  }

  [[nodiscard]] variable_list variables() { return means_->variables(); }
  [[nodiscard]] std::string state_name() const { return "epoch_mean"; }

private:
  template<std::size_t... I>
  void add(auto& context, const auto& values, std::index_sequence<I...>) {
    const std::array<std::optional<double>, sizeof...(I)> numbers{detail::as_number(values.template get<I>())...};
    means_->add(numbers);
    if (context.epoch()->is_last) { means_->end_epoch(context, context.global_step()); }
  }

  std::shared_ptr<detail::epoch_means> means_;
  fetch_pack<detail::fetch_of<Watched>...> watched_;
};

}  // namespace stepwell
