// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/epoch_mean_hook.hpp"

#include "stepwell/base/detail/unset.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <set>

namespace stepwell::detail {

epoch_means::epoch_means(std::vector<std::string> names)
    : names_(std::move(names)), means_(names_.size()), last_(names_.size(), unset_number), history_(names_) {
  std::set<std::string> seen;
  for (const auto& name : names_) {
    if (name.empty()) { throw invalid_argument_error("epoch_mean_hook: a value has an empty name"); }
    if (!seen.insert(name).second) {
      throw invalid_argument_error("epoch_mean_hook: two values are named \"" + name + "\"; name them with tag(\"NAME\", value)");
    }
  }
}

void epoch_means::add(std::span<const std::optional<double>> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) { means_[i].update(*values[i]); }
  }
}

void epoch_means::end_epoch(const session_requests& session, std::int64_t step) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    last_[i] = means_[i].weight() > 0 ? means_[i].value() : unset_number;
    session.show("mean " + names_[i], is_unset(last_[i]) ? "" : number_text(last_[i]));
    means_[i].reset();
  }
  last_step_ = step;
  history_.add(last_, step);
}

variable_list epoch_means::variables() {
  variable_list all{{"step", last_step_}};
  for (std::size_t i = 0; i < names_.size(); ++i) {
    all.emplace_back("last/" + names_[i], last_[i]);
    for (auto& variable : stepwell::variables({{"mean/" + names_[i], means_[i].variables()}})) { all.push_back(std::move(variable)); }
  }
  history_.add_variables(all);
  return all;
}

}  // namespace stepwell::detail
